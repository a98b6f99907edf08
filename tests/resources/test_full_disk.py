"""A full disk: one clear sentence for whoever meets it; all else lives on; then all works again."""

from __future__ import annotations

import json
import os
import signal

import mcp_types as types
import pytest

from aegis.client.line import CommandFailed
from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate
from tests.resources.conftest import Spawn
from tests.resources.small_disk import SmallDisk
from tests.resources.waiting import until, until_state

pytestmark = pytest.mark.real

DISK = "No space left on device; free some space, then try again"


def test_every_run_on_a_full_disk_is_told_at_once_and_recorded_when_there_is_room(
    small_daemon: DaemonProcess, spawn: Spawn, small_disk: SmallDisk
) -> None:
    terminal, other = spawn("full"), spawn("other")
    small_disk.fill()
    # Long enough not to fit into what is left of the ledger's last page.
    commands = [f"head -c 5000 /dev/zero | tr '\\0' {letter}" for letter in "abc"]
    errors = [terminal.refusal(cmd, timeout=GUARD_S) for cmd in commands]
    assert [error.code for error in errors] == ["storage"] * 3
    assert all(str(error).endswith(DISK) for error in errors), errors
    assert other.described()["state"] == "idle"
    assert small_daemon.call("inbox_read", from_handle="reader")["messages"] == []
    small_disk.free()
    assert terminal.run("echo back")["stdout"] == "back\n"
    records = terminal.records()
    assert len(records) == 5
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert [record["cmd"] for record in records][1:4] == commands
    assert [record["exit"] for record in records][1:4] == [0, 0, 0]


def test_a_shell_that_ends_on_a_full_disk_is_replaced_when_there_is_room(
    small_daemon: DaemonProcess, spawn: Spawn, small_disk: SmallDisk
) -> None:
    left, killed = spawn("left"), spawn("killed")
    small_disk.fill()
    assert left.run("exit 3")["end"] == "shell_exit"
    os.kill(killed.info["pid"], signal.SIGKILL)
    for terminal in (left, killed):
        until_state(terminal, "failed")
        error = terminal.refusal("echo no shell")
        assert error.code == "unavailable"
        assert "tries each second" in str(error)
        assert str(error).endswith(DISK)
    assert small_daemon.shell_processes() == []
    small_disk.free()
    for terminal in (left, killed):
        until_state(terminal, "idle")
        assert terminal.run("echo back")["stdout"] == "back\n"
        seqs = [each["seq"] for each in terminal.records()]
        assert seqs == list(range(len(seqs)))
        assert len(small_daemon.shell_processes(f"{terminal.name}/")) == 1


def test_closing_on_a_full_disk_does_not_wait_for_room(
    small_daemon: DaemonProcess,
    spawn: Spawn,
    small_disk: SmallDisk,
    gate: Gate,
) -> None:
    terminal = spawn("closed")
    small_disk.fill()
    run = terminal.start(f"head -c 50000 /dev/zero | tr '\\0' a; {gate.hold}")
    gate.wait_reached()
    error = small_daemon.refusal("term_close", name="closed")
    assert (error.code, str(error).endswith(DISK)) == ("storage", True)
    assert "is closed, but the next up starts it again unless you close it once more" in str(error)
    assert small_daemon.shell_processes() == []
    with pytest.raises(CommandFailed, match="No space left on device"):
        run.result()
    assert "did not end in order" not in small_daemon.log
    small_disk.free()
    terminal.close()
    assert json.loads(small_daemon.state.workspace.read_text())["terminals"] == []
    terminal = spawn("closed")
    assert [(each["seq"], each["end"]) for each in terminal.records()] == [
        (0, "exited"),
        (1, "closed"),
        (2, "exited"),
    ]


def test_what_cannot_be_made_on_a_full_disk_is_told_and_leaves_nothing(
    small_daemon: DaemonProcess, small_disk: SmallDisk
) -> None:
    small_daemon.call("session_new", handle="known")
    small_disk.fill()
    # A page of the new file system's own may still be had: what is large cannot.
    refused = small_daemon.refusal("handoff", target_handle="known", context="x" * 100_000)
    assert (refused.code, str(refused).endswith(DISK)) == ("storage", True)
    error = small_daemon.refusal("term_spawn", name="new")
    assert (error.code, str(error).endswith(DISK)) == ("storage", True), error
    assert not (small_daemon.state.terminals / "new").exists()
    assert small_daemon.shell_processes() == []
    for handle in ("one", "two", "three"):
        error = small_daemon.refusal("session_new", handle=handle)
        assert (error.code, str(error).endswith(DISK)) == ("storage", True), error
    small_disk.free()
    assert small_daemon.call("term_spawn", name="new")["state"] == "idle"
    assert small_daemon.call("session_new", handle="one")["url"]
    assert not [line for line in small_daemon.failures() if "crashed" in line]


async def test_over_mcp_a_full_disk_is_one_sentence_with_what_to_do_and_reading_goes_on(
    small_daemon: DaemonProcess, spawn: Spawn, small_disk: SmallDisk, connect_mcp: Connect
) -> None:
    spawn("full").run("echo before")
    async with connect_mcp(small_daemon, "auto", "ann") as client:
        small_disk.fill()
        big = {"name": "full", "cmd": "head -c 5000 /dev/zero | tr '\\0' a"}
        refused = await client.call_tool("aegis_term_run", big)
        [content] = refused.content
        assert refused.is_error
        assert isinstance(content, types.TextContent)
        assert content.text.startswith("aegis_term_run: cannot write .aegis/state/terminals/full/")
        assert content.text.endswith(DISK)
        assert "\n" not in content.text
        read = await client.call_tool("aegis_term_read", {"name": "full", "last_n": 1})
        assert read.structured_content is not None
        assert read.structured_content["result"][0]["stdout"] == "before\n"
        small_disk.free()
        done = await client.call_tool("aegis_term_run", {"name": "full", "cmd": "echo after"})
        assert done.structured_content is not None
        assert (done.structured_content["seq"], done.structured_content["stdout"]) == (3, "after\n")


def test_output_flows_to_who_reads_it_though_the_raw_log_cannot_be_written(
    small_daemon: DaemonProcess, spawn: Spawn, small_disk: SmallDisk, gate: Gate
) -> None:
    terminal = spawn("flowing")
    here = small_daemon.call("term_output", name="flowing")["next_cursor"]
    small_disk.fill()
    run = terminal.start(f"echo begun; seq 1 200000; echo done; {gate.hold}")
    gate.wait_reached()
    found = small_daemon.call(
        "term_wait", name="flowing", pattern="^done$", cursor=here, timeout=GUARD_S
    )
    assert found["reason"] == "matched"
    chunks = [small_daemon.call("term_output", name="flowing", cursor=here)]
    while chunks[-1]["text"]:
        next_one = chunks[-1]["next_cursor"]
        chunks.append(small_daemon.call("term_output", name="flowing", cursor=next_one))
    assert sum(chunk["dropped"] for chunk in chunks) > 0  # neither disk nor memory had room
    assert "\n200000\ndone\n" in "".join(chunk["text"] for chunk in chunks)
    before = small_daemon.call("status")["rss_bytes"]
    small_disk.free()
    gate.open()
    record = run.result()
    assert (record["exit"], record["stdout"][:8]) == (0, "begun\n1\n")
    assert record["stdout"].endswith("200000\ndone\n")
    assert small_daemon.call("status")["rss_bytes"] - before < 16 * 2**20
    terminal.run("echo kept again")
    chunk = small_daemon.call("term_output", name="flowing")
    assert "kept again\n" in chunk["text"]
    assert chunk["dropped"] == 0


def test_wakes_for_an_inbox_that_has_no_room_come_once_there_is_some(
    small_daemon: DaemonProcess, spawn: Spawn, small_disk: SmallDisk
) -> None:
    terminal = spawn("waking")
    woken = terminal.subscribe("reader")
    terminal.run("head -c 3000 /dev/zero | tr '\\0' 0")
    small_disk.fill()
    tellings = [terminal.start(f"echo told {number}") for number in range(30)]
    outcomes = [telling.outcome() for telling in tellings]
    assert {outcome for outcome, _ in outcomes} <= {"reply", "error"}
    assert {code for _, code in outcomes} <= {"", "storage"}
    small_disk.free()
    terminal.run("echo last", from_handle="reader")
    records = [each for each in terminal.records() if each["writer"] == "human"]
    bodies = [woken.next()["body"] for _ in range(len(records) - 1)]
    assert [body.splitlines()[0].partition(" · ")[0] for body in bodies] == [
        f"$ {record['cmd']}" for record in records[1:]
    ]
    assert woken.unread() == []


def test_a_daemon_that_finds_the_disk_full_says_so_and_starts_once_there_is_room(
    small_daemon: DaemonProcess, spawn: Spawn, small_disk: SmallDisk, gate: Gate
) -> None:
    terminal = spawn("kept")
    terminal.start(f"echo cut short; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("cut short")
    small_daemon.kill()
    small_disk.fill()
    small_daemon.launch()
    assert not small_daemon.wait_ready()
    assert small_daemon.wait_stopped() == 1
    last = small_daemon.log.splitlines()[-1]
    assert last.startswith("aegis-actors: cannot write ")
    assert "No space left on device; free some space on the disk" in last
    until(lambda: small_daemon.shell_processes() == [], "the shell of the one before has ended")
    small_disk.free()
    small_daemon.start()
    assert [(each["end"], each["seq"]) for each in terminal.records()] == [
        ("exited", 0),
        ("killed_by_restart", 1),
    ]
    assert terminal.run("echo on")["seq"] == 2

"""A disk that fails, tears and waits: by FUSE, below a real daemon, as its clients see it."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable

import mcp_types as types
import pytest

from aegis.client.line import CommandFailed
from tests.e2e.conftest import Connect
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal
from tests.resources.conftest import spawned
from tests.resources.fuse_disk import FuseDisk
from tests.resources.waiting import until, until_state

pytestmark = pytest.mark.real

EIO = "Input/output error; the disk fails: see the system log, back up the data, then try again"


def seqs(terminal: LiveTerminal) -> list[int]:
    return [record["seq"] for record in terminal.records()]


def after_a_loss_of_power(daemon: DaemonProcess, disk: FuseDisk) -> None:
    """Kill the daemon, cut off what no sync covered, and start the next."""
    daemon.kill()
    assert disk.lose_power()
    daemon.start()


def check_synced_anew(disk: FuseDisk, path: str) -> None:
    """Since its sync failed nobody has synced that open file again, and another one was."""
    syncs = [(handle, how) for call, handle, how in disk.calls(path) if call == "fsync"]
    failed = [how for _, how in syncs].index("drop")
    later = {handle for handle, _ in syncs[failed + 1 :]}
    assert later
    assert syncs[failed][0] not in later


async def test_a_sync_that_failed_and_lost_its_pages_is_never_taken_for_one_that_succeeds(
    fused_daemon: DaemonProcess, fuse: FuseDisk, connect_mcp: Connect
) -> None:
    fused_daemon.start()
    terminal = spawned(fused_daemon, "build")
    async with connect_mcp(fused_daemon, "auto", "ann") as client:
        lost = fuse.arm("fsync", "build/ledger.jsonl", "drop", times=1)
        refused = await client.call_tool("aegis_term_run", {"name": "build", "cmd": "echo one"})
        [content] = refused.content
        assert refused.is_error
        assert isinstance(content, types.TextContent)
        assert content.text == (
            f"aegis_term_run: cannot sync .aegis/state/terminals/build/ledger.jsonl: {EIO}"
        )
        assert lost.disarm() == 1
        done = await client.call_tool("aegis_term_run", {"name": "build", "cmd": "echo two"})
        told = done.structured_content
    check_synced_anew(fuse, "build/ledger.jsonl")
    after_a_loss_of_power(fused_daemon, fuse)
    records = terminal.records()
    assert [(each["seq"], each["cmd"]) for each in records] == [
        (0, "true"),
        (1, "echo one"),
        (2, "echo two"),
    ]
    assert records[2] == told


def test_messages_whose_sync_fails_are_told_and_only_what_was_accepted_is_there(
    fused_daemon: DaemonProcess, fuse: FuseDisk
) -> None:
    fused_daemon.start()
    fused_daemon.call("session_new", handle="bob")
    fused_daemon.call("handoff", target_handle="bob", context="first")
    failing = fuse.arm("fsync", "bob.jsonl", "drop")
    refused = [
        fused_daemon.send("handoff", target_handle="bob", context=f"refused {number}")
        for number in range(5)
    ]
    assert {each.outcome() for each in refused} == {("error", "storage")}
    failing.disarm()
    fused_daemon.call("handoff", target_handle="bob", context="last")
    check_synced_anew(fuse, "bob.jsonl")
    after_a_loss_of_power(fused_daemon, fuse)
    messages = fused_daemon.call("inbox_read", from_handle="bob")["messages"]
    assert [message["body"] for message in messages] == ["first", "last"]


def test_writes_that_are_cut_short_are_carried_on(
    fused_daemon: DaemonProcess, fuse: FuseDisk
) -> None:
    fuse.arm("write", "", "short")
    fused_daemon.start()
    terminal = spawned(fused_daemon, "torn")
    woken = terminal.subscribe("bob")
    record = terminal.run("seq 1 20000")
    fused_daemon.call("handoff", target_handle="bob", context="x" * 50_000)
    fused_daemon.kill()
    fused_daemon.start()
    assert terminal.records()[1] == record
    assert [len(each["body"]) > 40_000 for each in woken.unread()] == [False, True]
    assert terminal.run("echo on")["seq"] == 2


def test_of_a_write_that_fails_in_the_middle_nothing_is_read(
    fused_daemon: DaemonProcess, fuse: FuseDisk
) -> None:
    fused_daemon.start()
    terminal = spawned(fused_daemon, "half")
    fuse.arm("write", "half/ledger.jsonl", "short", times=1)
    failing = fuse.arm("write", "half/ledger.jsonl", code=errno.ENOSPC)
    assert terminal.refusal("echo one").code == "storage"
    assert seqs(terminal) == [0]
    failing.disarm()
    assert terminal.run("echo two")["seq"] == 2
    assert seqs(terminal) == [0, 1, 2]
    assert not list(terminal.directory.glob("*.torn*"))


Change = Callable[[], object]


def make_terminal(daemon: DaemonProcess, mark: str) -> Change:
    return lambda: daemon.call("term_spawn", name=f"new-{mark}")


def make_session(daemon: DaemonProcess, mark: str) -> Change:
    return lambda: daemon.call("session_new", handle=f"eve-{mark}")


def subscribe(daemon: DaemonProcess, mark: str) -> Change:
    name = spawned(daemon, f"watched-{mark}").name
    return lambda: daemon.call("term_subscribe", name=name, from_handle="eve")


def resize(daemon: DaemonProcess, mark: str) -> Change:
    name = spawned(daemon, f"sized-{mark}").name
    return lambda: daemon.call("term_resize", name=name, cols=132, rows=50)


def make_workspace(daemon: DaemonProcess, mark: str) -> Change:
    return lambda: daemon.call("workspace_create", workspace=f"place-{mark}", directory=".")


REPLACED = {
    "workspace.json": make_terminal,
    "keys.json": make_session,
    "subscribers.json": subscribe,
    "meta.json": resize,
    "workspaces.json": make_workspace,
}
"""The files that are replaced as a whole, and what replaces each."""


def test_a_file_that_cannot_be_replaced_is_told_and_the_next_try_replaces_it(
    fused_daemon: DaemonProcess, fuse: FuseDisk
) -> None:
    fused_daemon.start()
    calls = ("rename", "fsync", "write")
    for call, (name, prepare) in itertools.product(calls, REPLACED.items()):
        change = prepare(fused_daemon, call)
        failing = fuse.arm_name(call, name)
        with pytest.raises(CommandFailed, match=EIO) as refused:
            change()
        assert (refused.value.code, failing.disarm() >= 1) == ("storage", True), name
        change()
    fused_daemon.kill()
    fused_daemon.start()
    infos = {info["name"]: info for info in fused_daemon.call("term_list")["result"]}
    for call in calls:
        assert infos[f"new-{call}"]["state"] in ("starting", "idle")
        assert infos[f"watched-{call}"]["subscribers"] == ["eve"]
        assert infos[f"sized-{call}"]["cols"] == 132
        assert fused_daemon.call("handoff", target_handle=f"eve-{call}", context="there")
    kept = {each["workspace_id"] for each in fused_daemon.call("workspace_list")["result"]}
    assert kept == {f"place-{call}" for call in calls}


def test_a_sync_that_hangs_holds_up_who_waits_for_it_and_nobody_else(
    fused_daemon: DaemonProcess, fuse: FuseDisk
) -> None:
    fused_daemon.start()
    slow, other = spawned(fused_daemon, "slow"), spawned(fused_daemon, "other")
    woken = slow.subscribe("bob")
    held = fuse.arm("fsync", "slow/ledger.jsonl", "hold")
    run = slow.start("echo held")
    held.wait_hit()
    # While that run waits for its disk, all of this is done:
    assert [other.run(f"echo {number}")["seq"] for number in range(5)] == [1, 2, 3, 4, 5]
    assert slow.described()["state"] == "idle"
    assert "held" in fused_daemon.call("term_output", name="slow")["text"]
    assert "held" in "".join(fused_daemon.call("term_screen", name="slow")["lines"])
    assert fused_daemon.call("session_new", handle="eve")["handle"] == "eve"
    assert seqs(slow) == [0], "what is not synced is told to nobody"
    assert woken.unread() == []
    held.disarm()
    assert run.result()["stdout"] == "held\n"
    assert woken.next()["body"].splitlines()[-1] == "held"


@pytest.mark.long
def test_a_stop_does_not_wait_for_a_sync_that_hangs_and_the_next_start_has_the_record(
    fused_daemon: DaemonProcess, fuse: FuseDisk, gate: Gate
) -> None:
    fused_daemon.start()
    terminal, other = spawned(fused_daemon, "stuck"), spawned(fused_daemon, "other")
    held = fuse.arm("fsync", "stuck/ledger.jsonl", "hold")
    run = terminal.start("echo waiting for the disk")
    held.wait_hit()
    in_flight = other.start(f"echo begun; {gate.hold}")
    gate.wait_reached()
    fused_daemon.process.terminate()
    assert in_flight.result()["end"] == "killed_by_restart"
    assert run.outcome()[0] in ("error", "lost")
    held.disarm()  # the kernel ends no process that is in a sync
    assert fused_daemon.wait_stopped() == 0
    assert fused_daemon.shell_processes() == []
    fused_daemon.start()
    assert [(each["cmd"], each["end"]) for each in terminal.records()] == [
        ("true", "exited"),
        ("echo waiting for the disk", "exited"),
    ]


def test_a_terminal_that_the_disk_refused_at_the_start_comes_by_itself_when_it_takes_it(
    fused_daemon: DaemonProcess, fuse: FuseDisk, gate: Gate
) -> None:
    fused_daemon.start()
    terminal, other = spawned(fused_daemon, "refused"), spawned(fused_daemon, "other")
    closed = spawned(fused_daemon, "closed")
    woken = terminal.subscribe("bob")
    terminal.start(f"echo begun; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("begun")
    fused_daemon.kill()
    failing = [fuse.arm("write", f"{name}/shell.json.new") for name in ("refused", "closed")]
    fused_daemon.start()
    assert other.run("echo fine")["stdout"] == "fine\n"
    assert terminal.described()["state"] == "failed"

    def names_the_reason() -> bool:
        error = terminal.refusal("echo no")
        assert error.code == "unavailable"
        reason = "could not be started, and the daemon keeps retrying: cannot write"
        return reason in str(error) and str(error).endswith(EIO)

    # During a retry it is refused by a terminal that ends again, and without the reason.
    until(names_the_reason, "a command is refused with the reason")
    assert woken.next()["body"].splitlines()[1] == "exit ? · killed by restart"
    closed.close()
    for each in failing:
        each.disarm()
    until_state(terminal, "idle")
    assert terminal.run("echo back")["stdout"] == "back\n"
    assert [(each["seq"], each["end"]) for each in terminal.records()] == [
        (0, "exited"),
        (1, "killed_by_restart"),
        (2, "exited"),
    ]
    assert woken.next()["body"].splitlines()[0].startswith("$ echo back")
    names = [info["name"] for info in fused_daemon.call("term_list")["result"]]
    assert names == ["other", "refused"]


REFUSED_AT_A_START = (
    ("write", "/lock"),
    ("read", "/version"),
    ("fsyncdir", "/"),
    ("readdir", "/inboxes"),
    ("rename", "/endpoint.json"),
)


def test_a_disk_that_refuses_a_start_is_told_in_one_sentence(
    fused_daemon: DaemonProcess, fuse: FuseDisk
) -> None:
    fused_daemon.start()
    terminal = spawned(fused_daemon, "kept")
    fused_daemon.call("inbox_read", from_handle="bob")
    fused_daemon.kill()
    for call, path in REFUSED_AT_A_START:
        failing = fuse.arm(call, path)
        fused_daemon.launch()
        assert not fused_daemon.wait_ready(), (call, path)
        assert fused_daemon.wait_stopped() == 1
        failing.disarm()
    log = fused_daemon.log.splitlines()
    told = [line for line in log if line.startswith("aegis-actors: ")]
    assert len(told) == len(REFUSED_AT_A_START), told
    assert all(line.startswith("aegis-actors: cannot ") for line in told), told
    assert all("Input/output error" in line for line in told), told
    fused_daemon.start()
    assert seqs(terminal) == [0]
    assert terminal.run("echo on")["seq"] == 1


def test_a_close_and_a_stop_need_no_disk(
    fused_daemon: DaemonProcess, fuse: FuseDisk, gate: Gate
) -> None:
    """Whatever cannot be written and removed: processes end, and nothing crashes."""
    fused_daemon.start()
    closed, stopped = spawned(fused_daemon, "closed"), spawned(fused_daemon, "stopped")
    stopped.start(f"echo begun; {gate.hold}")
    gate.wait_reached()
    stopped.has_printed("begun")
    failing = [fuse.arm(call, "") for call in ("write", "fsync", "rename", "truncate", "unlink")]
    error = fused_daemon.refusal("term_close", name="closed")
    assert error.code == "storage"
    assert "the next up starts it again unless you close it once more" in str(error)
    assert fused_daemon.shell_processes("closed/") == []
    fused_daemon.process.terminate()
    assert fused_daemon.wait_stopped() == 0
    assert fused_daemon.shell_processes() == []
    for each in failing:
        each.disarm()
    fused_daemon.start()
    assert [each["end"] for each in stopped.records()] == ["exited", "killed_by_restart"]
    assert closed.run("echo on")["seq"] == 1

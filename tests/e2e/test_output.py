"""Output by cursor through a real daemon: long polls, gaps, closed terminals, a kill between."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal, Pending
from tests.e2e.window import window
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]


def output(terminal: LiveTerminal, **arguments: object) -> dict[str, Any]:
    return terminal.daemon.call("term_output", name=terminal.name, **arguments)


def poll(terminal: LiveTerminal, **arguments: object) -> Pending:
    arguments = {"wait_s": GUARD_S, **arguments}
    return terminal.daemon.send("term_output", name=terminal.name, **arguments)


def end_of(terminal: LiveTerminal) -> int:
    """Where the output of a terminal ends that prints nothing."""
    cursor = 0
    while (chunk := output(terminal, cursor=cursor))["next_cursor"] != cursor:
        cursor = chunk["next_cursor"]
    return cursor


def at_rest(terminal: LiveTerminal) -> None:
    """Wait until the whole prompt is in the log: the mark behind it comes last."""
    mark = re.compile(rb"\x1b\]133;B;q=\d+(?:;e=1)?\x07\Z")
    until(lambda: mark.search(terminal.raw()) is not None, "a prompt")


def followed(terminal: LiveTerminal, cursor: int, until: str, **arguments: object) -> str:
    """What is printed from ``cursor`` on, read in steps, up to and with ``until``."""
    text = ""
    while until not in text:
        chunk = output(terminal, cursor=cursor, wait_s=GUARD_S, **arguments)
        assert chunk["next_cursor"] > cursor, "nothing came"
        assert chunk["dropped"] == 0
        text += chunk["text"]
        cursor = chunk["next_cursor"]
    return text


def test_without_a_cursor_it_begins_with_the_last_command(terminal: LiveTerminal) -> None:
    assert output(terminal)["cursor"] == 0
    terminal.run("echo first")
    record = terminal.run("printf 'a\\033[1mb\\033[0m\\r\\n10%%\\r20%%\\n'")
    chunk = output(terminal)
    assert chunk["cursor"] == record["raw_start"]
    assert chunk["text"].startswith("ab\n10%\n20%\n")
    assert (chunk["dropped"], chunk["running"]) == (0, False)
    raw = output(terminal, plain=False, max_bytes=256)
    assert raw["text"].startswith("a\x1b[1mb\x1b[0m\r\r\n10%\r20%\r\n\x1b]133;D;0")


def test_output_is_seen_while_the_command_runs(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(f"printf 'half a line'; {gate.hold}; echo; echo rest")
    gate.wait_reached()
    # The command is ahead of the daemon, which may not have read yet what it printed.
    seen = terminal.daemon.call("term_wait", name=terminal.name, pattern="^half a line")
    assert seen["reason"] == "matched"
    chunk = output(terminal, wait_s=GUARD_S)
    assert (chunk["text"], chunk["running"]) == ("half a line", True)
    waiting = poll(terminal, cursor=chunk["next_cursor"]).has_arrived()
    gate.open()
    assert followed(terminal, chunk["next_cursor"], "rest\n").startswith("\nrest\n")
    assert waiting.result()["text"].startswith("\n")
    assert running.result()["stdout"] == "half a line\nrest\n"


def test_a_poll_answers_with_the_first_output_and_a_quiet_one_with_nothing(
    terminal: LiveTerminal,
) -> None:
    at_rest(terminal)
    cursor = end_of(terminal)
    quiet = output(terminal, cursor=cursor, wait_s=0.2)
    assert quiet == {
        "text": "",
        "cursor": cursor,
        "next_cursor": cursor,
        "dropped": 0,
        "running": False,
    }
    waiting = poll(terminal, cursor=cursor).has_arrived()
    terminal.keys("echo $((6*7))\r")
    assert waiting.result()["text"]
    assert "42" in followed(terminal, cursor, "42")


def test_a_hundred_readers_get_the_same(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(f"echo begun; {gate.hold}; echo for everybody")
    gate.wait_reached()
    terminal.has_printed("begun")  # nothing more is under way
    cursor = end_of(terminal)
    readers = [poll(terminal, cursor=cursor).has_arrived() for _ in range(100)]
    gate.open()
    running.result()
    assert {reader.result()["text"].split("\n")[0] for reader in readers} == {"for everybody"}


def test_so_many_may_wait_and_who_went_away_makes_room(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(f"echo begun; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("begun")
    cursor = end_of(terminal)
    readers = [poll(terminal, cursor=cursor).has_arrived() for _ in range(256)]
    error = terminal.daemon.refusal("term_output", name=terminal.name, cursor=cursor, wait_s=1)
    assert (error.code, "256 calls already wait" in str(error)) == ("busy", True)
    for reader in readers[1:]:
        reader.cancel()
    assert output(terminal, cursor=cursor, wait_s=0.05)["text"] == ""
    gate.open()
    running.result()
    assert readers[0].result()["next_cursor"] > cursor


@pytest.mark.parametrize("size", [256, 65_536])
def test_steps_of_any_size_make_the_whole_of_a_flood(terminal: LiveTerminal, size: int) -> None:
    cursor = end_of(terminal)
    flood = terminal.start(
        "for i in {1..3000}; do printf '%d é€😀 \\033[3%dm*\\n' $i $((i%8)); done"
    )
    text = followed(terminal, cursor, "\n3000 é€😀 *\n", max_bytes=size)
    flood.result()
    lines = [line for line in text.split("\n") if line.endswith("é€😀 *")]
    assert lines == [f"{number} é€😀 *" for number in range(1, 3001)]


def test_what_a_flood_pushed_out_is_counted(terminal: LiveTerminal) -> None:
    record = terminal.run("head -c 25000000 /dev/zero | tr '\\0' '.' | fold -w 99; echo last")
    chunk = output(terminal, cursor=0, max_bytes=1_048_576)
    assert chunk["dropped"] == chunk["cursor"] > 4_000_000
    assert set(chunk["text"]) == {".", "\n"}
    newest = output(terminal, cursor=record["raw_end"] - 6)
    assert newest["text"].startswith("last\n")


def test_a_cursor_beyond_the_end_is_refused(terminal: LiveTerminal) -> None:
    at_rest(terminal)
    error = terminal.daemon.refusal("term_output", name=terminal.name, cursor=10**9)
    assert error.code == "invalid_request"
    assert f"which ends at {end_of(terminal)}" in str(error)


def test_a_close_answers_who_waits_and_the_output_stays(terminal: LiveTerminal, gate: Gate) -> None:
    terminal.run("echo before")
    terminal.start(f"echo begun; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("begun")
    cursor = end_of(terminal)
    waiting = poll(terminal, cursor=cursor).has_arrived()
    terminal.close()
    answer = waiting.result()
    assert (answer["text"], answer["running"]) == ("", False)
    assert "before\n" in output(terminal, cursor=0)["text"]
    assert output(terminal, cursor=cursor)["text"] == ""
    error = terminal.daemon.refusal("term_output", name=terminal.name, cursor=cursor, wait_s=5)
    assert (error.code, "is closed" in str(error)) == ("unavailable", True)
    assert terminal.daemon.refusal("term_output", name="no-such").code == "not_found"


def test_a_shell_that_ends_is_no_end_of_the_output(terminal: LiveTerminal) -> None:
    cursor = end_of(terminal)
    waiting = poll(terminal, cursor=cursor).has_arrived()
    assert terminal.run("echo bye; exit 3")["end"] == "shell_exit"
    assert waiting.result()["next_cursor"] > cursor
    terminal.run("echo again")
    assert "again\n" in followed(terminal, cursor, "again\n")


def test_cursors_go_on_after_a_kill(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    terminal.run("echo one")
    running = terminal.start("echo seen by a reader; sleep 1000")
    cursor, text = 0, ""
    while "seen by a reader\n" not in text:
        chunk = output(terminal, cursor=cursor, wait_s=GUARD_S)
        text, cursor = text + chunk["text"], chunk["next_cursor"]
    own_daemon.kill()
    assert running.outcome()[0] == "lost"
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    later = output(terminal, cursor=cursor)
    assert (later["cursor"], later["dropped"]) == (cursor, 0)
    record = terminal.run("echo two")
    assert record["raw_start"] >= cursor
    assert "two\n" in followed(terminal, cursor, "two\n")
    again = output(terminal, cursor=0, max_bytes=1_048_576)["text"]
    assert again.startswith(text)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_mcp_client_follows_a_command(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, mode: str, gate: Gate
) -> None:
    running = terminal.start(f"echo begun; {gate.hold}; echo done")
    await trio.to_thread.run_sync(gate.wait_reached)
    # Without a cursor the output is that of the last command of which the daemon has read.
    await trio.to_thread.run_sync(terminal.has_printed, "begun")
    text, cursor = "", None
    async with connect_mcp(daemon, mode, "alice") as client:
        while "done\n" not in text:
            arguments = {"name": terminal.name, "wait_s": GUARD_S}
            given: dict[str, object] = {} if cursor is None else {"cursor": cursor}
            reply = await client.call_tool("aegis_term_output", arguments | given)
            assert not reply.is_error
            chunk = reply.structured_content
            assert chunk["next_cursor"] > chunk["cursor"]
            text, cursor = text + chunk["text"], chunk["next_cursor"]
            if "begun\n" in text:
                gate.open()
    assert text.startswith("begun\ndone\n")
    running.result()


def test_a_shell_that_crashes_costs_no_reader_its_output(own_daemon: DaemonProcess) -> None:
    own_daemon.start(faults="mark.end.after@1=crash")
    terminal = own_daemon.terminal("build")
    gate = Gate(own_daemon.root)
    running = terminal.start(f"echo begun; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("begun")
    cursor = output(terminal, wait_s=GUARD_S)["next_cursor"]
    reader = poll(terminal, cursor=cursor).has_arrived()
    waiting = own_daemon.send("term_wait", name="build", timeout=GUARD_S).has_arrived()
    gate.open()
    # Answered just before the crash, or told in one sentence to call again.
    assert reader.outcome() in (("reply", ""), ("error", "unavailable"))
    ended = waiting.result()
    assert (ended["reason"], ended["record"]["end"]) == ("ended", "killed_by_restart")
    assert ended["record"] == running.result()
    assert output(terminal, cursor=cursor)["cursor"] == cursor
    gate.close()
    own_daemon.kill()


def test_in_a_window_what_was_printed_ends_with_a_line(
    daemon: DaemonProcess, terminal: LiveTerminal
) -> None:
    terminal.run("echo shown")
    at_rest(terminal)
    with window(daemon, "term", "output", terminal.name) as opened:
        assert opened.wait_exit() == 0
    assert opened.seen.endswith(b"shown\r\n$ \r\n")
    assert daemon.cli("term", "output", terminal.name).stdout.endswith("shown\n$ ")

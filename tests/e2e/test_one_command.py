"""One command by its seq: a run answered at its start, its output and nothing else, its signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.e2e.test_output import end_of, output

pytestmark = pytest.mark.real


def start(terminal: LiveTerminal, cmd: str) -> dict[str, Any]:
    return terminal.run(cmd, until="started")


def wait_end(terminal: LiveTerminal, seq: int) -> dict[str, Any]:
    outcome = terminal.daemon.call("term_wait", name=terminal.name, seq=seq, timeout=GUARD_S)
    assert outcome["reason"] in ("ended", "closed")
    record: dict[str, Any] = outcome["record"]
    return record


def all_of(terminal: LiveTerminal, seq: int, **arguments: object) -> str:
    """What the command printed, read in steps until it has ended and nothing is left."""
    chunk = output(terminal, seq=seq, wait_s=GUARD_S, **arguments)
    text = str(chunk["text"])
    while chunk["running"] or chunk["next_cursor"] > chunk["cursor"]:
        cursor = chunk["next_cursor"]
        chunk = output(terminal, seq=seq, cursor=cursor, wait_s=GUARD_S, **arguments)
        text += str(chunk["text"])
    return text


@on_both_shells
def test_a_run_until_it_has_started_is_answered_while_it_runs(
    terminal: LiveTerminal, gate: Gate
) -> None:
    record = start(terminal, f"{gate.hold}; echo out; (exit 3)")
    assert (record["seq"], record["end"], record["exit"]) == (0, None, None)
    assert (record["timed_out"], record["needs_input"]) == (False, None)
    gate.wait_reached()
    gate.open()
    final = wait_end(terminal, 0)
    assert (final["exit"], final["stdout"], final["timed_out"]) == (3, "out\n", False)
    assert {**record, **{key: final[key] for key in CHANGES}} == final
    assert terminal.records() == [final]


CHANGES = ("finished_at", "duration_s", "exit", "stdout", "output_bytes", "raw_end", "end")
"""What becomes of a record when its command ends."""


@pytest.mark.parametrize("cmd", ["", "# a comment", "echo 'one"])
def test_a_text_that_starts_nothing_is_answered_as_ever(terminal: LiveTerminal, cmd: str) -> None:
    if cmd.startswith("echo"):
        assert terminal.refusal(cmd, until="started").code == "incomplete_input"
    else:
        record = start(terminal, cmd)
        assert (record["exit"], record["end"]) == (0, "exited")
    assert terminal.run("echo on")["stdout"] == "on\n"


def test_one_that_is_over_by_then_has_its_final_record_or_is_soon_recorded(
    terminal: LiveTerminal,
) -> None:
    for number in range(20):
        record = start(terminal, f"echo {number}")
        assert record["seq"] == number
        assert wait_end(terminal, number)["stdout"] == f"{number}\n"
        assert record["end"] in (None, "exited")
    assert [record["seq"] for record in terminal.records()] == list(range(20))


def test_one_that_waits_for_its_turn_is_busy_or_dropped_as_ever(
    terminal: LiveTerminal, gate: Gate
) -> None:
    holding = start(terminal, gate.hold)
    gate.wait_reached()
    busy = terminal.refusal("echo never", timeout=0.1, until="started")
    assert (busy.code, "was not typed" in str(busy)) == ("busy", True)
    dropped = terminal.start("echo dropped", until="started").has_arrived()
    dropped.cancel()
    next_one = terminal.start("echo next", until="started").has_arrived()
    gate.open()
    assert next_one.result()["seq"] == holding["seq"] + 1
    wait_end(terminal, holding["seq"] + 1)
    assert [record["cmd"] for record in terminal.records()] == [gate.hold, "echo next"]


def test_a_started_run_is_found_again_after_a_kill(own_daemon: DaemonProcess, gate: Gate) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    record = start(terminal, f"echo out; {gate.hold}")
    gate.wait_reached()
    cursor = record["raw_start"]
    while "out\n" not in output(terminal, seq=record["seq"], cursor=cursor, wait_s=GUARD_S)["text"]:
        pass
    own_daemon.kill()
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    killed = wait_end(terminal, record["seq"])
    assert (killed["killed_by_restart"], killed["stdout"]) == (True, "out\n")
    assert all_of(terminal, record["seq"]) == "out\n"
    assert terminal.run("echo on")["seq"] == record["seq"] + 1
    assert all_of(terminal, record["seq"]) == "out\n"


@on_both_shells
def test_the_output_of_each_command_is_its_own(terminal: LiveTerminal) -> None:
    for text in ("one", "two", "three"):
        terminal.run(f"echo {text}; printf %s {text}")
    terminal.keys("echo typed\r")
    terminal.run("echo last")
    texts = [all_of(terminal, record["seq"]) for record in terminal.records()]
    wanted = [f"{text}\n{text}" for text in ("one", "two", "three")]
    assert texts == [*wanted, "typed\n", "last\n"]
    raw = [output(terminal, seq=seq, plain=False)["text"] for seq in range(5)]
    assert raw[0] == "one\r\none"
    assert end_of(terminal) > terminal.records()[-1]["raw_end"]


@pytest.mark.parametrize("size", [256, 4096])
def test_steps_of_any_size_come_to_the_end_and_no_further(
    terminal: LiveTerminal, gate: Gate, size: int
) -> None:
    record = start(terminal, f"{gate.hold}; seq 3000; printf '\\033[1mend'")
    other = terminal.start("echo other")
    gate.open()
    text = all_of(terminal, record["seq"], max_bytes=size)
    assert text == "".join(f"{number}\n" for number in range(1, 3001)) + "end"
    assert other.result()["stdout"] == "other\n"
    assert all_of(terminal, record["seq"], max_bytes=size) == text


def test_who_waits_for_output_is_told_the_end_of_the_command(
    terminal: LiveTerminal, gate: Gate
) -> None:
    record = start(terminal, gate.hold)
    gate.wait_reached()
    at = {"seq": record["seq"], "cursor": record["raw_start"]}
    waiting = terminal.daemon.send("term_output", name=terminal.name, wait_s=GUARD_S, **at)
    waiting.has_arrived()
    gate.open()
    chunk = waiting.result()
    assert (chunk["text"], chunk["running"]) == ("", False)


def test_a_cursor_outside_the_command_and_an_unknown_seq_are_refused(
    terminal: LiveTerminal,
) -> None:
    for text in ("one", "two"):
        terminal.run(f"echo {text}")
    first, second = terminal.records()
    for cursor in (second["raw_start"] - 1, second["raw_end"] + 1):
        error = terminal.daemon.refusal("term_output", name=terminal.name, seq=1, cursor=cursor)
        assert (error.code, "is outside" in str(error)) == ("invalid_request", True)
    assert output(terminal, seq=1, cursor=second["raw_end"])["text"] == ""
    assert output(terminal, seq=0)["cursor"] == first["raw_start"]
    error = terminal.daemon.refusal("term_output", name=terminal.name, seq=2)
    assert error.code == "not_found"


def test_the_output_of_a_command_can_be_read_when_the_terminal_is_closed(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal()
    for text in ("one", "two"):
        terminal.run(f"echo {text}")
    terminal.close()
    assert [all_of(terminal, seq) for seq in (0, 1)] == ["one\n", "two\n"]
    error = terminal.daemon.refusal("term_output", name=terminal.name, seq=2)
    assert error.code == "not_found"


CLOSES: dict[str, Callable[[LiveTerminal], object]] = {
    "close": lambda terminal: terminal.close(),
    "exit": lambda terminal: terminal.daemon.call(
        "term_signal", name=terminal.name, signal="KILL", seq=0
    ),
}


@pytest.mark.parametrize("close", CLOSES.values(), ids=CLOSES)
def test_the_end_of_its_shell_is_the_end_of_its_output(
    new_terminal: NewTerminal, gate: Gate, close: Callable[[LiveTerminal], object]
) -> None:
    terminal = new_terminal()
    record = start(terminal, f"echo out; {gate.reach}; exec sleep 1000")
    gate.wait_reached()
    close(terminal)
    assert all_of(terminal, record["seq"]).startswith("out\n")
    final = wait_end(terminal, record["seq"])
    assert final["end"] in ("closed", "shell_exit")
    assert final["stdout"] == "out\n"


def test_a_signal_for_one_command_reaches_that_one_only(terminal: LiveTerminal, gate: Gate) -> None:
    record = start(terminal, f"({gate.reach}; exec sleep 1000)")
    gate.wait_reached()
    signalled = {"name": terminal.name, "signal": "INT"}
    for seq in (record["seq"] + 1, record["seq"] + 100):
        error = terminal.daemon.refusal("term_signal", seq=seq, **signalled)
        assert error.code == "not_found"
    assert terminal.daemon.call("term_signal", seq=record["seq"], **signalled) == {"ok": True}
    assert wait_end(terminal, record["seq"])["exit"] == 130
    error = terminal.daemon.refusal("term_signal", seq=record["seq"], **signalled)
    assert (error.code, "nothing was signalled" in str(error)) == ("not_found", True)
    assert terminal.run("echo on")["stdout"] == "on\n"

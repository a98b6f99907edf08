"""Who gets which record when: queues, timeouts, reading, and the lives of a terminal."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal

pytestmark = [pytest.mark.real, pytest.mark.every_python]


def moment(text: str) -> datetime:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    return datetime.fromisoformat(text)


def test_a_timeout_gives_the_record_so_far_and_the_end_completes_it(
    terminal: LiveTerminal, gate: Gate, handle: str
) -> None:
    wakes = terminal.subscribe(handle)
    running = terminal.start(f"echo begun; {gate.hold}; echo ended; (exit 7)", timeout=5)
    terminal.has_printed("begun")  # so the daemon has read of its start
    began = time.monotonic()
    so_far = running.result()
    held_s = time.monotonic() - began
    assert so_far["stdout"] == "begun\n"
    assert so_far["timed_out"]
    assert {so_far[name] for name in ("exit", "finished_at", "duration_s", "end")} == {None}
    assert terminal.described()["state"] == "running"
    assert (terminal.records(), wakes.unread()) == ([], [])
    gate.open()
    assert "exit 7" in wakes.next()["body"]
    [record] = terminal.records()
    assert record["duration_s"] >= held_s - 0.001  # it is rounded to milliseconds
    changed = ("stdout", "exit", "finished_at", "duration_s", "end", "output_bytes", "raw_end")
    assert record == so_far | {name: record[name] for name in changed}
    assert (record["stdout"], record["exit"], record["end"]) == ("begun\nended\n", 7, "exited")
    assert wakes.unread() == []


def test_commands_of_several_clients_run_first_come_first_served(
    terminal: LiveTerminal, gate: Gate
) -> None:
    first = terminal.start(gate.hold, from_handle="zero")
    gate.wait_reached()
    queued = [
        terminal.start(f"echo {number}", from_handle=f"agent{number}").has_arrived()
        for number in range(8)
    ]
    gate.open()
    assert first.result()["seq"] == 0
    records = [each.result() for each in queued]
    assert [each["stdout"] for each in records] == [f"{number}\n" for number in range(8)]
    assert [each["writer"] for each in records] == [f"agent:agent{n}" for n in range(8)]
    assert [each["seq"] for each in records] == list(range(1, 9))
    ends = [moment(each["finished_at"]) for each in records]
    starts = [moment(each["started_at"]) for each in records]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_busy_names_the_command_in_flight_and_types_nothing(
    terminal: LiveTerminal, gate: Gate
) -> None:
    running = terminal.start(f": the first; {gate.hold}", from_handle="alice")
    gate.wait_reached()
    error = terminal.refusal("echo never", timeout=0.3, from_handle="bob")
    assert error.code == "busy"
    for part in (terminal.name, "agent:alice", ": the first", "seq 0", "not typed"):
        assert part in str(error)
    gate.open()
    running.result()
    assert terminal.run("echo next")["seq"] == 1
    assert b"never" not in terminal.raw()


@pytest.mark.parametrize("leave", ["cancel", "hang_up"])
def test_a_caller_that_left_while_it_was_queued_types_nothing(
    terminal: LiveTerminal, gate: Gate, leave: str
) -> None:
    running = terminal.start(gate.hold)
    gate.wait_reached()
    leaving = terminal.start("echo never").has_arrived()
    behind = terminal.start("echo behind").has_arrived()
    getattr(leaving, leave)()
    terminal.daemon.call("term_list")
    gate.open()
    running.result()
    assert behind.result()["seq"] == 1
    assert b"never" not in terminal.raw()


def test_records_are_read_by_number_and_since_a_seq(terminal: LiveTerminal) -> None:
    for number in range(7):
        terminal.run(f"echo {number}")

    def read(**arguments: object) -> list[int]:
        return [each["seq"] for each in terminal.read(**arguments)]

    assert read() == [2, 3, 4, 5, 6]
    assert read(last_n=1) == [6]
    assert read(last_n=1000) == list(range(7))
    assert read(since_seq=-1) == list(range(7))
    assert read(since_seq=4) == [5, 6]
    assert read(since_seq=6) == []
    assert read(since_seq=10_000) == []


def test_a_reply_that_would_be_too_long_is_cut_to_fewer_records(terminal: LiveTerminal) -> None:
    for _ in range(18):
        terminal.run("printf %65000s x | tr ' ' a")
    call: Callable[..., dict[str, Any]] = terminal.daemon.call
    since = call("term_read", name=terminal.name, since_seq=-1)
    assert since["more"] is True
    got = [each["seq"] for each in since["result"]]
    assert got == list(range(len(got)))
    assert 4 <= len(got) < 18
    while got[-1] < 17:
        rest = call("term_read", name=terminal.name, since_seq=got[-1])
        got += [each["seq"] for each in rest["result"]]
    assert got == list(range(18))
    assert "more" not in rest
    newest = call("term_read", name=terminal.name, last_n=1000)
    assert newest["more"] is True
    assert newest["result"][-1]["seq"] == 17


def test_a_closed_terminal_can_be_read_and_a_respawn_continues_it(terminal: LiveTerminal) -> None:
    terminal.run("echo one")
    terminal.close()
    names = [info["name"] for info in terminal.daemon.call("term_list")["result"]]
    assert terminal.name not in names
    assert [each["stdout"] for each in terminal.records()] == ["one\n"]
    for command, arguments in (("term_run", {"cmd": "true"}), ("term_keys", {"keys": "x"})):
        error = terminal.daemon.refusal(command, name=terminal.name, **arguments)
        assert (error.code, "closed" in str(error)) == ("unavailable", True)
    again = terminal.daemon.call("term_spawn", name=terminal.name)
    assert (again["state"], again["last_exit"], again["restarts"]) == ("idle", 0, 0)
    record = terminal.run("echo two")
    assert record["seq"] == 1
    first, second = terminal.records()
    assert (first["stdout"], second["stdout"]) == ("one\n", "two\n")
    assert second["raw_start"] >= first["raw_end"]
    raw = terminal.raw()
    assert raw[record["raw_start"] : record["raw_end"]] == b"two\r\n"


@pytest.mark.parametrize("is_open", [True, False])
def test_a_purged_terminal_begins_anew(terminal: LiveTerminal, handle: str, is_open: bool) -> None:
    wakes = terminal.subscribe(handle)
    terminal.run("echo old")
    old = wakes.next()
    if not is_open:
        terminal.close()
    terminal.close(purge=True)
    assert not terminal.directory.exists()
    assert terminal.daemon.refusal("term_read", name=terminal.name).code == "not_found"
    assert terminal.daemon.call("term_spawn", name=terminal.name)["subscribers"] == []
    terminal.subscribe(handle)
    assert terminal.run("echo new")["seq"] == 0
    assert [each["stdout"] for each in terminal.records()] == ["new\n"]
    fresh = wakes.next()
    assert fresh["id"].split("/")[0::2] == old["id"].split("/")[0::2]
    assert fresh["id"] != old["id"]


def test_the_list_tells_the_truth_about_each_terminal(
    daemon: DaemonProcess, terminal: LiveTerminal, gate: Gate
) -> None:
    fresh = terminal.described()
    assert fresh == terminal.info
    assert (fresh["state"], fresh["last_cmd_at"], fresh["last_exit"]) == ("idle", None, None)
    assert (fresh["cols"], fresh["rows"], fresh["shell"]) == (80, 24, "/bin/bash")
    assert (fresh["integration"], fresh["node"], fresh["restarts"]) == ("osc133", "local", 0)
    for number in range(20):
        record = terminal.run(f"(exit {number})")
        info = terminal.described()
        assert (info["state"], info["last_exit"]) == ("idle", number)
        assert info["last_cmd_at"] == record["started_at"]
    running = terminal.start(gate.hold)
    gate.wait_reached()
    assert terminal.described()["state"] == "running"
    gate.open()
    running.result()
    sized = daemon.call("term_spawn", name=f"{terminal.name}-sized", cols=132, rows=50)
    assert (sized["cols"], sized["rows"]) == (132, 50)
    size = daemon.call("term_run", name=sized["name"], cmd="stty size; echo $COLUMNS")
    assert size["stdout"] == "50 132\n132\n"
    daemon.call("term_close", name=sized["name"])


def test_a_terminal_is_idle_as_soon_as_the_run_was_answered(new_terminal: NewTerminal) -> None:
    terminal = new_terminal("PROMPT_COMMAND='sleep 0.3'; PS1='$ '")
    assert terminal.info["state"] == "idle"
    for number in range(3):
        terminal.run(f"echo {number}")
        assert terminal.described()["state"] == "idle"
    assert [each["stdout"] for each in terminal.records()] == ["0\n", "1\n", "2\n"]


def test_a_run_that_cannot_be_typed_in_its_time_is_refused_and_takes_no_number(
    terminal: LiveTerminal, gate: Gate
) -> None:
    running = terminal.start(gate.hold)
    gate.wait_reached()
    for _ in range(3):
        assert terminal.refusal("true", timeout=0.05).code == "busy"
    gate.open()
    running.result()
    assert terminal.run("true")["seq"] == 1


def test_so_many_calls_may_wait_and_the_next_is_told(terminal: LiveTerminal, gate: Gate) -> None:
    running = terminal.start(gate.hold)
    gate.wait_reached()
    waiting = [terminal.start("true") for _ in range(256)]
    for each in waiting:
        each.has_arrived()
    error = terminal.refusal("echo never")
    assert (error.code, "256 commands already wait" in str(error)) == ("busy", True)
    for each in waiting[10:]:
        each.cancel()
    queued = terminal.start("echo queued").has_arrived()
    gate.open()
    running.result()
    assert [each.result()["seq"] for each in waiting[:10]] == list(range(1, 11))
    assert queued.result()["seq"] == 11

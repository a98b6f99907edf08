"""Traps 5, 6, 7, 8 and 13: an end, and output, belong to the command that they came from."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import Gate, LiveTerminal

pytestmark = [pytest.mark.real, on_both_shells]


def outcome(record: dict[str, Any]) -> tuple[int | None, str, str | None]:
    return record["exit"], record["stdout"], record["end"]


def test_trap_05_after_a_timeout_the_next_run_has_its_own_output_and_exit(
    terminal: LiveTerminal, gate: Gate
) -> None:
    slow = f"echo begun; {gate.hold}; echo ended; (exit 5)"
    so_far = terminal.run(slow, timeout=5)
    assert (so_far["timed_out"], so_far["stdout"], so_far["end"]) == (True, "begun\n", None)
    following = terminal.start("echo mine; (exit 6)").has_arrived()
    gate.open()
    assert outcome(following.result()) == (6, "mine\n", "exited")
    first, second = terminal.records()
    assert (first["seq"], *outcome(first)) == (0, 5, "begun\nended\n", "exited")
    assert (second["seq"], *outcome(second)) == (1, 6, "mine\n", "exited")


@pytest.mark.parametrize("leave", ["cancel", "hang_up"])
def test_trap_06_after_its_caller_left_the_command_goes_on_and_the_next_run_has_its_own(
    terminal: LiveTerminal, gate: Gate, leave: str
) -> None:
    abandoned = terminal.start(f"echo begun; {gate.hold}; echo ended; (exit 5)")
    gate.wait_reached()
    getattr(abandoned, leave)()
    following = terminal.start("echo mine; (exit 6)").has_arrived()
    gate.open()
    assert outcome(following.result()) == (6, "mine\n", "exited")
    first = terminal.records()[0]
    assert (*outcome(first), first["timed_out"]) == (5, "begun\nended\n", "exited", False)


def test_trap_07_an_interrupt_ends_the_command_in_front_and_not_the_run_behind_it(
    terminal: LiveTerminal, gate: Gate
) -> None:
    for number in range(5):
        interrupted = terminal.start(f"echo {number}; {gate.hold}")
        gate.wait_reached()
        terminal.keys("\x03")
        following = terminal.run("echo mine")
        assert outcome(following) == (0, "mine\n", "exited")
        record = interrupted.result()
        assert record["exit"] == 130
        assert record["stdout"].startswith(f"{number}\n")
        assert record["seq"] + 1 == following["seq"]


def test_trap_07_an_interrupt_at_the_empty_prompt_costs_the_next_run_nothing(
    terminal: LiveTerminal,
) -> None:
    for number in range(5):
        terminal.keys("\x03")
        assert outcome(terminal.run(f"echo {number}")) == (0, f"{number}\n", "exited")
    assert [record["cmd"] for record in terminal.records()] == [f"echo {n}" for n in range(5)]


@pytest.mark.parametrize(
    "text",
    [
        r"\e]133;D;0\a",
        r"\e]133;D;0\e\\",
        r"\e]133;C\a",
        r"\e]133;A\a\e]133;B\a",
        r"\e]133;D;0;n=guessed;q=999\a",
        r"\e]133;C;n=;q=2\a\e]133;D;1;n=;q=3\a",
        r"\e]133;P;k=s\a",
    ],
)
def test_trap_08_a_program_that_prints_marks_moves_nothing(
    terminal: LiveTerminal, gate: Gate, text: str
) -> None:
    running = terminal.start(f"printf '{text}'; {gate.hold}; echo end; (exit 9)")
    gate.wait_reached()
    assert terminal.described()["state"] == "running"
    gate.open()
    assert outcome(running.result()) == (9, "end\n", "exited")
    assert outcome(terminal.run("echo next")) == (0, "next\n", "exited")


def test_trap_08_an_old_raw_log_with_real_marks_moves_nothing(
    new_terminal: NewTerminal, terminal: LiveTerminal
) -> None:
    for number in range(3):
        terminal.run(f"echo {number}; (exit {number})")
    terminal.close()
    other = new_terminal()
    log = shlex.quote(str(terminal.directory / "raw.log"))
    assert b"\x1b]133;D;" in terminal.raw()
    record = other.run(f"cat {log}; (exit 8)")
    assert (record["exit"], record["end"], record["seq"]) == (8, "exited", 0)
    own = shlex.quote(str(other.directory / "raw.log"))
    assert other.run(f"cat {own}; (exit 7)")["exit"] == 7
    assert [each["exit"] for each in other.records()] == [8, 7]


def test_trap_13_what_a_background_job_prints_belongs_to_no_record(
    terminal: LiveTerminal, new_gate: Callable[[], Gate]
) -> None:
    between, printed = new_gate(), new_gate()
    record = terminal.run(f"({between.hold}; echo STRAY; {printed.hold}) &")
    assert record["exit"] == 0
    assert terminal.run("echo one")["stdout"] == "one\n"
    between.open()
    printed.wait_reached()
    assert terminal.run("echo two")["stdout"] == "two\n"
    printed.open()
    assert b"STRAY" in terminal.raw()
    assert not any("STRAY" in each["stdout"] for each in terminal.records())


def test_trap_13_the_notice_that_a_job_is_done_belongs_to_no_record(
    terminal: LiveTerminal, gate: Gate
) -> None:
    terminal.run(f"({gate.hold}) &")
    gate.wait_reached()
    gate.open()
    terminal.run("wait %1")
    assert terminal.run("echo one")["stdout"] == "one\n"
    terminal.run("true &")
    assert terminal.run("echo two")["stdout"] == "two\n"
    assert b"done" in terminal.raw().lower()

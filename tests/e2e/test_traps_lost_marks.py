"""Trap 12: a shell that lost its marks is noticed, and has them again, or is called "fallback"."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, Gate, LiveTerminal

pytestmark = pytest.mark.real


def outcome(record: dict[str, Any]) -> tuple[int | None, str, str | None]:
    return record["exit"], record["stdout"], record["end"]


def check_exact(terminal: LiveTerminal, first_seq: int) -> None:
    """Commands are followed exactly: runs, and what somebody types."""
    expected: list[tuple[str, int, str]] = [
        ("echo one", 0, "one\n"),
        ("false", 1, ""),
        ("false", 1, ""),
        ("echo two\n(exit 7)", 7, "two\n"),
        ("true", 0, ""),
    ]
    for number, (cmd, exit_code, stdout) in enumerate(expected):
        record = terminal.run(cmd)
        assert (record["seq"], record["cmd"]) == (first_seq + number, cmd)
        assert outcome(record) == (exit_code, stdout, "exited")
    terminal.keys("echo typed; (exit 9)\r", from_handle="ann")
    assert terminal.run("echo last")["stdout"] == "last\n"
    typed = terminal.read(last_n=2)[0]
    assert (typed["cmd"], typed["writer"]) == ("echo typed; (exit 9)", "agent:ann")
    assert outcome(typed) == (9, "typed\n", "exited")
    info = terminal.described()
    assert (info["integration"], info["state"]) == ("osc133", "idle")


@pytest.mark.parametrize(
    "cmd",
    [
        "trap - DEBUG",
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND=:",
        "PS1='x '",
        "PS0=",
        "PS1='x '; PS0=; PS2=",
        "unset PROMPT_COMMAND; PS0=",
        "set -o posix",
        "shopt -u promptvars",
        "set -o vi",
    ],
)
def test_trap_12_what_is_overwritten_is_put_back_and_costs_no_record(
    terminal: LiveTerminal, cmd: str
) -> None:
    assert outcome(terminal.run(cmd)) == (0, "", "exited")
    check_exact(terminal, 1)


@pytest.mark.parametrize(
    "cmd",
    [
        "trap - DEBUG; unset PROMPT_COMMAND; PS1='x '",
        "trap - DEBUG; unset PROMPT_COMMAND; PS1='x '; PS0=; PS2=",
        "unset __aegis_n",
        "unset -f __aegis_first __aegis_last __aegis_probe; unset PROMPT_COMMAND; PS1='x '",
        "exec bash",
        "exec bash --norc",
        "exec -a -bash bash",
        "exec bash --posix",
    ],
)
def test_trap_12_a_shell_without_its_hook_gets_it_again_and_the_command_is_lost(
    terminal: LiveTerminal, cmd: str
) -> None:
    record = terminal.run(f"cd /tmp; kept=word; {cmd}", timeout=GUARD_S)
    assert (record["exit"], record["end"], record["timed_out"]) == (None, "lost", False)
    check_exact(terminal, 1)
    assert terminal.run("pwd")["stdout"] == "/tmp\n"
    kept = "" if "exec" in cmd else "word"
    assert terminal.run('printf %s "$kept"')["stdout"] == kept
    assert terminal.described()["restarts"] == 0


@pytest.mark.parametrize("cmd", ["exec bash", "exec bash --norc"])
def test_trap_12_the_lost_record_holds_no_prompt_and_the_history_no_line_of_ours(
    new_terminal: NewTerminal, cmd: str
) -> None:
    terminal = new_terminal("PS1='prompt> '\nHISTFILE=\n")
    record = terminal.run(f"echo before; {cmd}")
    assert outcome(record) == (None, "before\n", "lost")
    history = terminal.run("history")["stdout"]
    assert "history" in history
    assert "init.sh" not in history


def test_trap_12_a_shell_that_loses_its_hook_again_and_again_gets_it_each_time(
    terminal: LiveTerminal,
) -> None:
    lose = "unset -f __aegis_first __aegis_last __aegis_probe; unset PROMPT_COMMAND; PS1='x '"
    for _ in range(4):
        record = terminal.run(lose, timeout=GUARD_S)
        assert (record["exit"], record["end"]) == (None, "lost")
    check_exact(terminal, 4)


def test_trap_12_a_shell_replaced_again_and_again_is_followed(terminal: LiveTerminal) -> None:
    for number in range(4):
        record = terminal.run("exec bash")
        assert (record["seq"], record["end"]) == (2 * number, "lost")
        assert terminal.run("echo here")["stdout"] == "here\n"
    assert terminal.described()["restarts"] == 0


def test_trap_12_a_person_may_replace_the_shell_too(terminal: LiveTerminal) -> None:
    terminal.keys("exec bash\r", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
    typed = terminal.records()[0]
    assert (typed["writer"], typed["exit"], typed["end"]) == ("agent:ann", None, "lost")


def test_trap_12_a_start_up_file_may_replace_the_shell(new_terminal: NewTerminal) -> None:
    terminal = new_terminal("if [ -z \"$again\" ]; then again=1 exec bash; fi\nPS1='$ '\n")
    assert terminal.run("echo $again")["stdout"] == "1\n"
    check_exact(terminal, 2)  # behind the notice of what replaced the shell


@pytest.mark.parametrize("cmd", ["exec 2>/dev/null", "exec 2>log", "exec >/dev/null 2>&1"])
def test_trap_12_marks_go_to_the_terminal_when_standard_error_goes_elsewhere(
    terminal: LiveTerminal, cmd: str
) -> None:
    assert outcome(terminal.run(cmd)) == (0, "", "exited")
    prints = ">&2" not in cmd and ">/dev/null 2>&1" not in cmd
    for exit_code in (0, 3, 3):
        record = terminal.run(f"echo out; echo err >&2; (exit {exit_code})")
        assert outcome(record) == (exit_code, "out\n" if prints else "", "exited")
    terminal.run("exec >/dev/tty 2>&1")
    assert outcome(terminal.run("echo out; echo err >&2")) == (0, "out\nerr\n", "exited")


def test_trap_12_the_line_editor_of_a_command_is_not_taken_for_the_prompt(
    terminal: LiveTerminal,
) -> None:
    record = terminal.run("read -rep 'which? ' x; echo got $x")
    assert record["needs_input"] == {"kind": "input", "program": "bash"}
    terminal.keys("this\r")
    assert terminal.run("true")["exit"] == 0
    assert outcome(terminal.records()[0]) == (0, "which? this\ngot this\n", "exited")


@pytest.mark.parametrize("cmd", ["exec sleep 0.2", "exec sh -c 'exit 3'"])
def test_trap_12_another_program_in_the_shell_s_place_ends_as_the_shell(
    terminal: LiveTerminal, cmd: str
) -> None:
    record = terminal.run(cmd)
    assert (record["exit"], record["end"]) == (3 if "3" in cmd else 0, "shell_exit")
    assert terminal.run("echo fresh")["stdout"] == "fresh\n"


def test_trap_12_a_script_in_the_shell_s_place_is_left_alone(
    terminal: LiveTerminal,
) -> None:
    record = terminal.run("exec bash -c 'read -re x; echo got $x; exit 4'")
    assert record["needs_input"] == {"kind": "input", "program": "bash"}
    terminal.keys("word\r")
    assert terminal.run("echo fresh")["stdout"] == "fresh\n"
    replaced = terminal.records()[0]
    assert (replaced["exit"], replaced["end"]) == (4, "shell_exit")
    assert "got word\n" in replaced["stdout"]


def test_trap_12_a_shell_that_cannot_read_its_hook_is_typed_to(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    """It refuses to read any file."""
    terminal.run("mkdir -p bare; printf '%s\\n' 'enable -n source .' >bare/rc")
    record = terminal.run("exec bash --rcfile bare/rc", timeout=GUARD_S)
    assert (record["exit"], record["end"]) == (None, "lost")
    assert terminal.described()["integration"] == "fallback"
    for number in range(20):  # one right behind the other: the shell reads on meanwhile
        word = f"word{number}"
        record = terminal.run(f"echo {word}")
        assert (record["end"], record["exit"]) == ("exited", None)
        assert f"{word}\n" in record["stdout"]
    with closing(Gate(tmp_path)) as gate:
        interrupted = terminal.start(gate.hold)
        gate.wait_reached()
        terminal.keys("\x03")
        assert interrupted.result()["end"] == "lost"
    assert "on\n" in terminal.run("echo on")["stdout"]


@pytest.mark.long
def test_trap_12_a_shell_that_answers_nothing_is_called_fallback_and_hangs_nobody(
    terminal: LiveTerminal,
) -> None:
    """A restricted bash reads no file by its path, and runs no program by one."""
    record = terminal.run("exec bash -r")
    assert record["needs_input"] == {"kind": "input", "program": "bash"}
    assert terminal.refusal("echo mine", timeout=0.3).code == "busy"
    terminal.keys("exit 6\r")
    assert terminal.run("echo fresh")["stdout"] == "fresh\n"
    replaced = terminal.records()[0]
    assert (replaced["exit"], replaced["end"]) == (6, "shell_exit")
    assert terminal.described()["integration"] == "osc133"

"""``stderr="separate"``: standard error of a run is told apart, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real


@pytest.fixture
def apart(new_terminal: NewTerminal) -> LiveTerminal:
    """A terminal whose runs have their standard error apart."""
    return new_terminal(stderr="separate")


def outcome(record: dict[str, Any]) -> tuple[int | None, str, str]:
    return record["exit"], record["stdout"], record["stderr"]


@pytest.mark.parametrize(
    ("cmd", "exit_code", "stdout", "stderr"),
    [
        ("echo out; echo err >&2", 0, "out\n", "err\n"),
        ("true", 0, "", ""),
        ("(exit 7)", 7, "", ""),
        ("", 0, "", ""),
        ("# a comment", 0, "", ""),
        ("printf 'no end' >&2", 0, "", "no end"),
        ("echo one\necho two >&2\n(exit 3)", 3, "one\n", "two\n"),
        ("cat >&2 <<'X'\na\tb!\nX\necho after", 0, "after\n", "a\tb!\n"),
        ("{ echo sub; echo suberr >&2; } | cat", 0, "sub\n", "suberr\n"),
        ("bash -c 'echo child >&2; exit 4'", 4, "", "child\n"),
        ("(echo half >&2) | wc -l", 0, "0\n", "half\n"),
        ("if [[ -t 0 && -t 1 && -t 2 ]]; then echo all; fi", 0, "all\n", ""),
        ("echo to the file 2>/dev/null >&2", 0, "", ""),
        ("printf '\\e[31mred\\e[0m\\nover\\rOVER\\n' >&2", 0, "", "red\nOVER\n"),
    ],
)
@on_both_shells
def test_standard_error_is_told_apart(
    apart: LiveTerminal, cmd: str, exit_code: int, stdout: str, stderr: str
) -> None:
    record = apart.run(cmd)
    assert outcome(record) == (exit_code, stdout, stderr)
    assert (record["cmd"], record["end"]) == (cmd, "exited")


def test_what_the_shell_itself_says_is_standard_error(apart: LiveTerminal) -> None:
    assert "command not found" in apart.run("no_such_command")["stderr"]
    record = apart.run("echo (a")
    assert (record["exit"], record["stdout"]) == (2, "")
    assert "syntax error" in record["stderr"]
    assert outcome(apart.run("(exit 2); # as before")) == (2, "", "")


def test_the_state_of_the_shell_stays_from_run_to_run(apart: LiveTerminal, tmp_path: Path) -> None:
    apart.run(f"cd {tmp_path}; var=kept; f() {{ echo in f >&2; }}; set -o noclobber")
    assert outcome(apart.run("pwd; echo $var; f; shopt -po noclobber")) == (
        0,
        f"{tmp_path}\nkept\nset -o noclobber\n",
        "in f\n",
    )


def test_history_holds_the_text_and_only_that(apart: LiveTerminal) -> None:
    apart.run("echo 'a  b' >&2")
    record = apart.run("history 2 | sed 's/^ *[0-9]* *//'")
    assert record["stdout"] == "echo 'a  b' >&2\nhistory 2 | sed 's/^ *[0-9]* *//'\n"


def test_it_still_shows_in_the_raw_log(apart: LiveTerminal) -> None:
    record = apart.run("echo shown >&2")
    assert b"shown\r\n" in apart.raw()[record["raw_start"] : record["raw_end"]]


@pytest.mark.parametrize("cmd", ["echo 'open", "if true; then", "cat <<X\ntext"])
@on_both_shells
def test_trap_04_what_cannot_be_read_to_its_end_is_refused(apart: LiveTerminal, cmd: str) -> None:
    assert apart.refusal(cmd).code == "incomplete_input"
    assert outcome(apart.run("echo on; echo err >&2")) == (0, "on\n", "err\n")
    assert [record["cmd"] for record in apart.records()] == ["echo on; echo err >&2"]


@on_both_shells
def test_trap_05_a_timeout_then_the_next_run_each_have_their_own(
    apart: LiveTerminal, gate: Gate
) -> None:
    late = apart.start(f"echo early >&2; {gate.hold}; echo late >&2", timeout=5)
    gate.wait_reached()
    record = late.result()
    assert (record["timed_out"], record["stderr"], record["end"]) == (True, "early\n", None)
    gate.open()
    assert outcome(apart.run("echo mine >&2")) == (0, "", "mine\n")
    assert [record["stderr"] for record in apart.records()] == ["early\nlate\n", "mine\n"]


@on_both_shells
def test_trap_07_an_interrupt_belongs_to_the_interrupted_command(
    apart: LiveTerminal, gate: Gate
) -> None:
    running = apart.start(f"echo before >&2; {gate.hold}")
    gate.wait_reached()
    apart.keys("\x03")
    record = running.result()
    assert (record["exit"], record["stderr"].splitlines()[0]) == (130, "before")
    assert outcome(apart.run("echo on >&2")) == (0, "", "on\n")


@pytest.mark.parametrize(
    ("cmd", "exit_code"), [("echo last >&2; exit 3", 3), ("set -e; echo last >&2; false", 1)]
)
@on_both_shells
def test_trap_10_a_shell_that_ends_has_said_what_it_said(
    apart: LiveTerminal, cmd: str, exit_code: int
) -> None:
    record = apart.run(cmd)
    assert (record["exit"], record["end"]) == (exit_code, "shell_exit")
    assert "last" in record["stderr"].splitlines()
    assert outcome(apart.run("echo fresh >&2")) == (0, "", "fresh\n")


def test_trap_10_a_program_that_replaces_the_shell_keeps_it_apart(apart: LiveTerminal) -> None:
    record = apart.run("exec sh -c 'echo gone >&2; exit 5'")
    assert (record["exit"], record["stderr"], record["end"]) == (5, "gone\n", "shell_exit")


@on_both_shells
def test_a_redirection_of_the_shell_lasts_as_long_as_its_command(
    apart: LiveTerminal, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    assert outcome(apart.run(f"exec 2>{log}; echo logged >&2")) == (0, "", "")
    assert log.read_text() == "logged\n"
    assert outcome(apart.run("echo seen >&2")) == (0, "", "seen\n")


@pytest.mark.parametrize("cmd", ["unset PROMPT_COMMAND", "PROMPT_COMMAND= PS0= PS1='> '"])
def test_trap_12_without_the_hook_in_its_place_the_next_run_is_whole(
    apart: LiveTerminal, cmd: str
) -> None:
    record = apart.run(f"{cmd}; echo err >&2")
    assert (record["stdout"], record["stderr"]) == ("", "err\n")
    assert outcome(apart.run("echo out; echo again >&2")) == (0, "out\n", "again\n")
    assert b"init.sh" not in apart.raw(), "it has its hook, and was made to read it again"


def test_trap_13_a_background_job_belongs_to_no_record(apart: LiveTerminal, gate: Gate) -> None:
    apart.run(f"({gate.hold}; echo from the job >&2) &")
    gate.wait_reached()
    gate.open()
    apart.run("wait")
    assert b"from the job" in apart.raw()
    assert apart.records()[0]["stderr"].startswith("[1]")


@on_both_shells
def test_what_somebody_types_is_not_parted(apart: LiveTerminal) -> None:
    apart.keys("echo typed >&2\r", from_handle="ann")
    apart.run("true")
    typed, _ = apart.records()
    assert (typed["cmd"], typed["stdout"], typed["stderr"]) == ("echo typed >&2", "typed\n", "")


def test_trap_23_a_flood_is_bounded(apart: LiveTerminal) -> None:
    record = apart.run("seq 300000 >&2; echo done")
    assert (record["exit"], record["stdout"], record["truncated"]) == (0, "done\n", True)
    assert len(record["stderr"].encode()) <= 65_536
    assert record["stderr"].startswith("1\n2\n")
    assert record["stderr"].endswith("\n300000\n")


def test_a_long_text_arrives_exactly(apart: LiveTerminal) -> None:
    text = "ü\t" * 20_000
    record = apart.run(f"printf %s '{text}' | wc -c >&2")
    assert outcome(record) == (0, "", f"{len(text.encode())}\n")


def test_both_windows_have_the_size(apart: LiveTerminal) -> None:
    apart.daemon.call("term_resize", name=apart.name, cols=90, rows=20)
    size = "print(*os.get_terminal_size(1), *os.get_terminal_size(2))"
    record = apart.run(f"python3 -c 'import os; {size}'")
    assert record["stdout"] == "90 20 90 20\n"


def test_it_stays_so_across_a_restart_and_what_was_killed_has_both_in_its_output(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()
    own_daemon.call("term_spawn", name="build", stderr="separate")
    terminal = own_daemon.terminal("build")
    assert terminal.run("echo err >&2")["stderr"] == "err\n"
    shown = terminal.run(f"echo out; echo err >&2; {gate.hold}", timeout=5)
    assert (shown["timed_out"], shown["stdout"], shown["stderr"]) == (True, "out\n", "err\n")
    own_daemon.kill()
    own_daemon.start()
    again = own_daemon.terminal("build")
    assert outcome(again.run("echo out; echo err >&2")) == (0, "out\n", "err\n")
    killed = again.records()[1]
    assert (killed["killed_by_restart"], killed["stderr"]) == (True, "")
    assert set(killed["stdout"].split()) >= {"out", "err"}


def test_a_subscriber_is_shown_both(apart: LiveTerminal, handle: str) -> None:
    wakes = apart.subscribe(handle)
    apart.run("echo out; echo err >&2")
    assert "out\n── stderr ──\nerr" in wakes.next()["text"]


def test_merged_is_as_ever(terminal: LiveTerminal) -> None:
    assert outcome(terminal.run("echo out; echo err >&2")) == (0, "out\nerr\n", "")

"""Traps 3, 4, 14 and 34: what reaches the shell is exactly what was given, and only that."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, needs_zsh, on_both_shells
from tests.e2e.harness import LiveTerminal

pytestmark = pytest.mark.real


def outcome(record: dict[str, Any]) -> tuple[int | None, str, str | None]:
    return record["exit"], record["stdout"], record["end"]


@pytest.mark.parametrize(
    ("cmd", "stdout"),
    [
        ('echo "wow!there"', "wow!there\n"),
        ('echo "!!"', "!!\n"),
        ("echo !$ !echo", "!$ !echo\n"),
        ("echo a^b^c", "a^b^c\n"),
        ("^a^b", None),
    ],
)
@pytest.mark.parametrize(
    ("shell", "startup"),
    [
        ("bash", None),
        ("bash", "set -H; PROMPT_COMMAND='set -H'"),
        pytest.param("zsh", None, marks=needs_zsh),
        pytest.param("zsh", "precmd() { setopt bang_hist correct_all }", marks=needs_zsh),
    ],
)
def test_trap_03_an_exclamation_mark_means_itself(
    new_terminal: NewTerminal, startup: str | None, cmd: str, stdout: str | None
) -> None:
    terminal = new_terminal(startup)
    terminal.run("echo first")
    record = terminal.run(cmd)
    assert record["cmd"] == cmd
    if stdout is None:
        assert record["exit"] == 127
    else:
        assert outcome(record) == (0, stdout, "exited")


@on_both_shells
@pytest.mark.parametrize(
    "cmd",
    [
        "echo 'open quote",
        'echo "open quote',
        "if true",
        "if true; then echo x",
        "cat <<END\nno end",
        "for i in 1 2",
        "f() {",
        "echo \\",
        "echo $(date",
        "echo one\nif true",
    ],
)
def test_trap_04_what_the_shell_cannot_finish_reading_is_interrupted_and_fails(
    terminal: LiveTerminal, cmd: str
) -> None:
    error = terminal.refusal(cmd)
    assert error.code == "incomplete_input"
    assert "interrupted" in str(error)
    assert outcome(terminal.run("echo after")) == (0, "after\n", "exited")


@on_both_shells
def test_trap_04_incomplete_input_gives_its_number_back(terminal: LiveTerminal) -> None:
    assert terminal.run("true")["seq"] == 0
    terminal.refusal("echo 'never shown")
    assert terminal.run("echo shown")["seq"] == 1
    assert [record["seq"] for record in terminal.records()] == [0, 1]


def test_trap_04_a_line_that_ran_before_the_open_one_is_recorded(terminal: LiveTerminal) -> None:
    error = terminal.refusal("echo ran\necho 'open")
    assert "seq 0" in str(error)
    [record] = terminal.records()
    assert record["stdout"].startswith("ran\n")


@pytest.mark.parametrize("shell", [pytest.param("zsh", marks=needs_zsh)])
def test_trap_04_zsh_runs_no_line_before_it_has_read_all(terminal: LiveTerminal) -> None:
    assert "did not run" in str(terminal.refusal("echo ran\necho 'open"))
    assert terminal.records() == []


@on_both_shells
def test_trap_14_a_literal_tab_completes_nothing(terminal: LiveTerminal) -> None:
    assert terminal.run("printf '%s|' a\tb 'c\td'")["stdout"] == "a|b|c\td|"


@on_both_shells
def test_trap_14_a_line_of_5000_characters_arrives_exactly(terminal: LiveTerminal) -> None:
    word = "".join(chr(ord("a") + number % 26) for number in range(5_000))
    record = terminal.run(f"printf %s {word} | md5sum; printf %s {word}")
    assert record["stdout"].endswith(word)
    assert record["cmd"] == f"printf %s {word} | md5sum; printf %s {word}"


@on_both_shells
def test_trap_14_a_script_of_100_kilobytes_is_one_record(terminal: LiveTerminal) -> None:
    lines = [f": line {number} {'x' * 80}" for number in range(1_100)]
    script = "\n".join([*lines, "echo done; (exit 6)"])
    assert len(script) > 100_000
    record = terminal.run(script)
    assert outcome(record) == (6, "done\n", "exited")
    assert record["cmd"] == script
    assert len(terminal.records()) == 1


@on_both_shells
@pytest.mark.parametrize("text", ["grün 日本語 🟢 é", "e\u0301\u200d👩\u200d💻", "\u00a0\u202e"])
def test_trap_14_utf8_arrives_exactly(terminal: LiveTerminal, tmp_path: Path, text: str) -> None:
    copy = tmp_path / "copy"
    terminal.run(f"printf %s {shlex.quote(text)} >{shlex.quote(str(copy))}")
    assert copy.read_text() == text


@on_both_shells
@pytest.mark.parametrize("number", [1, 2, 3, 7, 8, 9, 13, 17, 19, 21, 22, 26, 27, 28, 127])
def test_trap_14_control_characters_arrive_exactly(
    terminal: LiveTerminal, tmp_path: Path, number: int
) -> None:
    copy = tmp_path / "copy"
    terminal.run(f"printf %s 'a{chr(number)}b' >{shlex.quote(str(copy))}")
    assert copy.read_bytes() == b"a" + bytes([number]) + b"b"


@on_both_shells
def test_trap_14_leading_blanks_and_a_here_document_arrive_exactly(terminal: LiveTerminal) -> None:
    record = terminal.run("  cat <<'END'\n\tindented $x !!\n  two\nEND")
    assert outcome(record) == (0, "\tindented $x !!\n  two\n", "exited")


@on_both_shells
def test_trap_34_a_line_half_typed_by_one_keeps_the_run_of_another_away(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    precious = tmp_path / "build"
    precious.mkdir()
    terminal.keys("echo half ", from_handle="ann")
    error = terminal.refusal(f"rm -rf {precious}", timeout=0.4)
    assert error.code == "busy"
    assert "agent:ann is typing" in str(error)
    assert precious.exists()
    waiting = terminal.start("echo whole").has_arrived()
    terminal.keys("done\r", from_handle="ann")
    assert outcome(waiting.result()) == (0, "whole\n", "exited")
    typed, submitted = terminal.records()
    assert (typed["cmd"], typed["stdout"], typed["writer"]) == (
        "echo half done",
        "half done\n",
        "agent:ann",
    )
    assert submitted["cmd"] == "echo whole"


@on_both_shells
def test_trap_34_a_screen_that_was_cleared_keeps_nobody_away(terminal: LiveTerminal) -> None:
    terminal.keys("\x0c", from_handle="ann")
    assert outcome(terminal.run("echo mine")) == (0, "mine\n", "exited")
    terminal.keys("\x0cecho half ", from_handle="ann")
    assert "agent:ann is typing" in str(terminal.refusal("echo mine", timeout=0.4))
    terminal.keys("\x0c", from_handle="bob")
    assert "is typing" in str(terminal.refusal("echo mine", timeout=0.4))


@on_both_shells
def test_trap_34_a_search_in_the_history_picks_nothing(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    terminal.run(f"echo old; : rm -rf {precious}")
    terminal.keys("\x12", from_handle="ann")
    assert terminal.refusal("old", timeout=0.4).code == "busy"
    terminal.keys("\x03", from_handle="ann")
    assert outcome(terminal.run("echo new")) == (0, "new\n", "exited")
    assert [each["cmd"] for each in terminal.records()][1:] == ["echo new"]


@on_both_shells
def test_trap_34_a_secondary_prompt_of_somebody_keeps_others_away(terminal: LiveTerminal) -> None:
    terminal.keys("echo 'first\r", from_handle="ann")
    error = terminal.refusal("echo mine", timeout=0.4)
    assert (error.code, "agent:ann is typing" in str(error)) == ("busy", True)
    terminal.keys("second'\r", from_handle="ann")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
    assert terminal.records()[0]["stdout"] == "first\nsecond\n"


@on_both_shells
def test_trap_34_a_line_that_its_writer_gave_up_frees_the_terminal(terminal: LiveTerminal) -> None:
    terminal.keys("rm -rf ", from_handle="ann")
    waiting = terminal.start("echo mine").has_arrived()
    terminal.keys("\x03", from_handle="ann")
    assert outcome(waiting.result()) == (0, "mine\n", "exited")
    [record] = terminal.records()
    assert record["cmd"] == "echo mine"

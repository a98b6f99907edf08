"""Traps 15 and 30: a full-screen program that is stopped or ended from outside."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.e2e.conftest import on_both_shells
from tests.e2e.harness import LiveTerminal
from tests.e2e.screens import ended, is_main, needs, opened, wait_screen

pytestmark = [pytest.mark.real, needs("vim")]

VIM = "vim -u NONE -N -i NONE -n"
"""Without anything that another vim, or a start-up file, left behind."""


def opened_vim(terminal: LiveTerminal, tmp_path: Path) -> int:
    """A vim that inserts, with text that was not saved; gives its seq."""
    seq = opened(terminal, f"{VIM} {shlex.quote(str(tmp_path / 'notes.txt'))}")
    terminal.keys("ione\rtwo\rthree")
    wait_screen(terminal, "three\n")
    return seq


def kill(terminal: LiveTerminal, signal: str) -> None:
    terminal.daemon.call("term_signal", name=terminal.name, signal=signal)


@on_both_shells
def test_trap_30_after_a_kill_on_the_alternate_screen_the_prompt_is_sane_and_is_seen(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    """The mark of the command's end leaves that screen, and the shell continues on its own."""
    seq = opened_vim(terminal, tmp_path)
    kill(terminal, "KILL")
    record = ended(terminal, seq)
    assert (record["exit"], record["stdout"]) == (137, "")
    modes = terminal.run("stty -a")["stdout"].replace(";", " ").split()
    assert {"icanon", "echo", "isig", "opost", "icrnl"} <= set(modes)
    terminal.run("clear")
    record = terminal.run("printf 'a\\nb\\n'")
    assert record["stdout"] == "a\nb\n"
    screen = wait_screen(terminal, lambda shown: "$" in shown["lines"][3])
    assert (screen["lines"][1:3], screen["alternate"]) == (["a", "b"], False)
    assert not screen["partial"]
    terminal.keys("echo typed\r")
    wait_screen(terminal, "\ntyped\n")
    assert ended_last(terminal) == ("echo typed", "typed\n")


@pytest.mark.long
@on_both_shells
def test_trap_15_the_next_program_that_leaves_the_alternate_screen_brings_the_shells_back(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    terminal.run("echo before")
    seq = opened_vim(terminal, tmp_path)
    kill(terminal, "KILL")
    assert ended(terminal, seq)["stdout"] == ""
    again = opened(terminal, f"{VIM} {shlex.quote(str(tmp_path / 'other.txt'))}")
    terminal.keys(":q\r")
    assert ended(terminal, again)["stdout"] == ""
    screen = wait_screen(terminal, lambda shown: not shown["alternate"])
    assert "before" in screen["lines"]
    assert not {"one", "two", "three"} & set(screen["lines"])


def test_trap_30_what_a_kill_left_of_the_screen_is_gone_after_a_reset(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    seq = opened_vim(terminal, tmp_path)
    kill(terminal, "KILL")
    assert ended(terminal, seq)["exit"] == 137
    assert terminal.run("tput reset")["exit"] == 0
    screen = wait_screen(terminal, is_main)
    assert [line for line in screen["lines"] if line] == ["$"]
    assert terminal.run("echo on")["stdout"] == "on\n"


@pytest.mark.parametrize(("signal", "number"), [("TERM", 15), ("HUP", 1)])
def test_trap_15_vim_that_tidies_up_when_it_is_ended_leaves_no_more_than_its_words(
    terminal: LiveTerminal, tmp_path: Path, signal: str, number: int
) -> None:
    seq = opened_vim(terminal, tmp_path)
    kill(terminal, signal)
    record = ended(terminal, seq)
    assert record["exit"] == 128 + number
    assert f"Caught deadly signal {signal}" in record["stdout"]
    assert "three" not in record["stdout"]
    assert not wait_screen(terminal, lambda shown: "$" in shown["lines"])["alternate"]


@pytest.mark.long
@on_both_shells
def test_trap_15_vim_is_put_into_the_background_and_comes_back_as_it_was(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    seq = opened_vim(terminal, tmp_path)
    terminal.keys("\x1b\x1a")
    record = ended(terminal, seq)
    assert record["exit"] in {128 + 19, 128 + 20}
    assert "three" not in record["stdout"]
    assert not wait_screen(terminal, lambda shown: not shown["alternate"])["partial"]
    again = opened(terminal, "fg")
    wait_screen(terminal, lambda shown: shown["lines"][:4] == ["one", "two", "three", "~"])
    terminal.keys(":wq\r")
    assert ended(terminal, again)["exit"] == 0
    assert (tmp_path / "notes.txt").read_text() == "one\ntwo\nthree\n"


def ended_last(terminal: LiveTerminal) -> tuple[str, str]:
    """Text and output of the newest command, once it has ended."""
    terminal.daemon.call("term_wait", name=terminal.name)
    [record] = terminal.read(last_n=1)
    return record["cmd"], record["stdout"]

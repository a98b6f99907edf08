"""Traps 28 and 30: what the tty itself would do to keys, and what a crash leaves of it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.conftest import on_both_shells
from tests.e2e.harness import Gate, LiveTerminal
from tests.resources.waiting import until

pytestmark = pytest.mark.real


def read_by_lines(terminal: LiveTerminal, copy: Path) -> None:
    """A program that reads whole lines is in front."""
    record = terminal.run(f"cat >{shlex.quote(str(copy))}")
    assert record["needs_input"] == {"kind": "input", "program": "cat"}


def wait_stopped(terminal: LiveTerminal) -> None:
    """Wait until the tty takes no output: the kernel reads a key only after it was written."""
    tty = os.open(f"/proc/{terminal.described()['pid']}/fd/2", os.O_WRONLY | os.O_NOCTTY)

    def takes_none() -> bool:
        try:
            os.write(tty, b".")
        except BlockingIOError:
            return True
        return False

    try:
        os.set_blocking(tty, False)
        until(takes_none, "the output is stopped")
    finally:
        os.close(tty)


def finish(terminal: LiveTerminal) -> None:
    terminal.keys("\x04")
    assert terminal.run("true")["exit"] == 0


@pytest.mark.parametrize("ending", ["\r", "\n", ""])
def test_trap_28_a_line_that_the_tty_would_cut_is_refused_whole(
    terminal: LiveTerminal, tmp_path: Path, ending: str
) -> None:
    copy = tmp_path / "copy"
    read_by_lines(terminal, copy)
    with pytest.raises(CommandFailed, match="4095 bytes: one of yours would have 4096") as refusal:
        terminal.keys("first\r" + "x" * 4096 + ending)
    assert refusal.value.code == "invalid_request"
    terminal.keys("second\r")
    finish(terminal)
    assert copy.read_text() == "second\n"


def test_trap_28_the_longest_line_arrives_whole(terminal: LiveTerminal, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    read_by_lines(terminal, copy)
    terminal.keys("x" * 4095 + "\r")
    finish(terminal)
    assert copy.read_text() == "x" * 4095 + "\n"


def test_trap_28_a_line_sent_in_pieces_counts_as_one(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    read_by_lines(terminal, copy)
    terminal.keys("x" * 4000)
    with pytest.raises(CommandFailed, match="would have 4100"):
        terminal.keys("x" * 100 + "\r")
    terminal.keys("y" * 95 + "\r")
    finish(terminal)
    assert copy.read_text() == "x" * 4000 + "y" * 95 + "\n"


def test_trap_28_many_lines_wait_for_their_reader_and_arrive_whole(
    terminal: LiveTerminal, gate: Gate, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    text = "".join(f"{number} {'z' * 3_000}\n" for number in range(20))
    pending = terminal.start(f"{gate.hold}; head -n 20 >{shlex.quote(str(copy))}")
    gate.wait_reached()
    terminal.keys(text.replace("\n", "\r"))
    assert terminal.described()["state"] == "running"  # others are served meanwhile
    gate.open()
    pending.result()
    assert terminal.run("true")["exit"] == 0
    assert copy.read_text() == text


def test_trap_28_at_the_prompt_a_line_may_be_longer(terminal: LiveTerminal) -> None:
    word = "w" * 20_000
    terminal.keys(f"printf %s {word} | wc -c\r")
    assert terminal.run("true")["exit"] == 0
    assert terminal.records()[0]["stdout"].strip() == "20000"


def settings(terminal: LiveTerminal) -> set[str]:
    """The settings of the tty as a command finds them."""
    return set(terminal.run("stty -a")["stdout"].replace(";", " ").split())


@on_both_shells
@pytest.mark.parametrize(
    "crash",
    [
        "sh -c 'stty raw -echo; exit 3'",
        "sh -c 'stty raw -echo; kill -9 $$'",
        "python3 -c 'import tty; tty.setraw(0); 1 / 0'",
        "python3 -c 'import curses; s = curses.initscr(); curses.noecho(); curses.raw(); 1 / 0'",
    ],
)
def test_trap_30_after_a_crash_the_tty_is_sane_again(terminal: LiveTerminal, crash: str) -> None:
    terminal.run("stty -ixon erase ^H")
    before = settings(terminal)
    assert terminal.run(crash)["exit"] != 0
    after = settings(terminal)
    assert {"icanon", "echo", "isig", "opost", "icrnl", "-ixon"} <= after
    assert after == before
    for keys, exit_code, stdout in [("seen\r\x04", 0, "seen\nseen\n"), ("\x03", 130, "^C\n")]:
        read = terminal.run("cat")
        assert read["needs_input"] == {"kind": "input", "program": "cat"}
        terminal.keys(keys)
        assert terminal.run("echo a; echo b")["stdout"] == "a\nb\n"
        record = terminal.read(last_n=2)[0]
        assert (record["exit"], record["stdout"]) == (exit_code, stdout)


def test_trap_30_what_a_user_sets_at_the_prompt_stays(terminal: LiveTerminal) -> None:
    terminal.run("stty -ixon -echoctl erase ^H intr ^T")
    before = settings(terminal)
    assert terminal.run("false")["exit"] == 1
    assert terminal.run("sh -c 'kill -TERM $$'")["exit"] == 143
    assert settings(terminal) == before
    assert {"-ixon", "-echoctl"} <= before
    terminal.run("stty -echo")
    assert "-echo" in settings(terminal)  # a command that went well changes what it likes


def test_trap_30_an_interrupt_while_the_tty_is_mended_does_not_mend_it_under_the_next_prompt(
    terminal: LiveTerminal, gate: Gate, tmp_path: Path
) -> None:
    mending = tmp_path / "stty"
    mending.write_text(f'#!/bin/sh\n{gate.hold}\nsleep 0.3\nexec {shutil.which("stty")} "$@"\n')
    mending.chmod(0o755)
    terminal.run(f"PATH={shlex.quote(str(tmp_path))}:$PATH")
    assert terminal.run("false")["exit"] == 1
    gate.wait_reached()
    # As a Ctrl-C does that comes between the start of a program and its turn in front.
    os.kill(terminal.info["pid"], signal.SIGINT)
    gate.open()
    for word in ("one", "two", "three"):
        assert terminal.run(f"echo {word}", timeout=20)["stdout"] == f"{word}\n"


@pytest.mark.parametrize("trap", ["", "trap -- '' SIGINT", "trap -- 'echo \"mine\"' SIGINT"])
def test_trap_30_mending_the_tty_leaves_what_a_user_does_at_an_interrupt(
    terminal: LiveTerminal, trap: str
) -> None:
    terminal.run(f"{trap or 'true'}; alias trap=false eval=false")
    assert terminal.run("false")["exit"] == 1
    assert terminal.run("builtin trap -p INT")["stdout"].strip() == trap


def test_trap_30_errors_in_the_hook_reach_nobody(terminal: LiveTerminal, tmp_path: Path) -> None:
    caught = tmp_path / "caught"
    terminal.run(
        f"set -E; trap 'echo caught >>{shlex.quote(str(caught))}' ERR; stty() {{ false; }}"
    )
    assert terminal.run("PATH=; false", timeout=20)["exit"] == 1
    assert terminal.run("PATH=/usr/bin:/bin; echo on")["stdout"] == "on\n"
    assert caught.read_text() == "caught\n"


def test_output_that_somebody_stopped_makes_a_run_fail_with_who_has_the_terminal(
    terminal: LiveTerminal, gate: Gate
) -> None:
    pending = terminal.start(f"{gate.hold}; echo shown; (exit 3)")
    gate.wait_reached()
    terminal.keys("\x13", from_handle="ann")
    wait_stopped(terminal)
    gate.open()
    busy = terminal.refusal("echo mine", timeout=0.5)
    assert busy.code == "busy"
    terminal.keys("\x11", from_handle="ann")
    assert pending.result()["exit"] == 3
    assert terminal.run("echo mine")["stdout"] == "mine\n"

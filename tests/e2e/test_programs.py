"""Trap 11: programs in a terminal, driven as an agent drives them: run, keys, wait, screen.

What a screen holds in detail is in ``test_screens.py``; here each program is opened by a run that
returns as it waits, is used, is given another size, and is left: its record then has its exit.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import on_both_shells
from tests.e2e.harness import GUARD_S, LiveTerminal
from tests.e2e.screens import (
    Shown,
    ended,
    is_main,
    needs,
    opened,
    resize,
    wait_screen,
)

pytestmark = pytest.mark.real

ESCAPE = "\x1b"


def wait(terminal: LiveTerminal, **conditions: object) -> dict[str, Any]:
    return terminal.daemon.call(
        "term_wait", name=terminal.name, **{"timeout": GUARD_S, **conditions}
    )


def wait_lines(terminal: LiveTerminal, lines: list[str]) -> Shown:
    """Look until these are all the lines of the screen: a program may draw them one by one."""
    return wait_screen(terminal, lambda shown: shown["lines"] == lines)


def numbered(path: Path, lines: int = 500) -> Path:
    """A file whose lines are their numbers in words that can be looked for."""
    path.write_text("".join(f"line {number}\n" for number in range(1, lines + 1)))
    return path


# Shells inside a shell.


@on_both_shells
def test_trap_11_a_nested_shell_is_driven_by_keys_and_is_one_command_of_the_outer_one(
    terminal: LiveTerminal,
) -> None:
    record = terminal.run("PS1='inner> ' bash --norc")
    assert record["needs_input"] == {"kind": "input", "program": "bash"}
    matched = wait(terminal, pattern="inner> ")
    assert (matched["reason"], terminal.described()["state"]) == ("matched", "running")
    terminal.keys("echo $((6 * 7)); (exit 3)\r")
    wait_screen(terminal, "\n42\ninner>")
    terminal.keys("echo status $?\r")
    wait_screen(terminal, "\nstatus 3\ninner>")
    assert len(terminal.records()) == 0  # what runs inside is no command of this terminal
    terminal.keys("exit 7\r")
    final = ended(terminal, record["seq"])
    assert final["exit"] == 7
    assert {"42", "status 3"} <= set(final["stdout"].splitlines())
    assert [each["cmd"] for each in terminal.records()] == [record["cmd"], "echo behind"]
    assert terminal.described()["integration"] == "osc133"


@needs("script")
def test_trap_11_a_shell_behind_another_pty_is_driven_as_through_ssh(
    terminal: LiveTerminal,
) -> None:
    """``script`` sets the tty to raw mode and passes every byte on, as ``ssh`` does."""
    inner = shlex.quote("PS1='far> ' exec bash --norc")
    seq = opened(terminal, f"SHELL=/bin/sh script -qec {inner} /dev/null")
    wait_screen(terminal, "far> ")
    resize(terminal, 90, 20)
    terminal.keys("stty size\r")
    wait_screen(terminal, "\n20 90\nfar>")
    terminal.keys("sleep 1000\r")
    wait_screen(terminal, "sleep 1000\n")
    terminal.keys("\x03")
    wait_screen(terminal, "^C\nfar>")
    terminal.keys("echo status $?\r")
    wait_screen(terminal, "\nstatus 130\nfar>")
    terminal.keys("exit 6\r")
    assert ended(terminal, seq)["exit"] == 6


# A REPL.


def test_trap_11_python_is_read_by_output_and_by_screen(terminal: LiveTerminal) -> None:
    record = terminal.run("PYTHON_BASIC_REPL=1 python3 -q")
    assert record["needs_input"]["program"].startswith("python3")
    cursor = wait(terminal, pattern=">>> ")["cursor"]
    terminal.keys("sum(range(1000))\r")
    matched = wait(terminal, pattern=r"^\d+$", cursor=cursor)
    assert (matched["reason"], matched["match"]) == ("matched", "499500")
    output = terminal.daemon.call("term_output", name=terminal.name, cursor=cursor)
    assert output["text"].startswith("sum(range(1000))\n499500\n")
    assert output["running"]
    terminal.keys("1 / 0\r")
    wait_screen(terminal, "ZeroDivisionError: division by zero\n>>>")
    terminal.keys("import time; time.sleep(1000)\r")
    wait_screen(terminal, "time.sleep(1000)\n")
    terminal.daemon.call("term_signal", name=terminal.name, signal="INT")
    wait_screen(terminal, "KeyboardInterrupt\n>>>")
    terminal.keys("exit(5)\r")
    assert ended(terminal, record["seq"])["exit"] == 5


# An editor.


@needs("vim")
@on_both_shells
def test_trap_11_vim_edits_a_file_in_windows_of_several_sizes(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    seq = opened(terminal, f"vim -u NONE -N -i NONE {shlex.quote(str(file))}")
    wait_screen(terminal, "[New]")
    terminal.keys("iHello, é日\rsecond")
    screen = wait_lines(terminal, ["Hello, é日", "second", *["~"] * 21, "-- INSERT --"])
    assert screen["alternate"]
    assert (screen["cursor"]["row"], screen["cursor"]["col"]) == (1, len("second"))
    resize(terminal, 50, 12)
    wait_lines(terminal, ["Hello, é日", "second", *["~"] * 9, "-- INSERT --"])
    resize(terminal, 100, 30)
    wait_lines(terminal, ["Hello, é日", "second", *["~"] * 27, "-- INSERT --"])
    terminal.keys(f"{ESCAPE}kyypA!{ESCAPE}:wq\r")
    record = ended(terminal, seq)
    assert (record["exit"], record["stdout"]) == (0, "")
    assert file.read_text() == "Hello, é日\nHello, é日!\nsecond\n"
    assert not wait_screen(terminal, is_shell)["alternate"]


@needs("vim")
def test_trap_11_vim_split_in_two_is_seen_as_it_stands(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    file = numbered(tmp_path / "long.txt")
    seq = opened(terminal, f"vim -u NONE -N -i NONE -R {shlex.quote(str(file))}")
    terminal.keys(":vsplit | set number | 300\r")
    both = "300 line 300                            |line 11"
    screen = wait_screen(terminal, lambda shown: shown["lines"][10] == both)
    assert (screen["cursor"]["row"], screen["cursor"]["col"]) == (10, 4)
    terminal.keys("\x17w25G:cquit 3\r")
    assert ended(terminal, seq)["exit"] == 3


# Pagers.


@needs("less")
@on_both_shells
def test_trap_11_less_pages_searches_and_is_left(terminal: LiveTerminal, tmp_path: Path) -> None:
    seq = opened(terminal, f"less {shlex.quote(str(numbered(tmp_path / 'long.txt')))}")

    def page(first: int, prompt: str = ":") -> None:
        wait_lines(terminal, [*(f"line {number}" for number in range(first, first + 23)), prompt])

    wait_screen(terminal, lambda shown: shown["lines"][22] == "line 23")
    terminal.keys(" ")
    page(24)
    terminal.keys("b")
    page(1)
    terminal.keys("/line 77\r")
    page(77)
    terminal.keys("G")
    page(478, "(END)")
    terminal.keys("g")
    page(1)
    resize(terminal, 40, 10)
    wait_lines(terminal, [*(f"line {number}" for number in range(1, 10)), ":"])
    terminal.keys("q")
    record = ended(terminal, seq)
    assert (record["exit"], record["stdout"]) == (0, "")


@needs("git")
@needs("less")
def test_trap_11_a_log_of_git_in_its_pager_is_paged_and_left(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    commits = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {number} +0000\ndata <<E\ncommit {number}\nE\n"
        for number in range(1, 101)
    )
    (tmp_path / "commits").write_text(commits)
    terminal.run(f"cd {shlex.quote(str(tmp_path))}; git init -q -b main; git fast-import <commits")
    record = terminal.run("git -c core.pager=less log --format=%s")
    assert record["needs_input"] == {"kind": "input", "program": "less"}
    wait_lines(terminal, [f"commit {number}" for number in range(100, 77, -1)] + [":"])
    terminal.keys("G")
    wait_screen(terminal, "commit 1\n(END)")
    terminal.keys("q")
    assert ended(terminal, record["seq"])["exit"] == 0


@needs("man")
def test_trap_11_a_manual_page_is_read_in_its_pager(terminal: LiveTerminal, tmp_path: Path) -> None:
    paragraphs = "".join(f".PP\nParagraph {number}\n" for number in range(1, 31))
    (tmp_path / "greet.1").write_text(f'.TH GREET 1\n.SH NAME\ngreet \\- "greets"\n{paragraphs}')
    terminal.run(f"cd {shlex.quote(str(tmp_path))}")
    seq = opened(terminal, "man ./greet.1")
    screen = wait_screen(terminal, "NAME\n       greet - ")
    assert screen["lines"][0].startswith("GREET(1)")
    terminal.keys("/Paragraph 20\r")
    wait_screen(terminal, lambda shown: shown["lines"][0] == "       Paragraph 20")
    terminal.keys("q")
    assert ended(terminal, seq)["exit"] == 0


# Monitors.


@needs("htop")
def test_trap_11_htop_is_filtered_resized_and_left(terminal: LiveTerminal) -> None:
    sleeping = background_sleep(terminal)
    seq = opened(terminal, "htop")
    screen = wait_screen(terminal, lambda shown: shown["lines"][23].endswith("F10Quit"))
    assert screen["alternate"]
    terminal.keys("\\")
    wait_screen(terminal, "Filter:")
    terminal.keys(sleeping)
    wait_screen(terminal, lambda shown: only_process(shown, sleeping))
    terminal.keys("\r")
    wait_screen(terminal, lambda shown: shown["lines"][23].endswith("F10Quit"))
    resize(terminal, 110, 33)
    wait_screen(
        terminal,
        lambda shown: (
            shown["lines"][32].endswith("F10Quit")
            and only_process(shown, sleeping)
            and shown["lines"][23:32] == [""] * 9
        ),
    )
    terminal.keys("q")
    record = ended(terminal, seq)
    assert (record["exit"], record["stdout"]) == (0, "")
    terminal.run("kill %1; wait")


@needs("top")
def test_trap_11_top_shows_one_process_in_windows_of_several_sizes(terminal: LiveTerminal) -> None:
    sleeping = background_sleep(terminal)
    seq = opened(terminal, "top -p $!")
    wait_screen(terminal, lambda shown: only_process(shown, "sleep"))
    resize(terminal, 100, 30)
    terminal.keys("c")
    screen = wait_screen(terminal, lambda shown: only_process(shown, sleeping))
    assert heading(screen).endswith("TIME+ COMMAND")
    resize(terminal, 70, 15)
    screen = wait_screen(terminal, lambda shown: heading(shown).endswith("TIME+"))
    assert len(screen["lines"]) == 15
    terminal.keys("q")
    assert ended(terminal, seq)["exit"] == 0
    terminal.run("kill %1; wait")


def background_sleep(terminal: LiveTerminal) -> str:
    """Start a process that nobody else has; gives its words."""
    sleeping = f"sleep {1_000_000 + os.getpid()}"
    assert terminal.run(f"{sleeping} &")["exit"] == 0
    return sleeping


def heading(screen: Shown) -> str:
    """The line above the processes; empty while there is none."""
    return next((line for line in screen["lines"] if "PID USER" in line), "")


def only_process(screen: Shown, words: str) -> bool:
    """Whether this is the one process that is listed."""
    lines: list[str] = screen["lines"]
    listed = lines[lines.index(heading(screen)) + 1 : -1] if heading(screen) else []
    return [line.endswith(f" {words}") for line in listed if line] == [True]


# Programs of a framework.

COUNTER = """
import sys

from textual.app import App
from textual.widgets import Button, Input, Label


class Counter(App):
    count = 0

    def compose(self):
        yield Label("count 0", id="count")
        yield Input(placeholder="your name", id="name")
        yield Button("More", id="more")
        yield Button("Leave", id="leave")

    def on_button_pressed(self, event):
        if event.button.id == "leave":
            self.exit(return_code=4)
        self.count += 1
        self.query_one("#count").update(f"count {self.count}")

    def on_input_submitted(self, event):
        self.query_one("#count").update(f"hello {event.value}")


app = Counter()
app.run()
sys.exit(app.return_code)
"""


def test_trap_11_a_textual_program_is_driven_by_keys_and_clicks(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    program = tmp_path / "counter.py"
    program.write_text(COUNTER)
    command = shlex.join([sys.executable, str(program)])
    seq = terminal.run(command, timeout=1)["seq"]  # its cursor blinks: it is never quiet
    wait_screen(terminal, "Leave")
    screen = wait_screen(terminal, lambda shown: shown["lines"][0] == "count 0")
    assert (screen["alternate"], screen["cursor"]["visible"]) == (True, False)
    terminal.keys("Ada é\r")
    wait_screen(terminal, lambda shown: shown["lines"][0] == "hello Ada é")
    click(terminal, "More")
    wait_screen(terminal, lambda shown: shown["lines"][0] == "count 1")
    resize(terminal, 50, 20)
    frame = f"▊{'▔' * 48}▎"
    wait_screen(terminal, lambda shown: shown["lines"][:2] == ["count 1", frame])
    terminal.keys("\t\r")  # to the next button, and press it
    record = ended(terminal, seq)
    assert (record["exit"], record["stdout"]) == (4, "")
    screen = wait_screen(terminal, is_main)
    assert (screen["alternate"], screen["cursor"]["visible"]) == (False, True)


def click(terminal: LiveTerminal, text: str) -> None:
    """Press and release the first button of a mouse on this text, as xterm reports it (SGR)."""
    screen = wait_screen(terminal, text)
    row = next(at for at, line in enumerate(screen["lines"]) if text in line)
    where = f"{screen['lines'][row].index(text) + 1};{row + 1}"
    terminal.keys(f"{ESCAPE}[<0;{where}M{ESCAPE}[<0;{where}m")


# A multiplexer.


@needs("tmux")
def test_trap_11_tmux_shows_windows_of_its_own(terminal: LiveTerminal) -> None:
    socket = f"aegis-{os.getpid()}-{terminal.name}"
    terminal.run("unset TMUX; export SHELL=/bin/bash")
    seq = opened(
        terminal, f"tmux -L {socket} -f /dev/null new-session \"PS1='one: ' exec bash --norc\""
    )
    wait_screen(
        terminal, lambda shown: (shown["lines"][0], shown["lines"][23][:3]) == ("one:", "[0]")
    )
    terminal.keys("stty size\r")
    wait_screen(terminal, "\n23 80\none:")
    terminal.keys('\x02"')
    screen = wait_screen(terminal, "─" * 80)
    above = screen["lines"].index("─" * 80)
    wait_screen(terminal, lambda shown: shown["cursor"]["row"] == above + 1)
    terminal.keys("clear; stty size; exec cat\r")
    wait_screen(terminal, lambda shown: shown["lines"][above + 1] == f"{22 - above} 80")
    resize(terminal, 100, 30)
    wait_screen(terminal, lambda shown: shown["lines"][29][:3] == "[0]")
    wait_screen(terminal, "─" * 100)
    terminal.keys("\x04")
    alone = ["one: stty size", "23 80", "one:", *[""] * 26]
    wait_screen(terminal, lambda shown: shown["lines"][:29] == alone)
    terminal.keys("exit\r")
    record = ended(terminal, seq)
    assert (record["exit"], record["stdout"]) == (0, "[exited]\n")


def is_shell(screen: Shown) -> bool:
    """The shell's own screen."""
    return not screen["alternate"]

"""Programs that draw: started, driven by keys, and looked at until they show something."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.e2e.harness import GUARD_S, LiveTerminal

Shown: TypeAlias = dict[str, Any]


def look(terminal: LiveTerminal) -> Shown:
    """Its screen now, as ``term_screen`` gives it."""
    return terminal.daemon.call("term_screen", name=terminal.name)


def text_of(screen: Shown) -> str:
    """All lines of a screen."""
    return "\n".join(screen["lines"])


def wait_screen(terminal: LiveTerminal, is_there: Callable[[Shown], bool] | str) -> Shown:
    """Look until ``is_there`` says so, or that text is on the screen; gives the screen.

    There is no event to wait for: a program draws when it likes.
    """
    deadline = time.monotonic() + GUARD_S
    while True:
        screen = look(terminal)
        if is_there in text_of(screen) if isinstance(is_there, str) else is_there(screen):
            return screen
        assert time.monotonic() < deadline, f"it never showed:\n{text_of(screen)}"
        time.sleep(0.01)


def needs(program: str) -> pytest.MarkDecorator:
    """Skip visibly where a program is missing."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def is_main(screen: Shown) -> bool:
    """The shell's own screen, with a prompt in its last line that is not empty."""
    lines = [line for line in screen["lines"] if line]
    return not screen["alternate"] and bool(lines) and lines[-1] == "$"


def typed(terminal: LiveTerminal, command: str) -> None:
    """Type a command at the prompt."""
    terminal.keys(f"{command}\r")


def left(terminal: LiveTerminal, keys: str) -> Shown:
    """Leave a full-screen program with ``keys``: its record is there, and the shell's screen."""
    terminal.keys(keys)
    screen = wait_screen(terminal, is_main)
    assert terminal.run("echo left")["stdout"] == "left\n"
    return screen


def opened(terminal: LiveTerminal, cmd: str) -> int:
    """Run a program that takes keys: its call returns as it waits for one. Gives its seq."""
    record = terminal.run(cmd)
    assert (record["end"], record["timed_out"]) == (None, False), record["stdout"]
    assert record["needs_input"]["kind"] == "input"
    seq: int = record["seq"]
    return seq


def resize(terminal: LiveTerminal, cols: int, rows: int) -> None:
    """Give the window of the terminal another size."""
    terminal.daemon.call("term_resize", name=terminal.name, cols=cols, rows=rows)


def ended(terminal: LiveTerminal, seq: int) -> dict[str, Any]:
    """The final record of a command that is about to end: a run behind it has had its turn."""
    assert terminal.run("echo behind")["stdout"] == "behind\n"
    [record] = [record for record in terminal.records() if record["seq"] == seq]
    assert record["end"] == "exited"
    return record

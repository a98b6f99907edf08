"""Looking at the screen of a terminal until it shows something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

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

"""Waiting for what a daemon does by itself, and nobody is told of."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.e2e.harness import GUARD_S, LiveTerminal


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until ``holds``; there is no event to wait for."""
    deadline = time.monotonic() + GUARD_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def until_state(terminal: LiveTerminal, state: str) -> None:
    """Wait until the list shows the terminal as this."""
    until(lambda: terminal.described()["state"] == state, f"{terminal.name} is {state}")

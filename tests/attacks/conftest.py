"""A real daemon under attack, and somebody who goes on working beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.attacks.figures import Bystander, tell
from tests.e2e.conftest import (
    connect_mcp,
    daemon,
    gate,
    handle,
    new_gate,
    new_terminal,
    own_daemon,
    shell,
    terminal,
)
from tests.e2e.harness import DaemonProcess

__all__ = [
    "connect_mcp",
    "daemon",
    "gate",
    "handle",
    "new_gate",
    "new_terminal",
    "own_daemon",
    "shell",
    "terminal",
]
"""Fixtures of the tests from outside that are used here too."""

Watch = Callable[[DaemonProcess, str], AbstractContextManager[Bystander]]


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> Watch:
    """``with watched(daemon, "slowloris")``: another client works on meanwhile, and is measured.

    Whatever happens inside, each of its calls must be answered; how long they took, and how much
    the daemon grew, is printed as a figure of the attack.
    """

    @contextmanager
    def watching(attacked: DaemonProcess, attack: str) -> Iterator[Bystander]:
        bystander = Bystander(attacked)
        over = threading.Event()
        working = threading.Thread(target=bystander.work, args=[over])
        working.start()
        began = time.monotonic()
        try:
            yield bystander
        finally:
            over.set()
            working.join()
        assert bystander.failure is None, f"the bystander was hurt: {bystander.failure!r}"
        assert bystander.waits, "the bystander was never answered"
        tell(attack, bystander, time.monotonic() - began)

    return watching

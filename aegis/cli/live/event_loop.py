"""The event loop of interactive verbs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run ``work`` and return its result; raise ``KeyboardInterrupt`` itself, not in a group."""
    try:
        return trio.run(work)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None
        raise

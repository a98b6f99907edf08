"""The event loop of a verb that runs on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Do ``work`` and give its result. An interrupt comes out of it as it is, not in a group."""
    try:
        return trio.run(work)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None
        raise

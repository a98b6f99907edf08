"""Searching for a pattern without holding up the event loop."""

from __future__ import annotations

import trio
from trio.lowlevel import RunVar

from aegis.terminals.output.patterns import Pattern

MAX_THREADS = 2
"""Searches that run beside the event loop at once; others wait, and files are read meanwhile."""

_threads = RunVar[trio.CapacityLimiter]("pattern-threads")


async def search(pattern: Pattern, text: str) -> tuple[int, int] | None:
    """What ``pattern.search(text)`` gives; always a checkpoint.

    At once where that is quick, else in a thread: the engine lets others run meanwhile. Cancelled,
    it does not wait for the thread.
    """
    if pattern.is_quick(text):
        await trio.lowlevel.checkpoint()
        return pattern.search(text)
    return await trio.to_thread.run_sync(
        pattern.search, text, limiter=_limiter(), abandon_on_cancel=True
    )


def _limiter() -> trio.CapacityLimiter:
    try:
        return _threads.get()
    except LookupError:
        limiter = trio.CapacityLimiter(MAX_THREADS)
        _threads.set(limiter)
        return limiter

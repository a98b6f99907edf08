"""The stand-in for ``trio.Event``: tractor evaluates ``if event:``, which raises in Trio."""

from __future__ import annotations

import trio


class Event:
    """An event that is true, as any object, whether or not it was set."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def __bool__(self) -> bool:
        return True

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._event.is_set()

    def set(self) -> None:
        """Wake all waiters."""
        self._event.set()

    async def wait(self) -> None:
        """Return once it was set."""
        await self._event.wait()

    def statistics(self) -> trio.EventStatistics:
        """Return the number of waiters."""
        return self._event.statistics()


def have_truth() -> bool:
    """Return whether this Trio's own events have a truth value."""
    try:
        return bool(trio.Event())
    except NotImplementedError:
        return False

"""``Notifier``: wakes the tasks that are waiting."""

from __future__ import annotations

import trio


class Notifier:
    """A condition without memory: ``wait()`` returns only for a later ``notify()``.

    Check the state before waiting.
    """

    # The event is made only while a task waits: one ``trio.Event`` for each thing that may happen
    # would be most of a terminal's memory.

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: trio.Event | None = None

    def notify(self) -> None:
        """Wake all waiting tasks."""
        if self._event is not None:
            event, self._event = self._event, None
            event.set()

    async def wait(self) -> None:
        """Wait for the next ``notify()``."""
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()

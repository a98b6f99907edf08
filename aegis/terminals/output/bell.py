"""``Bell``: wakes the tasks that wait for it now. While nobody waits it is next to nothing."""

from __future__ import annotations

import trio


class Bell:
    """What was rung before somebody waits is not remembered: who waits looks first.

    A ``trio.Event`` for each thing that may happen would take most of a terminal's memory.
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: trio.Event | None = None

    def ring(self) -> None:
        """Wake everybody who waits."""
        if self._event is not None:
            event, self._event = self._event, None
            event.set()

    async def wait(self) -> None:
        """Wait for the next ring."""
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()

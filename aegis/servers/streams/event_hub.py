"""Who is sent what happens on terminals, and what each was not sent yet: bounded, oldest first."""

from __future__ import annotations

from collections import deque

import trio

from aegis.protocol.streams import CommandItem, TerminalItem

DaemonEvent = TerminalItem | CommandItem

MAX_QUEUED = 1024
"""Events kept for who takes none."""


class Listener:
    """One who hears of everything from now on."""

    def __init__(self, events: EventHub) -> None:
        self._events = events
        self._queue: deque[DaemonEvent] = deque()
        self._missed = 0
        self._news = trio.Event()

    def hear(self, event: DaemonEvent) -> None:
        """For ``EventHub``."""
        if len(self._queue) >= MAX_QUEUED:
            self._queue.popleft()
            self._missed += 1
        self._queue.append(event)
        self._news.set()

    async def next(self) -> tuple[int, DaemonEvent]:
        """The oldest event that it was not given yet, and how many before it are lost."""
        while not self._queue:
            self._news = trio.Event()
            await self._news.wait()
        missed, self._missed = self._missed, 0
        return missed, self._queue.popleft()

    def close(self) -> None:
        """It wants to hear no more."""
        self._events.forget(self)


class EventHub:
    """All who listen."""

    def __init__(self) -> None:
        self._listeners: dict[Listener, None] = {}

    def listen(self) -> Listener:
        """One more."""
        listener = Listener(self)
        self._listeners[listener] = None
        return listener

    def forget(self, listener: Listener) -> None:
        """For ``Listener``."""
        self._listeners.pop(listener, None)

    def tell(self, event: DaemonEvent) -> None:
        """This has happened."""
        for listener in self._listeners:
            listener.hear(event)

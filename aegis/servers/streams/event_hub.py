"""``EventHub``: the events of terminals, in one bounded queue for each subscriber."""

from __future__ import annotations

from collections import deque

import trio

from aegis.protocol.streams import (
    CommandItem,
    TerminalItem,
)

DaemonEvent = TerminalItem | CommandItem

MAX_QUEUED = 1024
"""The length of a subscriber's queue; beyond it the oldest event is dropped."""


class EventQueue:
    """The queue of one subscriber: all events since it subscribed."""

    def __init__(self, events: EventHub) -> None:
        self._events = events
        self._queue: deque[DaemonEvent] = deque()
        self._missed = 0
        self._news = trio.Event()

    def put(self, event: DaemonEvent) -> None:
        """Add an event; called by ``EventHub``."""
        if len(self._queue) >= MAX_QUEUED:
            self._queue.popleft()
            self._missed += 1
        self._queue.append(event)
        self._news.set()

    async def next(self) -> tuple[int, DaemonEvent]:
        """Return the number of events lost before the next one, and that event."""
        while not self._queue:
            self._news = trio.Event()
            await self._news.wait()
        missed, self._missed = self._missed, 0
        return missed, self._queue.popleft()

    def close(self) -> None:
        """End the subscription."""
        self._events.unsubscribe(self)


class EventHub:
    """The subscriptions to the events of a daemon."""

    def __init__(self) -> None:
        self._subscriptions: dict[EventQueue, None] = {}

    def subscribe(self) -> EventQueue:
        """Return a new subscription; it gets the events from now on."""
        subscription = EventQueue(self)
        self._subscriptions[subscription] = None
        return subscription

    def unsubscribe(self, subscription: EventQueue) -> None:
        """Remove a subscription. Idempotent."""
        self._subscriptions.pop(subscription, None)

    def publish(self, event: DaemonEvent) -> None:
        """Add the event to the queue of each subscription."""
        for subscription in self._subscriptions:
            subscription.put(event)

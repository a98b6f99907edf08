"""Queues of remote requests that wait for room in a mailbox.

A local sender waits itself. A connection must not wait: the packets behind may be for other actors.
"""

from __future__ import annotations

from collections import deque

import trio

from actors.envelope import Envelope
from actors.errors import ActorError, MailboxFull
from actors.place import RefTarget

MOST_WAITING = 256
"""The number of requests that may wait for one mailbox; further ones get ``MailboxFull``."""


class RequestQueues:
    """A queue of requests for each mailbox that has no room."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Envelope]] = {}
        self._fresh: deque[RefTarget] = deque()
        self._wakeup = trio.lowlevel.ParkingLot()

    def put(self, place: RefTarget, envelope: Envelope) -> None:
        """Put the request into the mailbox or its queue. Raises the errors of a mailbox."""
        queue = self._queues.get(place.path)
        if queue is None and not place.mailbox.must_wait(envelope):
            place.mailbox.put_request(envelope)
        elif queue is None:
            self._queues[place.path] = deque([envelope])
            self._fresh.append(place)
            self._wakeup.unpark()
        elif len(queue) < MOST_WAITING:
            queue.append(envelope)
        else:
            raise MailboxFull(
                f"{MOST_WAITING} requests already wait for room at {place.path}; try later",
                path=place.path,
            )

    async def run(self) -> None:
        """Move queued requests into their mailboxes, forever."""
        async with trio.open_nursery() as nursery:
            while True:
                while not self._fresh:
                    await self._wakeup.park()
                nursery.start_soon(self._admit, self._fresh.popleft())

    async def _admit(self, place: RefTarget) -> None:
        queue = self._queues[place.path]
        try:
            while queue:
                envelope = queue.popleft()
                if envelope.reply is None or not envelope.reply.is_settled:
                    await _put(place, envelope)
        finally:
            del self._queues[place.path]


async def _put(place: RefTarget, envelope: Envelope) -> None:
    try:
        await place.mailbox.put_when_room(envelope)
    except ActorError as error:
        if envelope.reply is not None:
            envelope.reply.give_up(error)

"""Requests from another process that must wait for room in a mailbox, in their order.

Elsewhere their senders wait. Here the connection must not: what is behind them may be for others.
"""

from __future__ import annotations

from collections import deque

import trio

from actors.envelope import Envelope
from actors.errors import ActorError, MailboxFull
from actors.place import Place

MOST_WAITING = 256
"""Requests that may wait for one mailbox; the next are refused, as by one that is full."""


class WaitingLines:
    """One line for each mailbox that has no room."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[Envelope]] = {}
        self._fresh: deque[Place] = deque()
        self._news = trio.lowlevel.ParkingLot()

    def put(self, place: Place, envelope: Envelope) -> None:
        """Put the request into the mailbox, or into its line. Raises what a mailbox raises."""
        line = self._lines.get(place.path)
        if line is None and not place.mailbox.must_wait(envelope):
            place.mailbox.put_request(envelope)
        elif line is None:
            self._lines[place.path] = deque([envelope])
            self._fresh.append(place)
            self._news.unpark()
        elif len(line) < MOST_WAITING:
            line.append(envelope)
        else:
            raise MailboxFull(
                f"{MOST_WAITING} requests already wait for room at {place.path}; try later",
                path=place.path,
            )

    async def run_for_ever(self) -> None:
        """Let those who wait in."""
        async with trio.open_nursery() as nursery:
            while True:
                while not self._fresh:
                    await self._news.park()
                nursery.start_soon(self._let_in, self._fresh.popleft())

    async def _let_in(self, place: Place) -> None:
        line = self._lines[place.path]
        try:
            while line:
                envelope = line.popleft()
                if envelope.reply is None or not envelope.reply.is_settled:
                    await _put(place, envelope)
        finally:
            del self._lines[place.path]


async def _put(place: Place, envelope: Envelope) -> None:
    try:
        await place.mailbox.put_when_room(envelope)
    except ActorError as error:
        if envelope.reply is not None:
            envelope.reply.give_up(error)

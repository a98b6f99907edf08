"""``Places``: the waiters for the place of a message that is on its way from the inbox."""

from __future__ import annotations

import attrs

from actors import Reply
from aegis.agents.sessions.rules import SessionMachine
from aegis.protocol.inboxes import FindMessage, Place

MAX_WAITERS = 256
"""Waiters of one session; a further one gets no place, and reports the inbox's."""


class Places:
    """The waiters of one session."""

    def __init__(self) -> None:
        self._waiters: list[tuple[FindMessage, Reply[Place | None]]] = []

    def take(
        self, request: FindMessage, reply: Reply[Place | None], session: SessionMachine
    ) -> None:
        """Answer now, or once the message has arrived."""
        place = _place(request, session)
        if place is None and len(self._waiters) < MAX_WAITERS:
            self._waiters.append((request, reply))
        else:
            reply.send(place)

    def look(self, session: SessionMachine) -> None:
        """Answer the waiters whose message has arrived; forget those that have gone."""
        waiters, self._waiters = self._waiters, []
        for request, reply in waiters:
            place = _place(request, session)
            if place is not None:
                reply.send(place)
            elif not reply.is_settled:
                self._waiters.append((request, reply))


def _place(request: FindMessage, session: SessionMachine) -> Place | None:
    place = session.place_of(request.message)
    if place is None or (place.is_landed and not request.command):
        return place
    return attrs.evolve(place, notice=session.notice_of(request.command))

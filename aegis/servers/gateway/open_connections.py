"""Who is connected: room for those who belong here, and an end for those whose key was voided.

Strangers, who have not shown a key, are the first to go: however many of them sit on the port,
whoever has a key gets in. The Unix socket, where nobody is a stranger for longer than until its
first byte, has room of its own.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection

import attrs
import structlog
import trio

from aegis.servers.access.unsent_bytes import MAX_UNSENT_BYTES, UnsentBytes
from aegis.servers.calls import Identity
from aegis.servers.gateway.client_stream import ClientStream

MAX_CONNECTIONS = 1000
CUT_GRACE_S = 0.5
"""So long what was asked with a key, before that was voided, has to be answered."""

TELL_S = 60.0
"""The log tells that there is no room once in so long."""

log = structlog.get_logger("aegis.servers.gateway")


@attrs.frozen(kw_only=True)
class Limits:
    """How much room there is.

    ``connections`` over TCP, and as many over the Unix socket; of those over TCP ``strangers`` may
    be without a key; ``unsent`` bytes may wait for all clients together.
    """

    connections: int = MAX_CONNECTIONS
    strangers: int = MAX_CONNECTIONS // 4
    unsent: int = MAX_UNSENT_BYTES


class OpenConnections:
    """All clients that are connected."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._here: dict[ClientStream, None] = {}  # the longest here first
        self._voided: set[Identity] = set()
        self._cut: list[ClientStream] = []
        self._told = trio.Event()
        self._complained_at = -math.inf
        self.unsent = UnsentBytes(self._limits.unsent)

    @property
    def is_empty(self) -> bool:
        """Whether nobody is here."""
        return not self._here

    def admit(self, stream: ClientStream) -> bool:
        """Take ``stream`` in, if need be in the place of the stranger that is here the longest.

        False: there is no room for it, all others being known.
        """
        beside = [each for each in self._here if each.is_local == stream.is_local]
        strangers = [each for each in beside if each.is_stranger]
        crowded = not stream.is_local and len(strangers) >= self._limits.strangers
        if crowded or len(beside) >= self._limits.connections:
            self._complain(len(beside), len(strangers))
            if not strangers:
                return False
            strangers[0].abort()
            self.leave(strangers[0])
        self._here[stream] = None
        return True

    def leave(self, stream: ClientStream) -> None:
        """It is over; one that left before is passed over."""
        self._here.pop(stream, None)

    def end(self) -> None:
        """Tell everybody to finish what is in hand."""
        for each in self._here:
            each.ending.set()

    def abort(self) -> None:
        """End every connection now."""
        for each in list(self._here):
            each.abort()

    def revoke(self, voided: Collection[Identity]) -> int:
        """Everybody that showed a key of ``voided`` takes nothing new from now on, and soon ends.

        Gives how many connections that are. The keys themselves must be void already.
        """
        found = [each for each in self._here if not each.identities.isdisjoint(voided)]
        for each in found:
            each.is_voided = True
            each.ending.set()
        self._cut += found
        self._voided.update(voided)
        self._told.set()
        return len(found)

    async def close_revoked(
        self, end_sessions: Callable[[frozenset[Identity]], Awaitable[None]]
    ) -> None:
        """End whoever ``revoke`` names, and what ``end_sessions`` knows of them; never returns."""
        while True:
            await self._told.wait()
            self._told = trio.Event()
            await trio.sleep(CUT_GRACE_S)
            cut, self._cut = self._cut, []
            voided, self._voided = frozenset(self._voided), set()
            for each in cut:
                each.abort()
            await end_sessions(voided)

    def _complain(self, connections: int, strangers: int) -> None:
        now = trio.current_time()
        if now >= self._complained_at + TELL_S:
            self._complained_at = now
            log.warning("refusing connections", open=connections, strangers=strangers)

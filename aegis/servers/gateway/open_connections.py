"""The open connections: admission control, and the end of connections whose key was voided.

At the limit the oldest connection that has not authenticated is closed in favour of a new one, so
clients without a key cannot lock out clients with one. The Unix socket has a limit of its own: a
peer there is authenticated by its uid with its first byte.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection
from functools import partial

import attrs
import structlog
import trio

from aegis.servers.access.unsent_bytes import MAX_UNSENT_BYTES, UnsentBytes
from aegis.servers.calls import Identity
from aegis.servers.gateway.client_stream import ClientStream

MAX_CONNECTIONS = 1000
CUT_GRACE_S = 0.5
"""Grace period, in seconds, for requests that were accepted before their key was voided."""

LOG_INTERVAL_S = 60.0
"""Seconds between two log lines about refused connections."""

log = structlog.get_logger("aegis.servers.gateway")


@attrs.frozen(kw_only=True)
class Limits:
    """The limits of all connections.

    ``connections`` over TCP, and as many over the Unix socket. At most ``unauthenticated`` clients
    over TCP have not shown a key. ``unsent`` is the limit of unread bytes of all clients together.
    """

    connections: int = MAX_CONNECTIONS
    unauthenticated: int = MAX_CONNECTIONS // 4
    unsent: int = MAX_UNSENT_BYTES


class OpenConnections:
    """The open connections of a gateway."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._here: dict[ClientStream, None] = {}  # the longest here first
        self._voided: set[Identity] = set()
        self._revoked_streams: list[ClientStream] = []
        self._revoked = trio.Event()
        self._logged_at = -math.inf
        self.unsent = UnsentBytes(self._limits.unsent)

    @property
    def is_empty(self) -> bool:
        """Whether no connection is open."""
        return not self._here

    def admit(self, stream: ClientStream) -> bool:
        """Add ``stream``; at the limit, abort the oldest unauthenticated connection for it.

        Return False if all others are authenticated: then ``stream`` is not added.
        """
        beside = [each for each in self._here if each.is_local == stream.is_local]
        unauthenticated = [each for each in beside if each.is_unauthenticated]
        is_full = not stream.is_local and len(unauthenticated) >= self._limits.unauthenticated
        if is_full or len(beside) >= self._limits.connections:
            self._log_refusal(len(beside), len(unauthenticated))
            if not unauthenticated:
                return False
            unauthenticated[0].abort()
            self.leave(unauthenticated[0])
        self._here[stream] = None
        stream.leave = partial(self.leave, stream)
        return True

    def leave(self, stream: ClientStream) -> None:
        """Remove ``stream``. Idempotent."""
        self._here.pop(stream, None)

    def end(self) -> None:
        """Let each connection finish its requests in progress."""
        for each in self._here:
            each.end()

    def abort(self) -> None:
        """End every connection now."""
        for each in list(self._here):
            each.abort()

    def revoke(self, voided: Collection[Identity]) -> int:
        """End each connection that used a key of ``voided``; return their number.

        ``close_revoked`` closes them after ``CUT_GRACE_S``. The keys must be void already, or a
        client could authenticate again meanwhile.
        """
        found = [each for each in self._here if not each.identities.isdisjoint(voided)]
        for each in found:
            each.is_voided = True
            each.end()
        self._revoked_streams += found
        self._voided.update(voided)
        self._revoked.set()
        return len(found)

    async def close_revoked(
        self, end_sessions: Callable[[frozenset[Identity]], Awaitable[None]]
    ) -> None:
        """Close revoked connections and end their sessions after ``CUT_GRACE_S``. Run forever."""
        while True:
            await self._revoked.wait()
            self._revoked = trio.Event()
            await trio.sleep(CUT_GRACE_S)
            streams, self._revoked_streams = self._revoked_streams, []
            voided, self._voided = frozenset(self._voided), set()
            for each in streams:
                each.abort()
            await end_sessions(voided)

    def _log_refusal(self, connections: int, unauthenticated: int) -> None:
        now = trio.current_time()
        if now >= self._logged_at + LOG_INTERVAL_S:
            self._logged_at = now
            log.warning("refusing connections", open=connections, strangers=unauthenticated)

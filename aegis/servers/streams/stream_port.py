"""``StreamPort``: where the streams of a client come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from aegis.protocol.streams import StreamEntry
from aegis.servers.calls import Caller
from aegis.servers.streams.outlet import StreamOut


class StreamPort(Protocol):
    """What the servers need for streams from the rest of the daemon."""

    async def stream(
        self,
        caller: Caller,
        entry: StreamEntry,
        arguments: Mapping[str, object],
        out: StreamOut,
    ) -> str:
        """Serve one stream until what it tells of is over: a sentence that says so.

        Raises ``AegisError`` or ``AskError`` if it cannot be opened, or ends before its time.
        Cancelled when the client closes it or goes away.
        """
        ...

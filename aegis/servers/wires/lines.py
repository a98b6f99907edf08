"""The line protocol of the Unix socket: one JSON object per line, as in ``requests``.

A peer is accepted by its uid, and its process says for whom it acts (``ClientStream.process``); a
hello with a session's secret binds the operator to that handle. A client that closes its sending
side has disconnected: its requests in progress are cancelled.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import trio

from aegis.errors import InvalidRequest
from aegis.servers.calls import Identity
from aegis.servers.gateway.client_stream import ClientStream
from aegis.servers.requests import MAX_FRAME_BYTES
from aegis.servers.wires.port import WireClosed

MAX_SKIPPED_BYTES = 64 * 1024 * 1024
"""Bytes of a line over the limit that are read and dropped, so that its sender gets the refusal."""


class LineWire:
    """A connection of lines, each one message; empty lines are skipped."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream
        self._lines = LineBuffer(MAX_FRAME_BYTES, MAX_SKIPPED_BYTES)
        self._sending = trio.StrictFIFOLock()

    async def receive(self) -> bytes:
        """Return the next line. Raises ``WireClosed``; for each long line ``InvalidRequest``."""
        try:
            while True:
                line = self._lines.next_line()
                if line is None:
                    self._lines.feed(await self._receive_some())
                elif line.strip():
                    return line
        except LineTooLong:
            raise InvalidRequest(
                f"a line must be at most {MAX_FRAME_BYTES} bytes long, and this one was longer: it "
                "was not read; write long texts to a file and send its path"
            ) from None
        except LineWithoutEnd:
            raise WireClosed from None

    async def send(self, message: str | bytes) -> None:
        """Send one line; several tasks may call it. Raises ``WireClosed``."""
        line = message.encode() if isinstance(message, str) else message
        async with self._sending:
            try:
                await self._stream.send_all(line + b"\n")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise WireClosed from None

    async def wait_gone(self) -> None:
        """Return once the client has closed its receiving side too."""
        await self._stream.wait_hung_up()

    def trust(self, identity: Identity | None) -> None:
        self._stream.trust(identity)

    def holding(self, size: int) -> AbstractContextManager[None]:
        return self._stream.holding(size)

    async def _receive_some(self) -> bytes:
        try:
            data = await self._stream.receive_some()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise WireClosed from None
        if not data:
            raise WireClosed
        return data


class LineTooLong(ValueError):
    """The error for a line over the limit. It is skipped: the next line can be read."""


class LineWithoutEnd(ValueError):
    """The error for a line that is too long to be skipped: no later line can be read."""


class LineBuffer:
    """A buffer that collects bytes and returns whole lines of at most ``limit`` bytes.

    The lines are returned without their newline. Of a longer line at most ``skipped`` bytes beyond
    the limit are dropped.
    """

    def __init__(self, limit: int, skipped: int = 0) -> None:
        self._limit = limit
        self._most_skipped = skipped
        self._data = bytearray()
        self._searched = 0
        self._skipped: int | None = None

    def feed(self, data: bytes) -> None:
        """Add received bytes. Raises ``LineWithoutEnd``."""
        self._data += data
        if self._skipped is not None:
            self._skip(self._skipped)
        if self._skipped is not None and self._skipped > self._most_skipped:
            raise LineWithoutEnd

    def next_line(self) -> bytes | None:
        """Return the next line; None if incomplete. Raises ``LineTooLong`` beyond the limit."""
        if self._skipped is not None:
            return None
        end = self._data.find(b"\n", self._searched)
        if (len(self._data) if end < 0 else end) > self._limit:
            self._skip(-self._limit)
            raise LineTooLong
        if end < 0:
            self._searched = len(self._data)
            return None
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        self._searched = 0
        return line

    def _skip(self, before: int) -> None:
        """Drop the rest of a line, of which ``before`` bytes beyond the limit were dropped."""
        end = self._data.find(b"\n")
        count = before + (len(self._data) if end < 0 else end)
        del self._data[: None if end < 0 else end + 1]
        self._searched = 0
        self._skipped = count if end < 0 else None

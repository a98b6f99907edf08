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
from aegis.servers.wires.conversation import ServerContext, converse
from aegis.servers.wires.framing import LineBuffer, LineTooLong, LineWithoutEnd
from aegis.servers.wires.port import WireClosed

MAX_SKIPPED_BYTES = 64 * 1024 * 1024
"""Bytes of a line over the limit that are read and dropped, so that its sender gets the refusal."""


async def serve_lines(
    stream: ClientStream, stopping: trio.Event, *, context: ServerContext
) -> None:
    """Serve one connection until the client disconnects, is refused, or ``stopping``."""
    await converse(LineWire(stream), context, "line", stream.process, stopping)


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

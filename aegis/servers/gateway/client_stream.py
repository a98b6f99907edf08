"""``ClientStream``: a connection with read-ahead, a deadline for sends, and a forced end.

A client that stops reading must not block a server. The HTTP server shields its sends from
cancellation, so the deadline is inside ``send_all``; closing the socket ends a shielded send at
once.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager

import trio

from aegis.servers.access.unsent_bytes import UnsentBytes
from aegis.servers.calls import Identity

SEND_LIMIT_S = 20.0
PART_BYTES = 256 * 1024
"""The part of a message that a client must take within ``SEND_LIMIT_S`` seconds."""

READ_CHUNK_BYTES = 65_536


class ClientStream(trio.abc.HalfCloseableStream):
    """A connected socket. Bytes that were read ahead are received again; sends have a deadline.

    ``is_unauthenticated``: the client has not shown a key, and may send ``allowance`` more bytes;
    None: no limit. ``identities`` are the identities whose keys it sent; ``is_voided``: one of
    these keys was voided. ``process`` is the identity of the client's process, None over TCP.
    ``ending`` is set when the server must finish the requests in progress and accept no new ones;
    ``idle`` is then cancelled, the wait of a server for the next request. ``leave`` takes it out of
    the open connections while its task continues.
    """

    def __init__(
        self,
        inner: trio.SocketStream,
        *,
        send_limit_s: float = SEND_LIMIT_S,
        unsent: UnsentBytes | None = None,
    ) -> None:
        self._inner = inner
        self._send_limit_s = send_limit_s
        self._unsent = unsent or UnsentBytes()
        self._ahead = bytearray()
        self.socket = inner.socket
        self.allowance: int | None = None
        self.is_local = inner.socket.family == socket.AF_UNIX
        self.is_unauthenticated = True
        self.is_voided = False
        self._is_ended = self._is_sending = False
        self.identities: set[Identity] = set()
        self.process: Identity | None = None
        self.ending = trio.Event()
        self.idle = trio.CancelScope()
        self.leave: Callable[[], None] = lambda: None

    def end(self) -> None:
        """Let the server finish the requests in progress, and accept no new ones."""
        self.ending.set()
        self.idle.cancel()

    def trust(self, identity: Identity | None) -> None:
        """Note that the client authenticated, by a key of ``identity``; None: by its connection."""
        self.is_unauthenticated = False
        self.allowance = None
        if identity is not None:
            self.identities.add(identity)

    def holding(self, size: int) -> AbstractContextManager[None]:
        """Count ``size`` bytes as unread by the client during the block (``UnsentBytes``)."""
        return self._unsent.holding(self, size)

    async def read_ahead(self, is_enough: Callable[[bytearray], bool], most: int) -> bytes:
        """Read until ``is_enough`` of the bytes read so far, ``most`` bytes, or end of file.

        Return the bytes; ``receive_some`` returns them again. Raises as ``receive_some`` does.
        """
        while len(self._ahead) < most and not is_enough(self._ahead):
            data = await self._inner.receive_some(most - len(self._ahead))
            if not data:
                break
            self._ahead += data
        return bytes(self._ahead)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return some bytes, first those read ahead; empty at end of file.

        Raises ``BrokenResourceError`` if the connection broke or its allowance is used up.
        """
        if self._ahead:
            await trio.lowlevel.checkpoint()
            data = self._take_ahead(max_bytes)
        else:
            data = bytes(await self._inner.receive_some(max_bytes or READ_CHUNK_BYTES))
        self._spend(len(data))
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send ``data``; a checkpoint only if the socket does not take all of it at once.

        Raises ``BrokenResourceError`` if the client did not read each ``PART_BYTES`` of it in time.

        The connection is aborted then, as it is unknown how much of ``data`` arrived. Also raised
        after ``send_eof``.
        """
        if self._is_ended:
            raise trio.BrokenResourceError("the connection is being closed")
        rest = self.send_now(data)
        if not rest:
            return
        parts = memoryview(rest)
        with self.holding(len(rest)):
            for begin in range(0, len(parts), PART_BYTES):
                await self._send_part(parts[begin : begin + PART_BYTES])

    def send_now(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Send as much as the socket takes at once; return the rest."""
        # Nearly every message fits. A checkpoint and a deadline would cost more than the send.
        if self._is_sending:
            return data
        try:
            return memoryview(data)[os.write(self.socket.fileno(), data) :]
        except OSError:  # the socket is full or broken: ``_inner`` waits, or raises Trio's error
            return data

    async def _send_part(self, part: memoryview) -> None:
        # A second task gets BusyResourceError from ``_inner``, and changes nothing for the first.
        was_sending, self._is_sending = self._is_sending, True
        try:
            with trio.move_on_after(self._send_limit_s) as limit:
                await self._inner.send_all(part)
        finally:
            self._is_sending = was_sending
        if limit.cancelled_caught:
            self.abort()
            raise trio.BrokenResourceError("the client does not read")

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the client can take more."""
        await self._inner.wait_send_all_might_not_block()

    async def wait_hung_up(self) -> None:
        """Wait until the client of a Unix socket has closed both sides."""
        # At end of file the socket itself is always readable. Registered for no event, an epoll
        # becomes readable only by a hang-up or an error (epoll_ctl(2)).
        try:
            hung_up = select.epoll(1)
        except OSError:  # no descriptor is free: the next send shows that the client has gone
            await trio.sleep_forever()
        with hung_up:
            hung_up.register(self.socket.fileno(), 0)
            await trio.lowlevel.wait_readable(hung_up.fileno())

    async def send_eof(self) -> None:
        """Close the sending side."""
        self._is_ended = True
        await self._inner.send_eof()

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    def abort(self) -> None:
        """Close the socket now: tasks that wait for it, shielded or not, get an error."""
        self.socket.close()

    def _take_ahead(self, max_bytes: int | None) -> bytes:
        count = len(self._ahead) if max_bytes is None else min(max_bytes, len(self._ahead))
        data = bytes(self._ahead[:count])
        del self._ahead[:count]
        return data

    def _spend(self, count: int) -> None:
        if self.allowance is None:
            return
        self.allowance -= count
        if self.allowance < 0:
            raise trio.BrokenResourceError("the client sent too much before it authenticated")

"""The queue of packets to another process, in order and in bounded memory."""

from __future__ import annotations

from collections import deque

import trio

from actors.nodes.links.parcels import framed

MOST_PACKETS = 4096
MOST_BYTES = 8_388_608
"""The limits of the queue: beyond them ``send`` and ``ask`` wait, and ``tell`` is refused."""

AT_ONCE_BYTES = 65_536
"""The size up to which small packets are sent together, in bytes."""


class SendQueue:
    """A queue of framed packets, which one task takes."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._taken = trio.lowlevel.ParkingLot()
        self._put = trio.lowlevel.ParkingLot()

    @property
    def has_room(self) -> bool:
        """Whether the queue is within its limits."""
        return len(self._frames) < MOST_PACKETS and self._size < MOST_BYTES

    def put(self, packet: bytes) -> None:
        """Queue ``packet``, even beyond the limits."""
        frame = framed(packet)
        self._frames.append(frame)
        self._size += len(frame)
        self._put.unpark()

    async def wait_for_room(self) -> None:
        """Wait until the queue is within its limits, in order. A checkpoint only if it waits."""
        while not self.has_room:
            await self._taken.park()

    async def take(self) -> bytes:
        """Remove and return the next frames, joined."""
        while not self._frames:
            await self._put.park()
        taken, size = [], 0
        while self._frames and size < AT_ONCE_BYTES:
            taken.append(self._frames.popleft())
            size += len(taken[-1])
        self._size -= size
        self._taken.unpark_all()
        return b"".join(taken)

    def clear(self) -> None:
        """Drop all packets: the connection has ended."""
        self._frames.clear()
        self._size = 0
        self._taken.unpark_all()

"""What waits to be carried to another process: packets in order, in bounded memory."""

from __future__ import annotations

from collections import deque

import trio

from actors.nodes.links.parcels import framed

MOST_PACKETS = 4096
MOST_BYTES = 8_388_608
"""Who may wait waits for room beyond these; who may not is refused."""

AT_ONCE_BYTES = 65_536
"""So many bytes of small packets are carried together."""


class Outbox:
    """Frames of packets; one task takes them."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._taken = trio.lowlevel.ParkingLot()
        self._put = trio.lowlevel.ParkingLot()

    @property
    def has_room(self) -> bool:
        """Whether one more that may be refused may be put."""
        return len(self._frames) < MOST_PACKETS and self._size < MOST_BYTES

    def put(self, packet: bytes) -> None:
        """Queue ``packet``, whether there is room or not."""
        frame = framed(packet)
        self._frames.append(frame)
        self._size += len(frame)
        self._put.unpark()

    async def wait_for_room(self) -> None:
        """Return when there is some; in the order of coming. A checkpoint only if it waits."""
        while not self.has_room:
            await self._taken.park()

    async def take(self) -> bytes:
        """The frames that are carried next, as bytes."""
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
        """Drop everything: it cannot be carried any more."""
        self._frames.clear()
        self._size = 0
        self._taken.unpark_all()

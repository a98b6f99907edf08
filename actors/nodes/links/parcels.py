"""Packets as a stream of bytes, each prefixed by its length, and back. Pure.

One message of a link is any piece of that stream: many small packets, or a part of a large one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from actors.errors import LinkLost
from actors.nodes.links.packets import PACKET_LIMIT

PIECE_BYTES = 262_144
"""The largest piece, in bytes: a heartbeat waits behind one piece at most."""

_LENGTH = struct.Struct("!I")


def framed(packet: bytes) -> bytes:
    """Return ``packet`` prefixed by its length."""
    return _LENGTH.pack(len(packet)) + packet


def pieces(stream: bytes, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """Yield ``stream`` in pieces of at most ``size`` bytes."""
    for start in range(0, len(stream), size):
        yield stream[start : start + size]


class Splitter:
    """A parser of the stream; it keeps one incomplete packet of at most ``limit`` bytes."""

    def __init__(self, limit: int = PACKET_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the packets that ``piece`` completes. Raises ``LinkLost`` for a larger one."""
        rest = self._rest
        rest += piece
        packets, start = [], 0
        while len(rest) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(rest, start)
            if length > self._limit:
                raise LinkLost(f"The other side sent a packet of more than {self._limit} bytes.")
            end = start + _LENGTH.size + length
            if end > len(rest):
                break
            packets.append(bytes(rest[start + _LENGTH.size : end]))
            start = end
        del rest[:start]
        return packets

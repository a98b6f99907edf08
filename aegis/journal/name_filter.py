"""``NameFilter``: a Bloom filter of names. Pure.

It has each name that was added, and by mistake 1 or 2 in 100 of all others.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

BITS_FOR_A_NAME = 16
MIN_BITS = 1 << 13
MAX_BITS = 1 << 26
"""The limits of the size: 8 MiB for 4 million names. With more names it makes more mistakes."""

USED_DIGITS = 16
"""The hexadecimal digits of a digest that are used: two numbers of 32 bits."""


class NameFilter:
    """The names that were added, with room for a ``count`` at least."""

    def __init__(self, count: int) -> None:
        bits = MIN_BITS
        while bits < min(BITS_FOR_A_NAME * count, MAX_BITS):
            bits *= 2
        self._bits, self._mask = bytearray(bits // 8), bits - 1
        self._room = bits // BITS_FOR_A_NAME

    @property
    def is_full(self) -> bool:
        """Whether a larger one would make fewer mistakes."""
        return self._room < 0 and self._mask + 1 < MAX_BITS

    def add(self, digests: Sequence[str]) -> None:
        """Add names by their digests, which are hexadecimal. Those that it has count too."""
        bits, mask = self._bits, self._mask
        for number in _numbers("".join(each[:USED_DIGITS] for each in digests)):
            at = number & mask
            bits[at >> 3] |= 1 << (at & 7)
        self._room -= len(digests)

    def has(self, digest: str) -> bool:
        """Return False only if the name of a digest was never added."""
        bits, mask = self._bits, self._mask
        first, second = _numbers(digest[:USED_DIGITS])
        first, second = first & mask, second & mask
        return bool(bits[first >> 3] >> (first & 7) & bits[second >> 3] >> (second & 7) & 1)


def _numbers(digits: str) -> tuple[int, ...]:
    return struct.unpack(f"<{len(digits) // 8}I", bytes.fromhex(digits))

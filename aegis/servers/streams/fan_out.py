"""``FanOut``: floods shown to many take a bounded part of the daemon's time, all together.

Each message of a flood costs some tenths of a millisecond of the one loop, and what floods has its
turns in the same loop: fifty watchers would take nearly all of it. So they share a rate. What is
little, such as the echo of a key, waits for nobody.
"""

from __future__ import annotations

import trio

from aegis.protocol.streams import MAX_CHUNK_BYTES

BYTES_PER_S = 16 * 1024 * 1024
"""Output of floods that all streams of a daemon get together."""

TURN_S = MAX_CHUNK_BYTES / BYTES_PER_S


class FanOut:
    """Whose turn it is to be sent much: first come, first served."""

    def __init__(self) -> None:
        self._free_at = 0.0

    async def turn(self) -> None:
        """Wait for a turn."""
        at = max(self._free_at, trio.current_time())
        self._free_at = at + TURN_S
        await trio.sleep_until(at)

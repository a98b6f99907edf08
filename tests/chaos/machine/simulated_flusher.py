"""``SimulatedFlusher``: the flusher of a simulated disk, without threads, on Trio's clock.

A sync takes time, so that others write meanwhile, and covers the writes before its begin. Other
work for a thread runs at one moment, after some time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio

from aegis.journal.flusher import Flusher
from tests.chaos.machine.simulated_disk import SimulatedDisk, Stall

T = TypeVar("T")

SYNC_S = 0.005
"""The duration of a sync in seconds."""

HOP_S = 0.0005
"""The delay in seconds of a call in a thread."""


class SimulatedFlusher(Flusher):
    """Syncs and blocking work on ``disk``."""

    def __init__(self, disk: SimulatedDisk) -> None:
        super().__init__(disk)
        self._simulated = disk

    async def fdatasync(self, fd: int) -> None:
        await self._sync_slowly("fdatasync", fd)

    async def fsync(self, fd: int) -> None:
        await self._sync_slowly("fsync", fd)

    async def sync_directory(self, directory: Path) -> None:
        fd = self._simulated.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            await self._sync_slowly("fsync", fd)
        finally:
            self._simulated.close(fd)

    async def call(self, blocking: Callable[[], T]) -> T:
        with trio.CancelScope(shield=True):
            await trio.sleep(HOP_S)
        return blocking()

    async def look(self, blocking: Callable[[], T]) -> T:
        await trio.sleep(HOP_S)
        return blocking()

    async def _sync_slowly(self, call: str, fd: int) -> None:
        ticket, fault = self._simulated.begin_sync(fd, call)
        await trio.sleep(SYNC_S + (fault.seconds if isinstance(fault, Stall) else 0.0))
        self._simulated.end_sync(ticket, fault)

"""``SimulatedFlusher``: the flusher of a simulated disk, without threads, on Trio's clock.

A sync takes time, so that others write meanwhile, and covers the writes before its begin. Other
work for a thread runs at one moment, after some time.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import outcome
import trio

from aegis.journal.flusher import Done, Flusher, Forget, StartSoon
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
        await self.sync_slowly("fdatasync", fd)

    def begin_fdatasync(
        self, fd: int, began: Callable[[], object], done: Done, start_soon: StartSoon
    ) -> Forget:
        scope = trio.CancelScope()

        async def sync() -> None:
            with scope:
                done(await outcome.acapture(self.sync_slowly, "fdatasync", fd, began))

        start_soon(sync)
        return scope.cancel

    async def fsync(self, fd: int) -> None:
        await self.sync_slowly("fsync", fd)

    async def sync_directory(self, directory: Path) -> None:
        fd = self._simulated.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            await self.sync_slowly("fsync", fd)
        finally:
            self._simulated.close(fd)

    def close_soon(self, fd: int) -> None:
        self._simulated.close(fd)

    async def call(self, blocking: Callable[[], T]) -> T:
        with trio.CancelScope(shield=True):
            await trio.sleep(HOP_S)
        return blocking()

    async def look(self, blocking: Callable[[], T]) -> T:
        await trio.sleep(HOP_S)
        return blocking()

    async def sync_slowly(
        self, call: str, fd: int, began: Callable[[], object] = lambda: None
    ) -> None:
        """Sync ``fd`` with this call; ``began`` is called once it is decided what is covered."""
        ticket, fault = self._simulated.begin_sync(fd, call)
        began()
        await trio.sleep(SYNC_S + (fault.seconds if isinstance(fault, Stall) else 0.0))
        self._simulated.end_sync(ticket, fault)


def skipping(sync_slowly: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Return a ``sync_slowly`` whose ``fdatasync`` takes its time and syncs nothing."""

    async def pretend(
        flusher: SimulatedFlusher, call: str, fd: int, began: Callable[[], object] = lambda: None
    ) -> None:
        if call != "fdatasync":
            await sync_slowly(flusher, call, fd, began)
            return
        began()
        await trio.sleep(SYNC_S)

    return pretend

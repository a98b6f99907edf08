"""The workspaces of a root, in memory and on disk: a change counts once it is synced."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import structlog
import trio

from aegis.errors import StorageError
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.workspaces.rules import WorkspacesByName, restored

log = structlog.get_logger("aegis.workspaces")

T = TypeVar("T")


class WorkspaceStore:
    """The file at ``path``. ``now`` is what it holds; for one Trio loop.

    ``root`` is text, ``earlier`` are its earlier paths.

    Raises ``StorageError`` when it is opened and when a change cannot be written: then nothing has
    changed. Nothing of it may be shown before ``confirm`` has returned.
    """

    def __init__(
        self, path: Path, flusher: Flusher, root: str = "", earlier: tuple[str, ...] = ()
    ) -> None:
        self._note = Note.open(path, flusher)
        self._root = root
        self.now, damaged = restored(self._note.load(), root, earlier)
        self._writing = trio.Lock()
        if self._note.damaged or damaged:
            log.error("workspaces damaged", path=str(path), kept=len(self.now.by_key))

    async def confirm(self) -> None:
        """Return once what was found survives a loss of power; after that it does nothing.

        Raises ``StorageError`` where the disk refuses that: the next call tries again.
        """
        await self._note.confirm()

    async def change(self, change: Callable[[WorkspacesByName], tuple[WorkspacesByName, T]]) -> T:
        """Carry out one change and give what it gives; what it raises changes nothing."""
        async with self._writing:
            new, result = change(self.now)
            try:
                await self._note.write_synced(new.stored(self._root))
            except StorageError:
                # It may be on the disk though it was refused: a later life would find it.
                with contextlib.suppress(StorageError):
                    await self._note.write_synced(self.now.stored(self._root))
                raise
            self.now = new
            return result

    def close(self) -> None:
        """Let go of the file."""
        self._note.close()

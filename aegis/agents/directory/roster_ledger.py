"""``RosterLedger``: the file of the roster, created with the first session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from aegis.agents.directory.roster import Roster
from aegis.agents.directory.session_names import SessionNames
from aegis.agents.directory.taken_handles import TakenHandles
from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.folding import load
from aegis.journal.ledger import encode_line
from aegis.protocol.naming import name_key


@attrs.frozen
class HandlesInUse:
    """The handles of sessions, and those with the keys ``inboxes``, without those of ``but``."""

    sessions: TakenHandles
    inboxes: Collection[str]
    but: Collection[str] = ()

    def __contains__(self, handle: object) -> bool:
        key = name_key(str(handle))
        return key not in self.but and (key in self.inboxes or key in self.sessions)


NAME = "sessions.jsonl"


class RosterLedger:
    """The ledger of ``roster`` in ``directory``, which keeps ``names``. The owner closes it.

    ``root`` and its ``earlier`` paths are those of the roster.
    """

    def __init__(
        self,
        directory: Path,
        flusher: Flusher,
        start_soon: Callable[..., object],
        names: SessionNames | None = None,
        root: str = "",
        earlier: tuple[str, ...] = (),
    ) -> None:
        self._directory = directory
        self.flusher = flusher
        self._start_soon = start_soon
        self._writing = trio.Lock()
        self._appender: Appender | None = None
        self.roster = Roster(root, earlier, names=names or SessionNames())

    async def load(self) -> bool:
        """Read the roster; return whether there is one. Raises ``StorageError``."""
        if self._appender is None and self._exists():
            await self._open()
        return self._appender is not None

    async def write(self, line: dict[str, Any]) -> None:
        """Write a line; return once it is durable. Raises ``StorageError``."""
        async with self._writing:
            appender = self._appender or await self._open()
            if appender.failed:
                await appender.recover()
            try:
                await appender.wait_synced(appender.append(encode_line(line)))
            except StorageError:
                raise
            except Exception:
                await self._read_again(line)
                raise
            self.roster.apply(line)

    async def _read_again(self, line: dict[str, Any]) -> None:
        """Open the file anew after an error in a write: only it shows whether the line is there."""
        if self._appender is not None:
            self._appender.close()
        self._appender = None
        try:
            await self._open()
        except StorageError:
            self.roster.apply(line)  # it may be there: no handle is given twice

    def taken(self, inboxes: Path) -> HandlesInUse:
        """Return every handle in use: of sessions, and of files in ``inboxes``."""
        return HandlesInUse(self.roster.taken, {name_key(each) for each in self.inboxes(inboxes)})

    def inboxes(self, directory: Path) -> list[str]:
        """Return the handles that have an inbox in ``directory``."""
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = self.flusher.disk.list_directory(directory)
        return [each.removesuffix(".jsonl") for each in names]

    def close(self) -> None:
        """Close the file."""
        if self._appender is not None:
            self._appender.close()

    def _empty(self) -> Roster:
        return Roster(self.roster.root, self.roster.earlier)

    def _exists(self) -> bool:
        return NAME in stored_names(self.flusher.disk, self._directory)

    async def _open(self) -> Appender:
        path = self._directory / NAME
        appender = await Appender.open(path, self.flusher)
        try:
            found = await self.flusher.look(
                partial(load, self.flusher.disk, path, appender.synced, self._empty())
            )
        except BaseException:
            appender.close()
            raise
        self.roster.take_over(found)
        appender.start(self._start_soon)
        self._appender = appender
        return appender

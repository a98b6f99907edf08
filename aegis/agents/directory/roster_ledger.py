"""``RosterLedger``: the file of the roster, created with the first session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio

from aegis.agents.directory.roster import MAX_SESSIONS, Roster
from aegis.agents.directory.session_names import SessionNames
from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.disk import storage_error
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.reader import LedgerReader
from aegis.protocol.naming import name_key

NAME = "sessions.jsonl"

LINES_OF_EACH = 32
"""The lines that a session may have on average: it is changed, closed and opened again."""

MAX_BYTES = 64 * 1024 * 1024
"""The largest roster that is read."""


class RosterLedger:
    """The ledger of ``roster`` in ``directory``, which keeps ``names``. The owner closes it."""

    def __init__(
        self,
        directory: Path,
        flusher: Flusher,
        start_soon: Callable[..., object],
        names: SessionNames | None = None,
    ) -> None:
        self._directory = directory
        self.flusher = flusher
        self._start_soon = start_soon
        self._writing = trio.Lock()
        self._appender: Appender | None = None
        self.roster = Roster(names=names or SessionNames())

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
                self.roster.take(line)  # it may be in the file: no handle is given twice
                raise
            self.roster.take(line)

    def taken(self, inboxes: Path) -> set[str]:
        """Return every handle in use, as ``name_key``: of sessions and of files in ``inboxes``."""
        return {name_key(each) for each in (*self.inboxes(inboxes), *self.roster.taken)}

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

    def _exists(self) -> bool:
        try:
            return NAME in self.flusher.disk.list_directory(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise storage_error("list", self._directory, error) from error

    async def _open(self) -> Appender:
        path = self._directory / NAME
        appender = await Appender.open(path, self.flusher)
        reader = LedgerReader(path, disk=self.flusher.disk)
        most = LINES_OF_EACH * MAX_SESSIONS
        read = partial(reader.last_n, most, end=appender.synced, max_bytes=MAX_BYTES)
        try:
            found = await self.flusher.look(read)
        except BaseException:
            appender.close()
            raise
        for line in found.records:
            self.roster.take(line)
        appender.start(self._start_soon)
        self._appender = appender
        return appender

"""``Store``: the ledger of Telegram, written line by line, and its fold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog
import trio

from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.disk import shown
from aegis.journal.flusher import Flusher
from aegis.journal.folding import load
from aegis.journal.ledger import Append, encode_line
from aegis.journal.line_writer import LineWriter
from aegis.journal.rotation import rotate_ledger, settle_rotation
from aegis.telegram import faults
from aegis.telegram.ledger import Fold, Line

log = structlog.get_logger("aegis.telegram")

LIMIT_BYTES = 1024 * 1024
"""The size at which a new file begins, whose head has the state so far. One file before is kept."""


class Store:
    """The durable state; ``fold`` has every line that was appended."""

    def __init__(
        self,
        appender: Appender,
        fold: Fold,
        flusher: Flusher,
        start_soon: Callable[..., object],
        limit_bytes: int,
    ) -> None:
        self.fold = fold
        self._flusher = flusher
        self._start_soon = start_soon
        self._limit = limit_bytes
        # A head may be long; a file that was not rotated in time is not written twice at once.
        self._full_at = max(limit_bytes, appender.synced // 2)
        self._count = fold.seq
        self._waiting: dict[int, tuple[trio.Event, Line]] = {}
        self._failed: set[trio.Event] = set()
        self._refusal = ""
        self._idle: trio.Event | None = None
        self._rotated: trio.Event | None = None
        self._begin(appender)

    @classmethod
    async def open(
        cls,
        path: Path,
        flusher: Flusher,
        start_soon: Callable[..., object],
        *,
        limit_bytes: int = LIMIT_BYTES,
    ) -> Store:
        """Open or create the ledger at ``path``. Raises ``StorageError``."""
        await flusher.call(partial(settle_rotation, flusher.disk, path))
        appender = await Appender.open(path, flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            read = partial(load, flusher.disk, path, appender.synced, Fold())
            fold = await flusher.look(read)
            undo.pop_all()
        return cls(appender, fold, flusher, start_soon, limit_bytes)

    async def append(self, line: Line) -> None:
        """Append a line; return when it is durable. Raises ``StorageError``."""
        while self._rotated is not None:
            await self._rotated.wait()
        if self._appender.synced >= self._full_at:
            await self._rotate()
        self._count += 1
        done, number = trio.Event(), self._count
        numbered = {"seq": number, **line}
        self._waiting[number] = done, numbered
        self._writer.append(Append(number=number, line=numbered))
        await done.wait()
        if done in self._failed:
            self._failed.discard(done)
            raise StorageError(self._refusal)

    def close(self) -> None:
        """Close the ledger."""
        self._writer.close()

    def _begin(self, appender: Appender) -> None:
        self._appender = appender
        self._writer = LineWriter(
            appender,
            self._start_soon,
            synced=self._synced,
            refused=self._refused,
            before=faults.APPEND_BEFORE.hit,
            after=faults.APPEND_AFTER.hit,
        )

    async def _rotate(self) -> None:
        """Begin a new file. If the disk refuses, the current one continues, and grows."""
        self._rotated = trio.Event()
        try:
            while self._waiting:  # the head has every line before it
                self._idle = trio.Event()
                await self._idle.wait()
            head = encode_line(self.fold.head())
            appender = await rotate_ledger(self._appender.path, head, self._flusher)
            self._writer.close()
            self._full_at = len(head) + self._limit
            self._begin(appender)
        except (StorageError, ValueError) as error:
            log.warning("ledger not rotated", file=shown(self._appender.path), why=str(error))
            self._full_at = self._appender.synced + self._limit // 4
        finally:
            self._rotated.set()
            self._rotated = None

    def _synced(self, number: int) -> None:
        done, line = self._waiting[number]
        self.fold.apply(line)
        self._forget(number)
        done.set()

    def _forget(self, number: int) -> None:
        del self._waiting[number]
        if self._idle is not None and not self._waiting:
            self._idle.set()

    def _refused(self, sentence: str) -> None:
        self._refusal = sentence
        refused, self._waiting = self._waiting, {}
        # None of them is in the file: the next line has the number of the first one.
        self._count = self.fold.seq
        for done, _ in refused.values():
            self._failed.add(done)
            done.set()
        if self._idle is not None:
            self._idle.set()

"""``Store``: the ledger of Telegram, written line by line, and its fold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.folding import load
from aegis.journal.ledger import Append
from aegis.journal.line_writer import LineWriter
from aegis.telegram.ledger import Fold, Line


class Store:
    """The durable state; ``fold`` has every line that was appended."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self._writer: LineWriter | None = None
        self._count = 0
        self._waiting: dict[int, tuple[trio.Event, Line]] = {}
        self._refusal = ""

    @classmethod
    async def open(cls, path: Path, flusher: Flusher, start_soon: Callable[..., object]) -> Store:
        """Open or create the ledger at ``path``. Raises ``StorageError``."""
        appender = await Appender.open(path, flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            read = partial(load, flusher.disk, path, appender.synced, Fold())
            store = cls(await flusher.look(read))
            undo.pop_all()
        store._writer = LineWriter(
            appender,
            start_soon,
            synced=store._synced,
            refused=store._refused,
            before=_nothing,
            after=_nothing,
        )
        return store

    async def append(self, line: Line) -> None:
        """Append a line; return when it is durable. Raises ``StorageError``."""
        assert self._writer is not None
        self._count += 1
        done = trio.Event()
        self._waiting[self._count] = done, line
        number = self._count
        self._writer.append(Append(number=number, line=line))
        await done.wait()
        if number in self._waiting:
            del self._waiting[number]
            raise StorageError(self._refusal)

    def close(self) -> None:
        """Close the ledger."""
        if self._writer is not None:
            self._writer.close()

    def _synced(self, number: int) -> None:
        done, line = self._waiting.pop(number)
        self.fold.apply(line)
        done.set()

    def _refused(self, sentence: str) -> None:
        self._refusal = sentence
        for done, _ in self._waiting.values():
            done.set()


def _nothing(_: str) -> None:
    """Take the kind of a line around its write."""

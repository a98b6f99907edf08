"""``CanvasLedger``: the ledger of one canvas, which begins a new file when one is full."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import structlog

from aegis.canvases import faults
from aegis.canvases.history import HISTORY_BYTES, History
from aegis.canvases.state import CanvasState, head_line
from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.disk import Disk, shown
from aegis.journal.flusher import Flusher
from aegis.journal.folding import exists, load
from aegis.journal.ledger import Append, encode_line
from aegis.journal.line_writer import LineWriter
from aegis.journal.rotation import previous_of, rotate_ledger, settle_rotation
from aegis.protocol.canvases import CanvasHistory

log = structlog.get_logger("aegis.canvases")


class CanvasLedger:
    """The ledger whose lines resulted in ``state``. The owner closes it."""

    def __init__(
        self,
        appender: Appender,
        state: CanvasState,
        flusher: Flusher,
        start_soon: Callable[..., object],
        *,
        synced: Callable[[int], None],
        refused: Callable[[str], None],
    ) -> None:
        self._path = appender.path
        self._state = state
        self._flusher = flusher
        self._start_soon = start_soon
        self._report_synced = synced
        self._report_refused = refused
        self._seq = self._synced_seq = state.seq
        self._seqs: dict[int, int] = {}
        """The numbers of the lines that are not synced, by those of their appends."""
        self._rotating: list[Append] | None = None
        self._full_at = max(HISTORY_BYTES, appender.synced // 2)
        self._begin(appender)

    @staticmethod
    async def load(path: Path, flusher: Flusher) -> tuple[Appender, CanvasState]:
        """Open or create the ledger; return its state too. Raises ``StorageError``."""
        await flusher.call(partial(settle_rotation, flusher.disk, path))
        appender = await Appender.open(path, flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            read = partial(load, flusher.disk, path, appender.synced, CanvasState())
            state = await flusher.look(read)
            undo.pop_all()
        return appender, state

    @property
    def is_full(self) -> bool:
        """Whether a new file should begin."""
        return self._rotating is None and self._appender.synced >= self._full_at

    def append(self, action: Append) -> None:
        """Append a line."""
        if self._rotating is not None:
            self._rotating.append(action)
            return
        self._seq += 1
        self._seqs[action.number] = self._seq
        self._writer.append(attrs.evolve(action, line={"seq": self._seq, **action.line}))

    async def rotate(self) -> None:
        """Begin a new file; every line is synced. If the disk refuses, the old file is kept."""
        self._rotating = []
        head = encode_line(head_line(attrs.evolve(self._state, seq=self._seq)))
        try:
            appender = await rotate_ledger(self._path, head, self._flusher)
        except StorageError as error:
            log.warning("ledger not rotated", file=shown(self._path), why=str(error))
            self._full_at = self._appender.synced + HISTORY_BYTES // 4
        else:
            self._writer.close()
            self._full_at = len(head) + HISTORY_BYTES
            self._begin(appender)
        finally:
            waiting, self._rotating = self._rotating or [], None
        for action in waiting:
            self.append(action)

    async def history(
        self, canvas: str, keys: frozenset[str], limit: int, done: int
    ) -> CanvasHistory:
        """Return the newest changes of these sections, of all if there are none, newest first.

        A change that is in the file, as ``done``, is among them before its line is synced.
        """
        read = partial(_history, self._flusher.disk, self._path, self._appender.synced)
        found = await self._flusher.look(partial(read, keys, limit))
        if found.intent is not None and found.intent.change.rev == done:
            found.finish()
        return CanvasHistory(canvas=canvas, result=found.newest_first, more=found.has_more)

    def _synced(self, number: int) -> None:
        self._synced_seq = self._seqs.pop(number)
        self._report_synced(number)

    def _refused(self, sentence: str) -> None:
        # No line that was not synced is in the file: the next one has the number of the first.
        self._seqs.clear()
        self._seq = self._synced_seq
        self._report_refused(sentence)

    def close(self) -> None:
        """Close the file."""
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


def _history(disk: Disk, path: Path, end: int, keys: frozenset[str], limit: int) -> History:
    history = History(keys=keys, found=deque(maxlen=limit + 1), limit=limit)
    before = previous_of(path)
    if exists(disk, before):
        load(disk, before, None, history, sealed_as=path)
    return load(disk, path, end, history)

"""``LineWriter``: appends numbered lines in order, and reports when they are synced."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from aegis.errors import StorageError
from aegis.journal.appender import Appender, Position
from aegis.journal.ledger import Append, encode_line


class LineWriter:
    """The writer of one ledger, whose lines are mappings with a ``kind``.

    ``synced`` is called with the number of each line that is durable, in order; ``refused`` with a
    sentence when the disk refused: then no other line is in the ledger. ``before`` and ``after``
    are called with a line's kind around its write: fault points. ``start_soon`` starts its tasks.
    """

    def __init__(
        self,
        appender: Appender,
        start_soon: Callable[..., object],
        *,
        synced: Callable[[int], None],
        refused: Callable[[str], None],
        before: Callable[[str], None],
        after: Callable[[str], None],
    ) -> None:
        self._before = before
        self._after = after
        self._appender = appender
        self._start_soon = start_soon
        self._synced = synced
        self._refused = refused
        self._unwritten: deque[Append] = deque()
        self._unsynced: deque[tuple[Position, int]] = deque()
        self._is_recovering = False
        appender.start(start_soon)
        appender.on_outcome = self._settle

    def append(self, action: Append) -> None:
        """Append a line; after a failure of the disk, once the ledger is opened again."""
        self._unwritten.append(action)
        if self._is_recovering:
            return
        if self._appender.failed:
            self._is_recovering = True
            self._start_soon(self._recover)
        else:
            self._write()

    def close(self) -> None:
        """Close the ledger."""
        self._appender.on_outcome = None
        self._appender.close()

    def _write(self) -> None:
        while self._unwritten:
            action = self._unwritten.popleft()
            subject = str(action.line["kind"])
            self._before(subject)
            try:
                position = self._appender.append(encode_line(action.line))
            except StorageError as error:
                self._refuse(str(error))
                return
            self._after(subject)
            self._unsynced.append((position, action.number))
        self._appender.request_sync()

    async def _recover(self) -> None:
        try:
            await self._appender.recover()
        except StorageError as error:
            self._is_recovering = False
            self._refuse(str(error))
        else:
            self._is_recovering = False
            self._write()

    def _settle(self) -> None:
        """Report the lines that are synced, after a sync has ended or the disk has refused."""
        try:
            while self._unsynced and self._appender.is_synced(self._unsynced[0][0]):
                _, number = self._unsynced.popleft()
                self._synced(number)
        except StorageError as error:
            self._refuse(str(error))

    def _refuse(self, sentence: str) -> None:
        self._unwritten.clear()
        self._unsynced.clear()
        self._refused(sentence)

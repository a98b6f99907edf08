"""What a viewer of a shell sees: into the raw log, and to those who watch."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from aegis.errors import StorageError
from aegis.journal.raw_log import RawLog
from aegis.terminals.output.observer import OutputObserver

log = structlog.get_logger("aegis.terminals")


class Visible:
    """The visible bytes of one shell; ``observers`` see them once they are in the raw log.

    They see them in few pieces: what the parsers cut one chunk into is put together again. A short
    command prints a dozen marks, and each observer would search each of them.
    """

    def __init__(self, raw_log: RawLog, observers: Sequence[OutputObserver]) -> None:
        self._raw_log = raw_log
        self._observers = observers
        self._unseen: list[bytes] = []

    @property
    def position(self) -> int:
        """The cursor behind the last byte."""
        return self._raw_log.position

    def show(self, data: bytes) -> int:
        """This was printed, at the cursor that is given back; ``pass_on`` must follow."""
        cursor = self._raw_log.position
        self._raw_log.write(data)
        self._unseen.append(data)
        return cursor

    def pass_on(self) -> None:
        """Let the observers see what they have not seen."""
        if not self._unseen:
            return
        data = self._unseen[0] if len(self._unseen) == 1 else b"".join(self._unseen)
        self._unseen.clear()
        cursor = self._raw_log.position - len(data)
        for observer in self._observers:
            observer.output(data, cursor)

    def flush(self) -> None:
        """Raw bytes are in the file before anybody hears of them; a full disk is only logged."""
        try:
            self._raw_log.flush()
        except StorageError as error:
            log.warning("raw log not written", error=str(error))

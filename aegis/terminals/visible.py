"""What a viewer of a shell sees: into the raw log, and to those who watch."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from aegis.errors import StorageError
from aegis.journal.raw_log import RawLog
from aegis.terminals.observer import OutputObserver

log = structlog.get_logger("aegis.terminals")


class Visible:
    """The visible bytes of one shell; ``observers`` see them once they are in the raw log."""

    def __init__(self, raw_log: RawLog, observers: Sequence[OutputObserver]) -> None:
        self._raw_log = raw_log
        self._observers = observers

    @property
    def position(self) -> int:
        """The cursor behind the last byte."""
        return self._raw_log.position

    def show(self, data: bytes) -> None:
        """This was printed."""
        cursor = self._raw_log.position
        self._raw_log.write(data)
        for observer in self._observers:
            observer.output(data, cursor)

    def flush(self) -> None:
        """Raw bytes are in the file before anybody hears of them; a full disk is only logged."""
        try:
            self._raw_log.flush()
        except StorageError as error:
            log.warning("raw log not written", error=str(error))

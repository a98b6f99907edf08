"""``LogFlusher``: writes the buffered raw bytes of a terminal to their file in time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import structlog

from aegis.errors import StorageError
from aegis.journal.raw_log import RawLog
from aegis.terminals.shell.messages import FlushRawLog, RestRawLog, ShellTimer

FLUSH_S = 0.1
"""The longest time that raw bytes are buffered in memory, in seconds."""

REST_S = 1.0
"""Seconds without output after which the raw log's file is closed until there is more."""

log = structlog.get_logger("aegis.terminals")


class LogFlusher:
    """The flushes of one raw log; ``after`` has the actor receive a message after some seconds.

    A full disk is only logged.
    """

    def __init__(
        self, terminal: str, raw_log: RawLog, after: Callable[[float, ShellTimer], object]
    ) -> None:
        self._terminal = terminal
        self._raw_log = raw_log
        self._after = after
        self._is_due = False

    def flush_soon(self) -> None:
        """Flush within ``FLUSH_S`` seconds."""
        if not self._is_due:
            self._is_due = True
            self._after(FLUSH_S, FlushRawLog())

    def flush_for_reader(self) -> None:
        """Flush before output is read: output that a reader has seen survives a kill."""
        self._flush()
        self.flush_soon()  # the log was opened for reading: the file is closed again later

    def flush_now(self) -> None:
        """Flush, and close the file if there is no output for a while."""
        self._is_due = False
        self._flush()
        self._after(REST_S, RestRawLog(position=self._raw_log.position))

    def rest(self, position: int) -> None:
        """Close the file if there was no output since ``position``."""
        if position == self._raw_log.position:
            self._raw_log.rest()

    def close(self) -> None:
        """Flush and close the raw log."""
        self._flush()
        with contextlib.suppress(StorageError):  # ``_flush`` has logged it
            self._raw_log.close()

    def _flush(self) -> None:
        try:
            self._raw_log.flush()
        except StorageError as error:
            log.warning("raw log not written", terminal=self._terminal, error=str(error))

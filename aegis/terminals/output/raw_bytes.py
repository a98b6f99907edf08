"""Opening the raw log of a terminal, so that no cursor that was told ever means other bytes."""

from __future__ import annotations

from aegis.journal.disk import Disk
from aegis.journal.raw_log import LIMIT_BYTES, RawLog
from aegis.terminals.history import History
from aegis.terminals.settings import TerminalFiles


def open_raw_log(disk: Disk, files: TerminalFiles, limit_bytes: int = LIMIT_BYTES) -> RawLog:
    """The raw log, behind all that the ledger tells of. Raises ``StorageError``.

    ``limit_bytes`` is how far each of its two files grows; to a mere reader it means nothing.
    """
    told = History(files.ledger, disk=disk).last_cursor()
    return RawLog.open(files.directory, disk=disk, limit_bytes=limit_bytes, at_least=told)

"""Reading the ledger of requests. Blocking: call it in a thread."""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from aegis.journal.disk import Disk, shown, storage_error
from aegis.journal.ledger import Damaged
from aegis.journal.reader import LedgerReader
from aegis.requests.ledger import Fold

log = structlog.get_logger("aegis.requests")

SHOWN_DAMAGE = 3
"""The number of damaged lines of the ledger that are listed in the log."""


def exists(disk: Disk, path: Path) -> bool:
    """Return whether there is a ledger. Raises ``StorageError``."""
    try:
        disk.close(disk.open(path, os.O_RDONLY))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error("open", path, error) from error
    return True


def load(disk: Disk, path: Path, end: int) -> Fold:
    """Return the requests in the first ``end`` bytes of the ledger. Raises ``StorageError``.

    Damaged lines are skipped, logged, and stay in the ledger.
    """
    reader, fold, start = LedgerReader(path, disk=disk), Fold(), 0
    damaged: list[Damaged] = []
    while True:
        reading = reader.onward(start, end=end)
        for line in reading.records:
            fold.apply(line)
        damaged += reading.damaged[:SHOWN_DAMAGE]
        if not reading.more or reading.end <= start:
            break
        start = reading.end
    if damaged or fold.skipped:
        where = [f"bytes {each.start} to {each.end}: {each.reason}" for each in damaged]
        log.warning(
            "damaged lines skipped",
            file=shown(path),
            where=where[:SHOWN_DAMAGE],
            not_understood=fold.skipped,
        )
    return fold

"""Reading all lines of a ledger, and logging the damage. Blocking: call it in a thread."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog

from aegis.journal.disk import Disk, shown, storage_errors
from aegis.journal.ledger import Damaged, Line
from aegis.journal.reader import LedgerReader

log = structlog.get_logger("aegis.journal")

SHOWN_DAMAGE = 3
"""The number of damaged lines of the ledger that are listed in the log."""


def exists(disk: Disk, path: Path) -> bool:
    """Return whether there is a ledger. Raises ``StorageError``."""
    with storage_errors("open", path):
        try:
            disk.close(disk.open(path, os.O_RDONLY))
        except FileNotFoundError:
            return False
    return True


def lines_of(
    disk: Disk,
    path: Path,
    end: int | None,
    damaged: list[Damaged],
    *,
    sealed_as: Path | None = None,
    start: int = 0,
) -> Iterator[Line]:
    """Yield the lines from ``start`` in the first ``end`` bytes; raise ``StorageError``.

    Some of the damaged ones, which are skipped, are added to ``damaged``.
    """
    # One by one: thousands of lines in memory together would make the garbage collector busy.
    reader = LedgerReader(path, disk=disk, sealed_as=sealed_as)
    for found in reader.forward(start, end=end):
        if isinstance(found, Line):
            yield found
        elif len(damaged) < SHOWN_DAMAGE:
            damaged.append(found)


def log_damage(path: Path, damaged: Sequence[Damaged], skipped: int) -> None:
    """Log that lines of a ledger are damaged, or were ``skipped`` as not understood, if any are."""
    if damaged or skipped:
        where = [f"bytes {each.start} to {each.end}: {each.reason}" for each in damaged]
        log.warning(
            "damaged lines skipped",
            file=shown(path),
            where=where[:SHOWN_DAMAGE],
            not_understood=skipped,
        )

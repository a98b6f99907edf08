"""Reading a ledger into the state that its lines result in. Blocking: call it in a thread."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import structlog

from aegis.journal.disk import Disk, shown, storage_error
from aegis.journal.ledger import Damaged
from aegis.journal.reader import LedgerReader

log = structlog.get_logger("aegis.journal")

SHOWN_DAMAGE = 3
"""The number of damaged lines of the ledger that are listed in the log."""


class Fold(Protocol):
    """The state that the lines so far result in; ``skipped`` lines could not be understood."""

    skipped: int

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        ...


F = TypeVar("F", bound=Fold)


def exists(disk: Disk, path: Path) -> bool:
    """Return whether there is a ledger. Raises ``StorageError``."""
    try:
        disk.close(disk.open(path, os.O_RDONLY))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error("open", path, error) from error
    return True


def load(disk: Disk, path: Path, end: int | None, fold: F, *, sealed_as: Path | None = None) -> F:
    """Apply the first ``end`` bytes of the ledger to ``fold``; return it. Raises ``StorageError``.

    Damaged lines are skipped, logged, and stay in the ledger. ``sealed_as`` is the path that the
    codes of its lines are made for, if that is another.
    """
    reader, start = LedgerReader(path, disk=disk, sealed_as=sealed_as), 0
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

"""The common limit of the archive and of the segments of all terminals: the oldest are deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import attrs
import structlog

from aegis.journal.disk import Disk, file_size, storage_errors, stored_names, sync_directory
from aegis.journal.segment_names import segments_among

log = structlog.get_logger("aegis.journal")

ARCHIVE_BYTES = 1 << 30
"""The size of all of them together, unless it is configured."""

ROWS = ".jsonl.gz"
"""The end of the name of a file with rows; its beginning is the time at which it was written."""

ARCHIVE, TERMINALS, LEDGER = "archive", "terminals", "ledger.jsonl"


@attrs.frozen(order=True)
class OldFile:
    """A file that may be deleted; ``written_at`` orders the files of all directories."""

    written_at: str
    path: Path


def old_files(disk: Disk, state: Path) -> list[OldFile]:
    """Return the files of a state that may be deleted, the oldest first. Raises ``StorageError``.

    The newest segment of a terminal is not among them: the next number of a command may be known
    from it alone.
    """
    with storage_errors("list", state):
        return sorted([*_archived(disk, state / ARCHIVE), *_segments(disk, state / TERMINALS)])


def delete_oldest(disk: Disk, state: Path, max_bytes: int, *, spared: Path | None = None) -> None:
    """Delete the oldest files as long as all together are too large; ``spared`` is kept.

    Blocks. Raises ``StorageError``.
    """
    files, sizes = old_files(disk, state), dict[Path, int]()
    with storage_errors("delete from", state):
        for each in files:
            with contextlib.suppress(FileNotFoundError):  # another process deletes too
                sizes[each.path] = file_size(disk, each.path)
        total, gone = sum(sizes.values()), []
        for path in sizes:
            if total <= max_bytes:
                break
            if path == spared:
                continue
            with contextlib.suppress(FileNotFoundError):
                disk.unlink(path)
            # Before the next one: a loss of power must not bring back an older file alone.
            sync_directory(disk, path.parent)
            total -= sizes[path]
            gone.append(str(path.relative_to(state)))
    if gone:
        log.warning("archive too large, oldest deleted", files=gone, limit=max_bytes)


def _archived(disk: Disk, archive: Path) -> Iterator[OldFile]:
    for kind in stored_names(disk, archive):
        for name in stored_names(disk, archive / kind):
            if name.endswith(ROWS):
                yield OldFile(name, archive / kind / name)


def _segments(disk: Disk, terminals: Path) -> Iterator[OldFile]:
    for terminal in stored_names(disk, terminals):
        names = stored_names(disk, terminals / terminal)
        for segment in segments_among(terminals / terminal / LEDGER, names)[:-1]:
            # A kill may have left both files of a segment.
            for path in (segment.path, segment.packed):
                if path.name in names:
                    yield OldFile(segment.closed_at, path)

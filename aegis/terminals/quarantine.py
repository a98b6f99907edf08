"""Quarantine of damaged files: each is renamed, and its content is kept."""

from __future__ import annotations

import zlib
from pathlib import Path

import structlog

from aegis.journal.disk import Disk, read_file, shown, storage_errors
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import MAX_LINE_BYTES
from aegis.journal.note import Note

log = structlog.get_logger("aegis.terminals")


def quarantine(disk: Disk, path: Path, data: bytes, why: str) -> Path:
    """Rename the file to ``<name>.damaged-<crc of data>`` and log it. Raises ``OSError``."""
    # The name depends on the content only, so a repetition after a crash makes no second copy.
    kept = path.with_name(f"{path.name}.damaged-{zlib.crc32(data):08x}")
    disk.rename(path, kept)
    log.warning("damaged file set aside", file=shown(path), kept_as=kept.name, why=why)
    return kept


def open_note(path: Path, flusher: Flusher, *, is_new: bool = False) -> Note:
    """Open a note; quarantine a file without a valid slot. Raises ``StorageError``.

    ``is_new``: it has no file yet, and its directory exists.
    """
    if is_new:
        return Note(path, flusher)
    # One slot that a kill cut short is no damage: the other slot has the previous note.
    note = Note.open(path, flusher)
    if not note.damaged or not note.is_blank:
        return note
    note.close()
    with storage_errors("open", path):
        data = read_file(flusher.disk, path, max_bytes=MAX_LINE_BYTES)
        if data is not None:
            quarantine(flusher.disk, path, data, "none of its slots checks")
    fresh = Note.open(path, flusher)
    fresh.damaged = True
    return fresh

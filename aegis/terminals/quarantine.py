"""Setting a damaged file aside: it gets another name beside it, and nothing of it is lost."""

from __future__ import annotations

import zlib
from pathlib import Path

import structlog

from aegis.journal.disk import Disk, read_file, shown, storage_error
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import MAX_LINE_BYTES
from aegis.journal.note import Note

log = structlog.get_logger("aegis.terminals")


def set_aside(disk: Disk, path: Path, data: bytes, why: str) -> Path:
    """Rename the file to ``<name>.damaged-<crc of data>`` and say so in the log.

    The name says what the file held, so doing it again after a crash makes no second copy. Raises
    ``OSError``.
    """
    aside = path.with_name(f"{path.name}.damaged-{zlib.crc32(data):08x}")
    disk.rename(path, aside)
    log.warning("damaged file set aside", file=shown(path), kept_as=aside.name, why=why)
    return aside


def open_note(path: Path, flusher: Flusher) -> Note:
    """Open a note; a file of which nothing can be read is set aside. Raises ``StorageError``.

    One slot that was cut short by a kill is no damage: the other one holds the note before it.
    """
    note = Note.open(path, flusher)
    if not note.damaged or not note.is_blank:
        return note
    note.close()
    try:
        data = read_file(flusher.disk, path, max_bytes=MAX_LINE_BYTES)
        if data is not None:
            set_aside(flusher.disk, path, data, "none of its slots checks")
    except OSError as error:
        raise storage_error("open", path, error) from error
    fresh = Note.open(path, flusher)
    fresh.damaged = True
    return fresh

"""Reading the ledger of an inbox: where unread messages begin, and the newest messages. Blocking.

Unread messages may be far back in the file; the last acknowledgement has the offset at which they
begin.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aegis.inboxes.rows import begin_in, message_in
from aegis.journal.disk import Disk, read_exactly, storage_error
from aegis.journal.folding import lines_of
from aegis.journal.ledger import Damaged, Line, Piece, judge, pieces_backward
from aegis.protocol.inboxes import Message
from aegis.state.sealing import Seal

MAX_KNOWN_IDS = 100_000
"""The number of acknowledged ids kept to recognise a second delivery; the oldest are dropped."""

MAX_SHOWN_BYTES = 16 * 1024 * 1024
"""The limit, in bytes of lines, of the newest messages."""

ROW_START = b'{"id":"'
READ_START = b'{"id":"read/'
OLD_ROW_START = b'{"kind":"message",'
OLD_READ_START = b'{"kind":"read",'
"""The beginnings of the lines of messages and of acknowledgements, of today's and of version 1."""


class ReadMessages:
    """The newest messages that were read: ``known`` are their places by their ids."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def find(self, disk: Disk, path: Path, end: int) -> int:
        """Return the offset of the first message that may be unread, and note those before it.

        Blocking. Raises ``StorageError``.
        """
        self.known.clear()
        with opened(disk, path) as fd:
            start, unread = _beginnings(disk, fd, end, disk.seal(path))
        damaged: list[Damaged] = []
        for line in lines_of(disk, path, unread, damaged, start=start) if start < unread else ():
            match line.fields:
                case {"id": str(each), "set": {"message": _, "number": int(number)}}:
                    self.known[each] = number
                case {"kind": "message", "id": str(each)}:
                    self.known[each] = line.start
        return unread


def newest_messages(disk: Disk, path: Path, end: int, limit: int) -> list[Message]:
    """Return the newest ``limit`` messages of the first ``end`` bytes, read or not, oldest first.

    Fewer if they are longer than ``MAX_SHOWN_BYTES`` together. Blocking. Raises ``StorageError``.
    """
    found: list[Message] = []
    size, seal = 0, disk.seal(path)
    with opened(disk, path) as fd:
        for piece in backward(disk, fd, end):
            line = judge(piece, seal) if _is_message(piece) else None
            message = message_in(line.fields) if isinstance(line, Line) else None
            size += piece.end - piece.start if message is not None else 0
            if found and size > MAX_SHOWN_BYTES:
                break
            if message is not None:
                found.append(message)
            if len(found) == limit:
                break
    found.reverse()
    return found


@contextmanager
def opened(disk: Disk, path: Path) -> Iterator[int]:
    """Open the ledger for reading; convert errors of the disk to ``StorageError``."""
    try:
        fd = disk.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            disk.close(fd)
    except OSError as error:
        raise storage_error("read", path, error) from error


def _beginnings(disk: Disk, fd: int, end: int, seal: Seal | None) -> tuple[int, int]:
    """Return the offset of the oldest id to know, and that of the first unread message."""
    unread: int | None = None
    messages = start = 0
    for piece in backward(disk, fd, end):
        start = piece.start
        if unread is None:
            unread = _needed_from(disk, fd, piece, seal)
        messages += _is_message(piece)
        if unread is not None and messages >= MAX_KNOWN_IDS:
            break
    return start, unread or 0


def _needed_from(disk: Disk, fd: int, piece: Piece, seal: Seal | None) -> int | None:
    """Return the offset in an acknowledgement; None if the piece is another line."""
    is_read = _starts_with(piece, READ_START) or _starts_with(piece, OLD_READ_START)
    line = judge(piece, seal) if is_read else None
    if not isinstance(line, Line):
        return None
    start = begin_in(line.fields)
    begins_a_line = 0 < start < piece.start and read_exactly(disk, fd, 1, start - 1) == b"\n"
    return start if begins_a_line else 0  # another program has changed the file: read all of it


def _is_message(piece: Piece) -> bool:
    if _starts_with(piece, OLD_ROW_START):
        return True
    return _starts_with(piece, ROW_START) and not _starts_with(piece, READ_START)


def _starts_with(piece: Piece, start: bytes) -> bool:
    return piece.whole and piece.data is not None and piece.data.startswith(start)


def backward(disk: Disk, fd: int, end: int) -> Iterator[Piece]:
    """Yield the pieces of the first ``end`` bytes, the newest first. Raises ``OSError``."""

    def read_at(offset: int, size: int) -> bytes:
        return read_exactly(disk, fd, size, offset)

    return pieces_backward(read_at, end)

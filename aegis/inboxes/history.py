"""The messages of inboxes as a search of the history shows them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aegis.inboxes.rows import MARK, archived_row, message_in
from aegis.journal.disk import Disk, read_exactly, storage_error
from aegis.journal.folding import exists
from aegis.journal.ledger import Line, Piece, judge, pieces_backward
from aegis.protocol.history import MAX_TEXT_CHARS, HistoryEntry
from aegis.protocol.inboxes import Message
from aegis.state.sealing import Seal

MARK_START = f'{{"id":"{MARK}"'.encode()
"""The beginning of each line about the messages that are read."""

OLD_STARTS = (b'{"kind":', b'{"id":"read/')
"""The beginnings of lines of older versions, before which is none of today's."""


class MessageEntries:
    """The messages in the ledger of the inbox of ``handle``, from the newest to the oldest."""

    def __init__(self, disk: Disk, path: Path, handle: str) -> None:
        self._disk, self._path, self._handle = disk, path, handle
        self._end: int | None = None  # of what is not read yet
        self._read = 0  # the number up to which all are read
        self._acknowledged: set[str] = set()
        self._is_read = False

    def step(self, max_lines: int, max_bytes: int) -> list[HistoryEntry] | None:
        """Return the messages in so many lines more; None after the oldest.

        Blocking. Raises ``StorageError``.
        """
        if self._end == 0 or not exists(self._disk, self._path):
            return None
        found: list[HistoryEntry] = []
        seal, lines, size = self._disk.seal(self._path), 0, 0
        # It is opened for each step: many ledgers would use up the descriptors.
        with _opened(self._disk, self._path) as fd:

            def read_at(offset: int, size: int) -> bytes:
                return read_exactly(self._disk, fd, size, offset)

            end = self._disk.size(fd)
            if self._end is None:
                # A compaction leaves it before the messages.
                self._read = _read_up_to(pieces_backward(read_at, end), seal)
            end, self._end = end if self._end is None else min(end, self._end), 0
            for piece in pieces_backward(read_at, end):
                line = judge(piece, seal) if piece.whole else None
                entry = self._entry(line.fields) if isinstance(line, Line) else None
                if entry is not None:
                    found.append(entry)
                lines, size = lines + 1, size + piece.end - piece.start
                if lines == max_lines or size >= max_bytes:
                    self._end = piece.start
                    break
        return found

    def _entry(self, fields: Mapping[str, Any]) -> HistoryEntry | None:
        match fields:
            case {"set": {"up_to": str(up_to)}} | {"kind": "read", "up_to": str(up_to)}:
                self._acknowledged.add(up_to)
                return None
        message = message_in(fields)
        if message is None:
            return None
        # An acknowledgement reaches the message that it names, and all older ones.
        number = fields["set"].get("number") if "set" in fields else None
        is_reached = type(number) is int and number <= self._read
        self._is_read = self._is_read or is_reached or message.id in self._acknowledged
        return entry_of(self._handle, message, is_read=self._is_read)


@contextmanager
def _opened(disk: Disk, path: Path) -> Iterator[int]:
    """Open the ledger for reading; convert errors of the disk to ``StorageError``."""
    try:
        fd = disk.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            disk.close(fd)
    except OSError as error:
        raise storage_error("read", path, error) from error


def _read_up_to(newest_first: Iterable[Piece], seal: Seal | None) -> int:
    """Return the number up to which all messages are read; 0 if no line of today's says it."""
    for piece in newest_first:
        if not piece.whole or piece.data is None:
            continue
        if piece.data.startswith(OLD_STARTS):
            break
        line = judge(piece, seal) if piece.data.startswith(MARK_START) else None
        match line:
            case Line(fields={"set": {"number": int(number)}}):
                return number
    return 0


def entry_of(handle: str, message: Message, *, is_read: bool) -> HistoryEntry:
    """Return a message as the history has it."""
    return HistoryEntry(
        kind="message",
        at=message.timestamp,
        name=handle,
        id=message.id,
        text=message.body[:MAX_TEXT_CHARS],
        by=message.sender,
        outcome="read" if is_read else "unread",
    )


def archived_message(line: Mapping[str, Any]) -> HistoryEntry | None:
    """Return the message of a line of the archive, by its handle; None if it is no message."""
    handle, message = archived_row(line)
    return None if message is None else entry_of(handle, message, is_read=True)

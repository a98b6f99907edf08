"""The messages of an inbox as a search of the history shows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aegis.inboxes.reading import backward, opened
from aegis.inboxes.rows import message_in
from aegis.journal.disk import Disk
from aegis.journal.folding import exists
from aegis.journal.ledger import Line, judge
from aegis.protocol.history import MAX_TEXT_CHARS, HistoryEntry


class MessageEntries:
    """The messages in the ledger of the inbox of ``handle``, from the newest to the oldest."""

    def __init__(self, disk: Disk, path: Path, handle: str) -> None:
        self._disk, self._path, self._handle = disk, path, handle
        self._end: int | None = None  # of what is not read yet
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
        with opened(self._disk, self._path) as fd:
            end = self._disk.size(fd)
            end, self._end = end if self._end is None else min(end, self._end), 0
            for piece in backward(self._disk, fd, end):
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
        self._is_read = self._is_read or message.id in self._acknowledged
        return HistoryEntry(
            kind="message",
            at=message.timestamp,
            name=self._handle,
            id=message.id,
            text=message.body[:MAX_TEXT_CHARS],
            by=message.sender,
            outcome="read" if self._is_read else "unread",
        )

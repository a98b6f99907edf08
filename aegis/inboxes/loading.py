"""Reading the ledger of an inbox: the unread messages, and the newest messages.

Unread messages may be far back in the file; the last line of kind "read" contains the offset at
which they begin. Blocking: call it in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from aegis.inboxes.rules import MESSAGE_START, READ_START, message_in, needed_from
from aegis.inboxes.state import MAX_KNOWN_IDS, InboxState
from aegis.journal.disk import Disk, read_blocks, read_exactly, storage_error
from aegis.journal.ledger import Damaged, Line, Piece, judge, pieces_backward, scan
from aegis.journal.opening import MAX_REPORTED
from aegis.protocol.inboxes import Message
from aegis.state.sealing import Seal

MAX_SHOWN_BYTES = 16 * 1024 * 1024
"""The limit, in bytes of lines, of the newest messages."""


@attrs.define
class Loaded:
    """The state of an inbox, and the lines that were skipped because they are damaged.

    ``damaged`` lists at most ``MAX_REPORTED`` of ``damaged_count``, the oldest first.
    """

    state: InboxState
    damaged: list[Damaged] = attrs.field(factory=list)
    damaged_count: int = 0

    def report(self, damaged: Damaged) -> None:
        """Add a damaged line."""
        self.damaged_count += 1
        if self.damaged_count <= MAX_REPORTED:
            self.damaged.append(damaged)


def load_state(disk: Disk, path: Path, end: int) -> Loaded:
    """Return the unread messages and the newest known ids in the first ``end`` bytes of the ledger.

    Reads from the first message that may be unread, and at least the newest ``MAX_KNOWN_IDS``
    messages; keeps only what the state needs. Raises ``StorageError``.
    """
    state = InboxState()
    loaded = Loaded(state)
    seal = disk.seal(path)
    with opened(disk, path) as fd:
        start, unread = _beginnings(disk, fd, end, seal)
        for line in _lines(disk, fd, start, end, seal):
            if isinstance(line, Damaged):
                loaded.report(line)
            elif line.start >= unread:
                state.apply(line.fields, line.start, line.end - line.start)
            elif isinstance(message_id := line.fields.get("id"), str):
                state.remember(message_id, line.start)
    return loaded


def newest_messages(disk: Disk, path: Path, end: int, limit: int) -> list[Message]:
    """Return the newest ``limit`` messages of the first ``end`` bytes, read or not, oldest first.

    Fewer if they are longer than ``MAX_SHOWN_BYTES`` together. Raises ``StorageError``.
    """
    found: list[Message] = []
    size, seal = 0, disk.seal(path)
    with opened(disk, path) as fd:
        for piece in _backward(disk, fd, end):
            message = _message(piece, seal)
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
    """Return the offset to read from, and that of the first message that may be unread."""
    unread: int | None = None
    messages = start = 0
    for piece in _backward(disk, fd, end):
        start = piece.start
        if unread is None:
            unread = _needed_from(disk, fd, piece, seal)
        messages += _starts_with(piece, MESSAGE_START)
        if unread is not None and messages >= MAX_KNOWN_IDS:
            break
    unread = unread or 0
    return min(start, unread), unread


def _needed_from(disk: Disk, fd: int, piece: Piece, seal: Seal | None) -> int | None:
    """Return the offset in a line of kind "read"; None if the piece is another kind of line."""
    line = judge(piece, seal) if _starts_with(piece, READ_START) else None
    if not isinstance(line, Line):
        return None
    start = needed_from(line.fields)
    begins_a_line = 0 < start < piece.start and read_exactly(disk, fd, 1, start - 1) == b"\n"
    return start if begins_a_line else 0  # another program has changed the file: read all of it


def _message(piece: Piece, seal: Seal | None) -> Message | None:
    line = judge(piece, seal) if _starts_with(piece, MESSAGE_START) else None
    return message_in(line.fields) if isinstance(line, Line) else None


def _starts_with(piece: Piece, start: bytes) -> bool:
    return piece.whole and piece.data is not None and piece.data.startswith(start)


def _backward(disk: Disk, fd: int, end: int) -> Iterator[Piece]:
    def read_at(offset: int, size: int) -> bytes:
        return read_exactly(disk, fd, size, offset)

    return pieces_backward(read_at, end)


def _lines(
    disk: Disk, fd: int, start: int, end: int, seal: Seal | None
) -> Iterator[Line | Damaged]:
    """Yield the lines from ``start``, where a line begins, to ``end``, reading block by block.

    The damaged lines of a block come after its valid ones.
    """
    rest, base = b"", start
    for block in read_blocks(disk, fd, start, end):
        found = scan(rest + block, base=base, seal=seal)
        yield from found.lines
        yield from found.damaged
        rest, base = (rest + block)[found.whole - base :], found.whole

"""``InboxReader``: reads messages from the ledger of an inbox, and from the archive of all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from aegis.clock import utc_now
from aegis.inboxes.rows import (
    KIND,
    InboxMessage,
    InboxRow,
    archived_row,
    message_in,
    message_of,
    with_text,
)
from aegis.inboxes.unread import shown
from aegis.journal.archive import DEFAULT_KEEP, Archive, Keep, NewestLines
from aegis.journal.disk import Disk
from aegis.journal.disk import shown as shown_path
from aegis.journal.flusher import Flusher
from aegis.journal.reader import ON_LOOP_BYTES
from aegis.journal.table import Table
from aegis.protocol.inboxes import Message

log = structlog.get_logger("aegis.inboxes")

STEP_LINES = 256
"""The lines of the archive that are read in one step, for which others may wait."""

MAX_SHOWN_BYTES = 16 * 1024 * 1024
"""The limit, in bytes of lines, of the newest messages."""

ARCHIVE_S = 5.0
"""Seconds after which the newest messages are returned with what was found in the archive."""

MAX_KEPT_CHARS = 8 * 1024
"""The longest message that is kept in memory, if it is the newest: a stream waits for it."""

MAX_REPORTED = 1_000
"""Damaged lines of one inbox that are logged."""

SUBSTRATE = "substrate"
"""The sender of messages that the daemon itself writes."""


def message_archive(directory: Path, disk: Disk, keep: Keep = DEFAULT_KEEP) -> Archive:
    """Return the archive of all inboxes, which they share, among all archives."""
    return Archive(directory, KIND, disk, keep.archive_bytes)


class InboxReader:
    """Reads the messages of the inbox of ``handle``, whose ``table`` has its ledger at ``path``."""

    def __init__(
        self, handle: str, path: Path, table: Table[InboxRow], archive: Archive, flusher: Flusher
    ) -> None:
        self._handle, self._path = handle, path
        self._table, self._archive, self._flusher = table, archive, flusher
        self._kept: InboxMessage | None = None
        self._reported: set[int] = set()

    def keep(self, row: InboxMessage) -> None:
        """Keep the newest message in memory, in place of the one before."""
        self._kept = row if row.chars <= MAX_KEPT_CHARS else None

    # Messages of the ledger.

    def is_slow(self, rows: list[InboxMessage]) -> bool:
        """Return whether reading so many messages would block the event loop."""
        return sum(each.message.size for each in rows) > ON_LOOP_BYTES

    def messages_now(self, rows: list[InboxMessage]) -> list[Message]:
        """Return the messages of a few rows. Blocking. Raises ``StorageError``."""
        kept = self._kept
        if len(rows) == 1 and kept is not None and kept.id == rows[0].id:
            return [shown(rows[0], message_of(kept))]
        lines = self._table.lines_of([each.message for each in rows])
        return [*map(self._message, rows, lines)]

    async def messages(self, rows: list[InboxMessage]) -> list[Message]:
        """Return the messages of rows. Raises ``StorageError``."""
        lines = await self._table.lines_of_many([each.message for each in rows])
        return [*map(self._message, rows, lines)]

    def _message(self, row: InboxMessage, line: Any) -> Message:
        """Return the message of a row, or one in its place that says that it is damaged."""
        message = _message_of_line(row, line)
        if message is None:
            reason = line if isinstance(line, str) else "another line is there"
            message = self._substitute(row, reason)
        return shown(row, message)

    def _substitute(self, row: InboxMessage, reason: str) -> Message:
        # Without a message in its place it could not be acknowledged.
        start = row.message.start
        where, file = f"bytes {start} to {start + row.message.size}", shown_path(self._path)
        if start not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add(start)
            log.warning("message damaged", file=file, id=row.id, where=f"{where}: {reason}")
        return with_text(
            Message(
                id=row.id,
                sender=SUBSTRATE,
                body=f"this message cannot be read: {where} of {file} are damaged: {reason}",
                text="",
                timestamp=utc_now(),
            )
        )

    # The newest messages, read or not.

    async def newest(self, limit: int, newest: int) -> dict[int, Message]:
        """Return the newest messages up to the number ``newest``, oldest first, by their numbers.

        Fewer than ``limit`` if they are very long. Raises ``StorageError``.
        """
        rows = self._newest_rows(limit)
        # Older ones are in the archive, and perhaps some between them.
        following = takewhile(lambda each: newest - each[1].number == each[0], enumerate(rows))
        before = newest + 1 - len([*following])
        lines = await self._table.lines_of_many([each.message for each in rows])
        stored = zip(rows, map(_message_of_line, rows, lines), strict=True)
        found = {row.number: message for row, message in stored if message is not None}
        if newest + 1 - before < limit and before > 1:
            archived = ArchivedMessages(NewestLines(self._archive), self._handle, before, found)
            with trio.move_on_after(ARCHIVE_S):
                while archived.misses(limit) and archived.size < MAX_SHOWN_BYTES:
                    if not await self._flusher.look(archived.step):
                        break
        numbers = sorted(found, reverse=True)[:limit]
        return {each: found[each] for each in reversed(numbers)}

    def _newest_rows(self, limit: int) -> list[InboxMessage]:
        """Return the newest durable messages that are not in the archive, the newest first."""
        found: list[InboxMessage] = []
        size = 0
        for row in self._newest_first():
            size += row.message.size
            if len(found) == limit or (found and size > MAX_SHOWN_BYTES):
                break
            found.append(row)
        return found

    def _newest_first(self) -> Iterable[InboxMessage]:
        found = [each for each in self._table.all_shown() if isinstance(each, InboxMessage)]
        # The row of an archived message comes last if the disk has refused its drop.
        found.sort(key=attrgetter("number"))
        return reversed(found)


def _message_of_line(row: InboxMessage, line: Any) -> Message | None:
    """Return the message of a row; None if its line is damaged."""
    message = None if isinstance(line, str) else message_in(line)
    return message if message is not None and message.id == row.id else None


@attrs.define
class ArchivedMessages:
    """The messages of ``handle`` before a number, from the newest ``lines`` on.

    They are added to those that were ``found``, by their numbers. ``size`` is the length of the
    texts.
    """

    lines: NewestLines
    handle: str
    before: int
    found: dict[int, Message]
    size: int = 0

    def __attrs_post_init__(self) -> None:
        self.size = sum(len(each.text) for each in self.found.values())

    def misses(self, count: int) -> bool:
        """Return whether one of the newest ``count`` messages may not be found yet."""
        newest = max([self.before - 1, *self.found])
        return any(each not in self.found for each in range(newest, max(newest - count, 0), -1))

    def step(self) -> bool:
        """Read some more lines; return whether there may be others. Raises ``StorageError``."""
        lines = self.lines.some(STEP_LINES)
        for line in lines or ():
            handle, message = archived_row(line)
            number = line["set"].get("number")
            is_before = type(number) is int and number < self.before
            if handle == self.handle and message is not None and is_before:
                self.found.setdefault(number, message)
                self.size += len(message.text)
        return lines is not None

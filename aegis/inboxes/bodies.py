"""``Bodies``: reads the messages of an inbox from its ledger when a reader asks for them.

Only the newest message is kept in memory, for the stream that waits for it: the kernel keeps the
pages of a ledger that is read often. A line that cannot be
decoded any more is reported in the log, and the reader gets a message in its place that says so;
without one it could not be acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import structlog

from actors import Reply
from aegis.clock import utc_now
from aegis.errors import StorageError
from aegis.inboxes.loading import opened
from aegis.inboxes.rules import message_in, message_of
from aegis.inboxes.state import Unread
from aegis.journal.appender import Appender
from aegis.journal.disk import Disk, read_exactly, shown, storage_error
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import DamagedLine, decode_line
from aegis.journal.reader import ON_LOOP_BYTES
from aegis.protocol.inboxes import Message

log = structlog.get_logger("aegis.inboxes")

T = TypeVar("T")

MAX_REPORTED = 1_000
"""Damaged lines of one inbox that are logged."""

MAX_KEPT_BYTES = 8 * 1024
"""The longest line of a message that is kept in memory."""

SUBSTRATE = "substrate"
"""The sender of messages that the daemon itself writes."""


class Bodies:
    """The reader of the messages in the ledger of ``appender``."""

    def __init__(
        self, appender: Appender, flusher: Flusher, start_soon: Callable[..., object]
    ) -> None:
        self._appender = appender
        self._flusher = flusher
        self._start_soon = start_soon
        self._reported: set[int] = set()
        self._newest: tuple[int, Message] | None = None  # with the offset of its line

    def keep(self, at: int, size: int, line: dict[str, object]) -> None:
        """Keep the message of a new line of ``size`` bytes at this offset, unless it is long."""
        message = message_in(line) if size <= MAX_KEPT_BYTES else None
        self._newest = None if message is None else (at, message)

    def answer(
        self, reply: Reply[T], unread: Sequence[Unread], make: Callable[[list[Message]], T]
    ) -> None:
        """Read the messages; answer ``reply`` with the result of ``make`` for them.

        A few are read at once, many in a thread. If the disk refuses, the reply fails with a
        ``StorageError``.
        """
        if len(unread) == 1 and self._newest is not None and self._newest[0] == unread[0].at:
            reply.send(make([unread[0].shown(self._newest[1])]))
            return
        if sum(each.size for each in unread) > ON_LOOP_BYTES:
            self._start_soon(self._answer_from_thread, reply, unread, make)
            return
        try:
            messages = self._checked(
                unread, _messages_at(self._flusher.disk, self._appender.fd, unread)
            )
        except OSError as error:
            reply.fail(storage_error("read", self._appender.path, error))
        except StorageError as error:
            reply.fail(error)
        else:
            reply.send(make(messages))

    async def _answer_from_thread(
        self, reply: Reply[T], unread: Sequence[Unread], make: Callable[[list[Message]], T]
    ) -> None:
        read = partial(_read, self._flusher.disk, self._appender, unread)
        try:
            messages = self._checked(unread, await self._flusher.look(read))
        except StorageError as error:
            reply.fail(error)
        else:
            reply.send(make(messages))

    def _checked(self, unread: Sequence[Unread], found: list[Message | str]) -> list[Message]:
        return [
            self._substitute(each, message) if isinstance(message, str) else each.shown(message)
            for each, message in zip(unread, found, strict=True)
        ]

    def _substitute(self, unread: Unread, reason: str) -> Message:
        """Return the message that a reader gets in place of one whose line is damaged."""
        where = f"bytes {unread.at} to {unread.at + unread.size}"
        file = shown(self._appender.path)
        if unread.at not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add(unread.at)
            log.warning("message damaged", file=file, id=unread.id, where=f"{where}: {reason}")
        stored = Message(
            id=unread.id,
            sender=SUBSTRATE,
            body=f"this message cannot be read: {where} of {file} are damaged: {reason}",
            text="",
            timestamp=utc_now(),
        )
        return unread.shown(message_of(stored))


def _read(disk: Disk, appender: Appender, unread: Sequence[Unread]) -> list[Message | str]:
    with opened(disk, appender.path) as fd:
        return _messages_at(disk, fd, unread)


def _messages_at(disk: Disk, fd: int, unread: Sequence[Unread]) -> list[Message | str]:
    """Return the messages; for a damaged line, the reason instead. Raises ``OSError``."""
    end = disk.size(fd)
    return [_message_at(disk, fd, each, end) for each in unread]


def _message_at(disk: Disk, fd: int, unread: Unread, end: int) -> Message | str:
    if unread.at + unread.size > end:
        return "the file ends before"
    try:
        line = decode_line(read_exactly(disk, fd, unread.size, unread.at))
    except DamagedLine as damage:
        return str(damage)
    message = message_in(line)
    if message is None or message.id != unread.id:
        return "another line is there"
    return message

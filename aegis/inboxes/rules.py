"""What an inbox holds and how a message reads: pure, folded from the lines of its ledger.

Two kinds of line: ``{"kind": "message", …}`` and ``{"kind": "read", "up_to": <id>}``. A message
whose id is known is not taken again, so whoever is not sure may deliver twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.clock import to_seconds
from aegis.errors import InvalidRequest, Unavailable
from aegis.names import shorten
from aegis.protocol.inboxes import Deliver, Message

MAX_UNREAD = 10_000
"""Messages that may wait unacknowledged in one inbox."""

MAX_UNREAD_BYTES = 32 * 1024 * 1024
"""How much unacknowledged text, in characters, one inbox holds."""

MAX_KNOWN_IDS = 100_000
"""Ids that are remembered to recognise a second delivery; older ones are forgotten first."""


def render_header(
    sender: str, timestamp: str, task_id: str | None, status: Literal["ok", "error"] | None
) -> str:
    """The first line of a message as a reader sees it."""
    task = [f"task#{task_id}"] if task_id is not None else []
    outcome = [status] if status is not None else []
    return " · ".join([f"> from {sender}", *task, *outcome, to_seconds(timestamp)])


def message_of(delivery: Deliver) -> Message:
    """The message that a delivery puts into the inbox."""
    header = render_header(delivery.sender, delivery.timestamp, delivery.task_id, delivery.status)
    return Message(
        id=delivery.id,
        sender=delivery.sender,
        body=delivery.body,
        text=f"{header}\n{delivery.body}",
        timestamp=delivery.timestamp,
        task_id=delivery.task_id,
        status=delivery.status,
    )


def message_line(message: Message) -> dict[str, object]:
    """The ledger line of a message."""
    return {"kind": "message", **attrs.asdict(message)}


def read_line(up_to: str) -> dict[str, object]:
    """The ledger line that says that everything up to a message was read."""
    return {"kind": "read", "up_to": up_to}


class InboxState:
    """The messages of one inbox, and which of them are acknowledged."""

    def __init__(self) -> None:
        self._unread: dict[str, Message] = {}
        self._unread_size = 0
        self._known: dict[str, None] = {}

    def __len__(self) -> int:
        """How many messages are not acknowledged."""
        return len(self._unread)

    def apply(self, line: Mapping[str, Any]) -> None:
        """Take in one line of the ledger, as it is read back. Lines of other kinds are skipped."""
        match line:
            case {"kind": "message", **fields}:
                with contextlib.suppress(CodecError):  # some later version's message
                    self.add(structure(Message, fields))
            case {"kind": "read", "up_to": str(up_to)}:
                self.acknowledge(up_to)

    def knows(self, message_id: str) -> bool:
        """Whether a message of this id was delivered before."""
        return message_id in self._known

    def check_room(self, handle: str) -> None:
        """Raise ``Unavailable`` if no further message can be taken."""
        if len(self._unread) >= MAX_UNREAD or self._unread_size >= MAX_UNREAD_BYTES:
            raise Unavailable(
                f"the inbox of {handle!r} is full: {len(self._unread)} messages wait to be read "
                "and acknowledged with aegis_inbox_read"
            )

    def add(self, message: Message) -> None:
        """Take in a message that is durable now."""
        self._remember(message.id)
        self._unread[message.id] = message
        self._unread_size += len(message.body)

    def unread(self, limit: int) -> list[Message]:
        """The oldest ``limit`` unacknowledged messages, oldest first."""
        return list(self._unread.values())[:limit]

    def check_cursor(self, after: str) -> bool:
        """Whether acknowledging up to ``after`` would change anything.

        Raises ``InvalidRequest`` if no such message was ever here.
        """
        if after in self._unread:
            return True
        if after not in self._known:
            raise InvalidRequest(
                f"after {shorten(after)!r} is not the 'next' of an earlier reply of this inbox"
            )
        return False

    def acknowledge(self, up_to: str) -> None:
        """The message ``up_to`` and all older ones are read."""
        if up_to not in self._unread:
            return
        for message_id in list(self._unread):
            self._unread_size -= len(self._unread.pop(message_id).body)
            if message_id == up_to:
                return

    def _remember(self, message_id: str) -> None:
        self._known[message_id] = None
        if len(self._known) > MAX_KNOWN_IDS:
            del self._known[next(iter(self._known))]

"""The messages of an inbox: their texts and their rows. Pure.

A message is a row of the inbox's table, whose content stays on disk. An acknowledgement is a row
too, which is forgotten with the messages that it reaches: their lines stay in the ledger, and each
start begins with the first line that is still needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.clock import to_seconds
from aegis.hidden_urls import hide_session_urls
from aegis.inboxes.quoting import quoted_body
from aegis.journal.table import StoredDocument
from aegis.protocol.inboxes import Deliver, Message

# Texts.


def render_header(
    sender: str,
    timestamp: str,
    task_id: str | None = None,
    status: Literal["ok", "error"] | None = None,
) -> str:
    """Return the first line of a message as a reader sees it."""
    task = [f"task#{task_id}"] if task_id is not None else []
    outcome = [status] if status is not None else []
    return " · ".join([f"> from {sender}", *task, *outcome, to_seconds(timestamp)])


def with_text(message: Message) -> Message:
    """Return a message with its ``text``: header line and body. No line of it forges a header.

    It is what a reader of an inbox gets, and the turn of a driven agent.
    """
    return _with_text(
        message.id,
        sender=message.sender,
        body=message.body,
        timestamp=message.timestamp,
        task_id=message.task_id,
        status=message.status,
    )


def _with_text(
    id_: str,
    *,
    sender: str,
    body: str,
    timestamp: str,
    task_id: str | None = None,
    status: Literal["ok", "error"] | None = None,
) -> Message:
    header = render_header(sender, timestamp, task_id, status)
    return Message(
        id=id_,
        sender=sender,
        body=body,
        text=f"{header}\n{quoted_body(body)}",
        timestamp=timestamp,
        task_id=task_id,
        status=status,
    )


# Rows.


@attrs.frozen(kw_only=True, weakref_slot=False)
class InboxMessage:
    """A message; ``number`` rises with each, and ``chars`` is the length of its body.

    A message of a ledger of version 1 has no number: its place is the offset of its line.
    """

    tag: ClassVar[str] = "message"

    id: str
    chars: int
    message: StoredDocument
    number: int = 0

    @property
    def place(self) -> int:
        """The place of the message among all others of its inbox."""
        return self.number or self.message.start


@attrs.frozen(kw_only=True)
class Acknowledgement:
    """All messages up to ``up_to`` are read, and no line before ``begin`` is needed any more."""

    tag: ClassVar[str] = "read"

    id: str
    up_to: str
    begin: int = 0


InboxRow = InboxMessage | Acknowledgement


def row_of(delivery: Deliver, number: int) -> InboxMessage:
    """Return the row of a new message.

    The secrets of session URLs are hidden: a message would pass on the rights of a session.
    """
    content = {"sender": delivery.sender, "body": hide_session_urls(delivery.body)}
    for name in ("timestamp", "task_id", "status"):
        if (value := getattr(delivery, name)) is not None:
            content[name] = value
    document = StoredDocument.of(content)
    return InboxMessage(id=delivery.id, chars=len(delivery.body), message=document, number=number)


def message_in(line: Mapping[str, Any]) -> Message | None:
    """Return the message in a line of either form; None for another line."""
    content = line["set"].get("message") if "set" in line else None
    if isinstance(content, dict):
        fields = {"text": "", **content, "id": line.get("id")}
    elif line.get("kind") == "message":
        fields = {"text": "", **line}
        del fields["kind"]
    else:
        return None
    try:
        return with_text(structure(Message, fields))
    except CodecError:
        return None


def message_of(row: InboxMessage) -> Message:
    """Return the message of a row that is not written yet."""
    assert row.message.whole is not None
    return _with_text(row.id, **row.message.whole)


def upgraded(line: Mapping[str, Any], rows: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return a line of a ledger of version 1 as a line of today's; none to skip it."""
    match line:
        case {"kind": "message"} if (message := message_in(line)) is not None:
            content: dict[str, Any] = {}
            row = {"type": "message", "chars": len(message.body), "message": content}
            return [{"id": message.id, "set": row}]
        case {"kind": "read", "up_to": str(up_to)}:
            read = {"type": "read", "up_to": up_to, "begin": begin_in(line)}
            return [{"id": f"read/{len(rows)}/{up_to}", "set": read}]
    return []


def begin_in(line: Mapping[str, Any]) -> int:
    """Return the first offset that is needed, as an acknowledgement says; 0 if it does not."""
    match line:
        case {"set": {"begin": begin}} | {"kind": "read", "from": begin}:
            return begin if type(begin) is int and begin >= 0 else 0
    return 0

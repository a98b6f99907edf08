"""The text of a message, and the lines of an inbox's ledger. Pure.

Two kinds of line: ``{"kind": "message", …}``, and ``{"kind": "read", "up_to": <id>, "from": <n>}``:
all messages up to that id are acknowledged, and all before byte ``n`` of the ledger were read, so
loading begins at ``n``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from actors.codec import structure
from actors.errors import CodecError
from aegis.clock import to_seconds
from aegis.hidden_urls import hide_session_urls
from aegis.inboxes.quoting import quoted_body
from aegis.protocol.inboxes import Deliver, Message

MESSAGE_START = b'{"kind":"message",'
READ_START = b'{"kind":"read",'
"""The beginnings of both kinds of line, so that lines can be counted without decoding them."""


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


def render_text(
    sender: str,
    timestamp: str,
    body: str,
    task_id: str | None = None,
    status: Literal["ok", "error"] | None = None,
) -> str:
    """Return the whole message as a reader sees it: header line and body.

    It is what a reader of an inbox gets, and the turn of a driven agent. No line of the body reads
    as a header.
    """
    return f"{render_header(sender, timestamp, task_id, status)}\n{quoted_body(body)}"


def message_of(delivery: Deliver | Message) -> Message:
    """Return the message that a delivery stores in the inbox, with its ``text`` rendered."""
    text = render_text(
        delivery.sender, delivery.timestamp, delivery.body, delivery.task_id, delivery.status
    )
    return Message(
        id=delivery.id,
        sender=delivery.sender,
        body=delivery.body,
        text=text,
        timestamp=delivery.timestamp,
        task_id=delivery.task_id,
        status=delivery.status,
    )


def message_line(message: Deliver | Message) -> dict[str, object]:
    """Return the ledger line of a message; its ``text`` is rendered again when it is read.

    The secrets of session URLs are hidden: a message would pass on the rights of a session.
    """
    return {
        "kind": "message",
        "id": message.id,
        "sender": message.sender,
        "body": hide_session_urls(message.body),
        "timestamp": message.timestamp,
        "task_id": message.task_id,
        "status": message.status,
    }


def read_line(up_to: str, *, needed_from: int) -> dict[str, object]:
    """Return the ledger line of kind "read": everything up to the message ``up_to`` was read."""
    return {"kind": "read", "up_to": up_to, "from": needed_from}


def message_in(line: Mapping[str, Any]) -> Message | None:
    """Return the message in a line; None for another kind, or a message of a later version."""
    match line:
        case {"kind": "message", **fields}:
            try:
                return message_of(structure(Message, {"text": "", **fields}))
            except CodecError:
                return None
    return None


def read_up_to(line: Mapping[str, Any]) -> str | None:
    """Return the id up to which a line of kind "read" acknowledges; None for another kind."""
    match line:
        case {"kind": "read", "up_to": str(up_to)}:
            return up_to
    return None


def needed_from(line: Mapping[str, Any]) -> int:
    """Return where unread messages begin, as a line of kind "read" says; 0 if it does not."""
    start = line.get("from")
    return start if type(start) is int and start >= 0 else 0

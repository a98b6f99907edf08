"""Inboxes: the message that wakes, and the commands to read, wait for and send one."""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.protocol.command import (
    Command,
    at_most_chars,
    between,
    described,
    matching,
)
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE

MAX_BODY_CHARS = 262_144


@attrs.frozen(kw_only=True)
class Message:
    """One message of an inbox.

    ``id`` is unique and stable: the same wake delivered twice has the same id. ``sender`` is a tag
    such as ``agent:alice`` or ``term:build``; ``timestamp`` is UTC, ISO 8601 with ``Z``; ``text``
    is the rendered form, a header line and the body.

    Of more than 1,000 unread messages of terminals the older ones fold: one message per terminal
    has the id of the newest of them and names the ``since_seq`` to read its records from.
    """

    id: str
    sender: str
    body: str
    text: str
    timestamp: str
    task_id: str | None = None
    status: Literal["ok", "error"] | None = None


@attrs.frozen(kw_only=True)
class MessageList:
    """``messages``, oldest first; pass ``next`` as ``after`` to acknowledge them."""

    messages: list[Message]
    next: str | None


@attrs.frozen(kw_only=True)
class Receipt:
    """What became of a message: ``landed`` with its reader, or ``queued`` at ``position``."""

    id: str
    status: Literal["landed", "queued"]
    position: int


@attrs.frozen(kw_only=True)
class Deliver(Request[Receipt]):
    """Put a message into an inbox: durable once answered, dropped if its id is known there.

    The door through which the other primitives wake somebody; not a command of clients. ``after``
    is the id of a message of the same sender that was sent just before and is not confirmed yet: if
    the disk refused that one, this one is refused too (``Unavailable``), and their order stays.

    ``defer_sync``: the message is written at once, and answered when the inbox is next synced for
    any other reason. For senders that can send it again, and that can ask with ``SyncInbox``.
    """

    handle: str
    id: str
    sender: str
    body: str
    timestamp: str
    task_id: str | None = None
    status: Literal["ok", "error"] | None = None
    after: str | None = None
    defer_sync: bool = False


@attrs.frozen
class SyncInbox:
    """Sync what an inbox was sent with ``defer_sync``, so that its senders are answered."""


_AFTER = described(
    "Acknowledge: the `next` of an earlier reply. What came up to it is not shown again."
)


@attrs.frozen(kw_only=True)
class ReadInbox(Command[MessageList]):
    """Read your inbox. Messages stay until you acknowledge them by passing `after`."""

    after: str | None = attrs.field(default=None, validator=at_most_chars(512), metadata=_AFTER)
    unread: bool = attrs.field(
        default=True,
        metadata=described("False shows acknowledged messages too, the newest `limit` of all."),
    )
    limit: int = attrs.field(
        default=50,
        validator=between(1, 1000, "messages"),
        metadata=described(
            "At most so many, 1 to 1000.", "At most so many.", minimum=1, maximum=1000
        ),
    )


@attrs.frozen(kw_only=True)
class WaitInbox(Command[MessageList]):
    """Wait until your inbox holds an unacknowledged message; an empty list when time runs out.

    A newer wait for the same handle ends the older one with an empty list.
    """

    after: str | None = attrs.field(default=None, validator=at_most_chars(512), metadata=_AFTER)
    timeout: float = attrs.field(
        default=50.0,
        validator=between(0, 86_400, "seconds"),
        metadata=described("Seconds to wait at most.", minimum=0, maximum=86_400),
    )


@attrs.frozen(kw_only=True)
class Handoff(Command[Receipt]):
    """Hand work or news to another agent: it is woken with your text.

    The target must have been here before: called a tool, been given a session, or been launched.
    """

    target_handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            f"Whom to wake. A handle: {NAME_RULE}.",
            "Whom to wake: a handle.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    context: str = attrs.field(
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("What the other should know or do."),
    )

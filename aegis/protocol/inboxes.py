"""Inboxes: messages, and the commands to read, await and send them."""

from __future__ import annotations

import re
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
MAX_KEY_CHARS = 256

COMMAND_ID = "command:"
"""The beginning of the id of a message that is a person's command to an agent, without a header."""

PROMPT_ID = "prompt:"
"""The beginning of the id of a message that is a turn of its own, after that of a command, or of
one with images."""

IMAGES_ID = "images:"
"""The beginning of the id of a person's message with images: the last lines of it name them."""

PROGRAM_ID = "program:"
"""The beginning of the id of a message that reads as a person's, but was sent by a program: a call
over MCP without a handle."""

HUMAN = "human"
"""The sender of a message without a handle."""

_COMMAND = re.compile(r"/([^\s/]\S{0,199})(?=\s|\Z)")


def command_name(text: str) -> str:
    """Return the name of the agent's own command that a text begins with; empty: with none."""
    found = _COMMAND.match(text)
    return found[1] if found else ""


def message_id(rest: str, sender: str, *, is_person: bool) -> str:
    """Return the id of a message; that of a program without a handle shows that no person sent it.

    ``is_person``: it was sent from a face of a person.
    """
    return f"{PROGRAM_ID}{rest}" if sender == HUMAN and not is_person else rest


def is_of_person(message: str, sender: str) -> bool:
    """Return whether a person has sent the message with this id."""
    return sender == HUMAN and not message.startswith(PROGRAM_ID)


def is_prompt(message: str) -> bool:
    """Return whether the message with this id was sent to be a turn of its own."""
    for kind in (PROGRAM_ID, COMMAND_ID, IMAGES_ID):
        message = message.removeprefix(kind)
    return message.startswith(PROMPT_ID)


@attrs.frozen(kw_only=True)
class Message:
    """One message of an inbox.

    ``id`` is unique and stable: a message that is delivered twice has the same id. ``sender`` is a
    tag such as ``agent:alice`` or ``term:build``; ``timestamp`` is UTC, ISO 8601 with ``Z``;
    ``text`` is the rendered form, a header line and the body.

    Of more than 1,000 unread messages of terminals the older ones are folded: one message per
    terminal has the id of the newest of them and names the ``since_seq`` to read its records from.
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
    """``messages``, oldest first; pass ``next`` as ``after`` to acknowledge them.

    ``next`` is null if there are none, or if an older unread message is not among them.
    """

    messages: list[Message]
    next: str | None


@attrs.frozen(kw_only=True)
class Receipt:
    """The fate of a message, which is durable: ``landed`` or ``queued`` at ``position``.

    ``landed``: it opened a turn of the session, or a waiting reader has it. ``position`` is the
    number of messages before it. ``notice`` is a sentence about a command that the agent may not
    have.
    """

    id: str
    status: Literal["landed", "queued"]
    position: int
    notice: str = ""


@attrs.frozen(kw_only=True)
class Deliver(Request[Receipt]):
    """Put a message into an inbox: durable once answered, dropped if the inbox has its id.

    Sent by the other primitives to wake a handle; not a command of clients. ``after`` is the id of
    the sender's previous message, if that is not confirmed yet: if the disk refused it, this one is
    refused too (``Unavailable``), so that their order is kept.

    ``defer_sync``: the message is written at once, and answered when the inbox is next synced for
    another reason. For senders that can send it again, and that can ask with ``SyncInbox``.
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


@attrs.frozen(kw_only=True)
class Place:
    """The place of a message in a session: in a turn, or behind ``position`` others that wait.

    ``notice`` is that of its receipt.
    """

    is_landed: bool = False
    position: int = 0
    notice: str = ""


@attrs.frozen(kw_only=True)
class ReleaseInbox:
    """The session ``handle`` is closed: its inbox stops until the next request for it."""

    handle: str


@attrs.frozen(kw_only=True)
class FindMessage(Request["Place | None"]):
    """Ask a session for the place of a message that its inbox has; not a command of clients.

    Answered once the message has arrived in the session; None if the session cannot say. With
    ``interrupt_by``, a handle, the current turn is interrupted first, unless a turn has taken the
    message already. ``command`` is the name of the agent's own command that it is.
    """

    message: str
    interrupt_by: str | None = None
    command: str = ""


@attrs.frozen(kw_only=True)
class WithdrawMessage(Request[None]):
    """Have a session not work on a message any more, which is a turn of its own.

    Its turn is interrupted; one that has not begun will end before it is sent. Not a command of
    clients. ``by`` is named as the reason.
    """

    message: str
    by: str


@attrs.frozen
class SyncInbox:
    """Sync the messages that were sent with ``defer_sync``, so that their senders are answered."""


_AFTER = described(
    "Acknowledge: the `next` of an earlier reply. Messages up to it are not shown again."
)


@attrs.frozen(kw_only=True)
class ReadInbox(Command[MessageList]):
    """Read your inbox. Messages stay until you acknowledge them by passing `after`."""

    after: str | None = attrs.field(default=None, validator=at_most_chars(512), metadata=_AFTER)
    unread: bool = attrs.field(
        default=True,
        metadata=described("False: return acknowledged messages too, the newest `limit` of all."),
    )
    limit: int = attrs.field(
        default=50,
        validator=between(1, 1000, "messages"),
        metadata=described(
            "Maximum number of messages, 1 to 1000.",
            "Maximum number of messages.",
            minimum=1,
            maximum=1000,
        ),
    )


@attrs.frozen(kw_only=True)
class WaitInbox(Command[MessageList]):
    """Wait for unacknowledged messages in your inbox; return an empty list at the timeout.

    A newer wait of the same handle ends the older one.
    """

    after: str | None = attrs.field(default=None, validator=at_most_chars(512), metadata=_AFTER)
    timeout: float = attrs.field(
        default=50.0,
        validator=between(0, 86_400, "seconds"),
        metadata=described("Maximum seconds to wait.", "Seconds.", minimum=0, maximum=86_400),
    )


@attrs.frozen(kw_only=True)
class Handoff(Command[Receipt]):
    """Send work or news to another agent, which is woken with your text."""

    target_handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            f"The handle to wake: {NAME_RULE}.",
            "Its handle.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    context: str = attrs.field(
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("What the target should know or do."),
    )
    interrupt: bool = attrs.field(
        default=False,
        metadata=described(
            "True: interrupt the target's current turn first. Only of a session you spawned.",
            "Interrupt its turn first; only of a session you spawned.",
        ),
    )
    key: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_KEY_CHARS),
        metadata=described(
            "Your name for this message: a repeated call with the same key is delivered once, and "
            "gets the same id.",
            "Calls with the same key are delivered once.",
        ),
    )
    alone: bool = attrs.field(
        default=False,
        metadata=described(
            "True: it is a turn of its own, and its sender waits for the end of that.",
            "As a turn of its own.",
        ),
    )


@attrs.frozen(kw_only=True)
class PersonHandoff(Handoff):
    """A handoff that a person sends from a face of their own, never over MCP.

    Only it may be a command of the agent's own, unless it ``is_text``. ``has_images``: the last
    lines of it name images, which are kept with the session. Used inside the daemon only.
    """

    is_text: bool = False
    has_images: bool = False

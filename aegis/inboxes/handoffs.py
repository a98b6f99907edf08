"""Handoffs: the message of one, the check of its sender, and its receipt.

The id of a message with a key is made from the sender and the key, so the inbox drops a repeated
one, as it drops every id that it knows, also of messages that are in the archive.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any, Protocol

import attrs

from actors import ActorError, Ref, Reply
from aegis.clock import utc_now
from aegis.errors import AegisError
from aegis.protocol.inboxes import (
    COMMAND_ID,
    HUMAN,
    IMAGES_ID,
    PROMPT_ID,
    Deliver,
    FindMessage,
    Handoff,
    PersonHandoff,
    Place,
    Receipt,
    command_name,
    message_id,
)
from aegis.protocol.naming import name_key

PLACE_S = 1.0
"""Seconds that a session has to report the place of a message; then the receipt is the inbox's."""


class SessionDirectory(Protocol):
    """The sessions of agents, as far as messages are concerned."""

    def session_of(self, handle: str) -> str | None:
        """Return the id of the open session with this handle; None if there is none."""
        ...

    def refuse_closed(self, handle: str) -> AegisError | None:
        """Return why the session with this handle reads no messages; None if it does."""
        ...

    def has(self, handle: str) -> bool:
        """Return whether a session has or had this handle."""
        ...

    def was_dropped(self, handle: str) -> bool:
        """Return whether a session had this handle that is not kept any more."""
        ...

    def refuse_handoff(
        self, sender: str, target: str, *, interrupts: bool, now: float
    ) -> AegisError | None:
        """Return why the target does not take a message of the agent ``sender``, else count it."""
        ...

    def refuse_command(self, target: str, name: str) -> AegisError | None:
        """Return why a person's command of this name is not sent to the session ``target``."""
        ...


class NoSessions:
    """The answers where no session is driven."""

    def session_of(self, handle: str) -> str | None:
        """Return None."""
        return None

    def refuse_closed(self, handle: str) -> AegisError | None:
        """Return None."""
        return None

    def has(self, handle: str) -> bool:
        """Return False."""
        return False

    def was_dropped(self, handle: str) -> bool:
        """Return False."""
        return False

    def refuse_handoff(
        self, sender: str, target: str, *, interrupts: bool, now: float
    ) -> AegisError | None:
        """Return None: every message is taken."""
        return None

    def refuse_command(self, target: str, name: str) -> AegisError | None:
        """Return None."""
        return None


def agent_of(handoff: Handoff) -> str | None:
    """Return the handle of the agent that sends; None for a person."""
    sender = handoff.from_handle
    return None if sender is None or name_key(sender) == "human" else sender


def command_of(handoff: Handoff, target: str, sessions: SessionDirectory) -> str:
    """Return the name of the command that a person sends to a session; empty: it is a text.

    Raises ``Forbidden`` if it is not sent.
    """
    is_person = isinstance(handoff, PersonHandoff) and sessions.session_of(target) is not None
    is_text = isinstance(handoff, PersonHandoff) and handoff.is_text
    name = command_name(handoff.context) if is_person and not is_text else ""
    if name and (refusal := sessions.refuse_command(target, name)) is not None:
        raise refusal
    return name


def delivery_of(
    handoff: Handoff, target: str, sessions: SessionDirectory, *, is_command: bool = False
) -> Deliver:
    """Return the message of a handoff to the inbox of ``target``."""
    agent = agent_of(handoff)
    sender = HUMAN if agent is None else f"agent:{agent}"
    is_person = isinstance(handoff, PersonHandoff)
    has_images = isinstance(handoff, PersonHandoff) and handoff.has_images
    kinds = f"{COMMAND_ID * is_command}{IMAGES_ID * has_images}{PROMPT_ID * handoff.alone}"
    unique = f"{kinds or 'handoff:'}{_unique(handoff.key, agent, sessions)}"
    return Deliver(
        handle=target,
        id=message_id(unique, sender, is_person=is_person),
        sender=sender,
        body=handoff.context,
        timestamp=utc_now(),
    )


def _unique(key: str | None, sender: str | None, sessions: SessionDirectory) -> str:
    if key is None:
        return uuid.uuid4().hex
    # A session keeps its id when it is renamed.
    by = "human" if sender is None else sessions.session_of(sender) or name_key(sender)
    return hashlib.sha256(json.dumps([by, key]).encode()).hexdigest()[:32]


async def answer(
    reply: Reply[Receipt], delivered: Reply[Receipt], session: Ref[Any], find: FindMessage
) -> None:
    """Answer a handoff to a session, once its message is durable.

    The receipt has the place that the session reports, or that in the inbox if the session does not
    answer in time. An interrupt that was sent to it acts nevertheless.
    """
    try:
        receipt = await delivered.wait()
    except (ActorError, AegisError) as error:
        reply.fail(error)
    else:
        place = await _place(session, find)
        reply.send(receipt if place is None else _placed(receipt, place))


async def _place(session: Ref[Any], find: FindMessage) -> Place | None:
    try:
        place: Place | None = await session.ask(find, timeout=PLACE_S)
    except ActorError:
        return None
    return place


def _placed(receipt: Receipt, place: Place) -> Receipt:
    status: Any = "landed" if place.is_landed else "queued"
    return attrs.evolve(receipt, status=status, position=place.position, notice=place.notice)

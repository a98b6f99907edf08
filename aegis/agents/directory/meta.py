"""The reply of ``aegis_meta``. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from aegis.agents.directory.programs import Programs
from aegis.agents.directory.roster import Member, Roster
from aegis.protocol.meta import MAX_PEERS, Meta, Peer
from aegis.protocol.naming import name_key
from aegis.protocol.table import TOOLS
from aegis.protocol.tool_sets import OPEN_TO_HANDLES, Offer, chosen_with

INBOX_OF_SESSION = (
    "Messages to you arrive as turns of your conversation, each with a line `> from SENDER`; there "
    "is nothing to read or to wait for. Answer an agent with aegis_handoff."
)
INBOX_OF_CLIENT = (
    "Wait for messages with aegis_inbox_wait, or read them with aegis_inbox_read. Acknowledge the "
    "messages that you have read by passing `next` of the reply as `after` of the next call. The "
    "resource aegis://inbox/{handle} notifies its subscribers of new messages."
)


def meta_of(handle: str | None, roster: Roster, programs: Programs, handles: Iterable[str]) -> Meta:
    """Return the reply to the client with this handle, None for the operator.

    ``handles`` are those that have an inbox.
    """
    offer = programs.offer(handle)
    member = None if handle is None else roster.find(handle)
    if member is None or member.is_closed:
        return _with_peers(_of_client(handle, offer), roster.open, handles)
    profile = programs.profile_of(member)
    meta = attrs.evolve(
        _of_client(member.handle, offer),
        kind="session",
        session=member.id,
        profile=profile.name,
        permission=profile.permission,
        spawned_by=member.spawned_by,
    )
    return _with_peers(meta, roster.open, handles)


def _with_peers(meta: Meta, sessions: Iterable[Member], handles: Iterable[str]) -> Meta:
    """Return the reply with the other sessions and the other handles, ``MAX_PEERS`` of each."""
    own = name_key(meta.handle)
    members = sorted((each for each in sessions if name_key(each.handle) != own), key=_handle_of)
    known = {own, "human", *(name_key(each.handle) for each in members)}
    others = sorted(each for each in handles if name_key(each) not in known)
    return attrs.evolve(
        meta,
        peers=[
            Peer(handle=each.handle, profile=each.profile, spawned_by=each.spawned_by)
            for each in members[:MAX_PEERS]
        ],
        handles=others[:MAX_PEERS],
        more=max(len(members), len(others)) > MAX_PEERS,
    )


def _handle_of(member: Member) -> str:
    return member.handle


def _of_client(handle: str | None, offer: Offer) -> Meta:
    commands = TOOLS if handle is None else OPEN_TO_HANDLES
    offered = offer.commands
    inbox = INBOX_OF_SESSION if offer.is_driven else INBOX_OF_CLIENT
    return Meta(
        handle=handle or "human",
        kind="human" if handle is None else "client",
        peers=[],
        handles=[],
        tools=[each.tool for each in commands if each.name in offered],
        other_tools=[each.tool for each in commands if each.name in offer.missing],
        how_to_get=_how_to_get(offer),
        inbox=inbox.format(handle=handle or "human"),
    )


def _how_to_get(offer: Offer) -> str:
    choice = f"A person chooses the tools {chosen_with(is_driven=offer.is_driven)}."
    if not offer.reaches_all:
        return choice
    return f"Call other_tools with aegis_call; aegis_tools describes them. {choice}"

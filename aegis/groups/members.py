"""``Members``: opens the sessions of groups, sends them orders, and closes them.

Each call runs in a task of the desk's actor, and may be repeated by a later life of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

import attrs
import trio

from actors import AskError
from aegis.clock import utc_now
from aegis.errors import AegisError, AlreadyExists, NotFound, Unavailable
from aegis.groups import faults
from aegis.groups.rows import (
    AgentGroup,
    BroadcastEnd,
    BroadcastProgress,
    Forming,
    GroupBroadcast,
    GroupSession,
    end_id,
)
from aegis.protocol.agents import AgentInfo, ShowAgent, SpawnMember
from aegis.protocol.groups import BroadcastToGroup, GroupMember
from aegis.protocol.inboxes import MAX_BODY_CHARS, Deliver
from aegis.turns.services import AGAIN_S
from aegis.turns.sessions import AgentSessions
from aegis.turns.watch import TurnOutcome

SPAWN_S = 120.0
"""Seconds until a session that was not opened is asked for again."""

STATE_S = 3.0
"""Seconds that a session has to report its state to a caller that waits for replies."""

BEGINNING = "Your last message of this turn is your reply; nobody reads your other texts."

HEAD_CHARS = 2_000
"""The part of the message to the sender that is kept for its beginning."""


@attrs.frozen
class Members:
    """The members of all groups, which are ``sessions``."""

    sessions: AgentSessions = attrs.field(repr=False)

    # Opening and closing.

    async def start(self, group: AgentGroup, forming: Forming) -> list[GroupSession]:
        """Open the sessions of members that are not open; return all, with their handles.

        Raises ``AegisError`` for the first that cannot be opened.
        """
        opened: list[GroupSession] = []
        for member in forming.members:
            faults.SPAWN_BEFORE.hit(group.name)
            info = await self._open(member, forming.by)
            faults.SPAWN_AFTER.hit(group.name)
            opened.append(attrs.evolve(member, handle=info.handle))
        return opened

    async def _open(self, member: GroupSession, by: str | None) -> AgentInfo:
        """Open the session of a member, whose id it has. Raises ``AegisError``."""
        request = SpawnMember(
            profile=member.profile,
            handle=member.handle or None,
            session=member.session,
            from_handle=by,
        )
        while True:
            try:
                info = await self.sessions.services.ask("agents", request, SPAWN_S)
            except (AskError, AlreadyExists) as error:
                # The directory may have opened it all the same, now or for an earlier call.
                with contextlib.suppress(NotFound):
                    return _open_one(await self.sessions.show(member.session))
                if isinstance(error, AlreadyExists):
                    raise
                await trio.sleep(AGAIN_S)
            else:
                return _open_one(info)

    async def close(self, members: Iterable[GroupSession]) -> None:
        """Close the sessions of members, those that are open."""
        async with trio.open_nursery() as nursery:
            for member in members:
                nursery.start_soon(self._close, member)

    async def _close(self, member: GroupSession) -> None:
        with contextlib.suppress(AegisError):  # it was never opened, or was purged
            await self.sessions.close(member.session)

    # Broadcasts.

    async def outcome(
        self, group: AgentGroup, broadcast: GroupBroadcast, text: str, session: str, since: int
    ) -> TurnOutcome:
        """Deliver a broadcast to a member that has it not, and return the outcome of its turn.

        ``since`` is the newest entry of its transcript that an earlier reply was read from.
        """
        return await self.sessions.outcome(order(group, broadcast, text, session), since=since)

    async def withdraw(self, group: AgentGroup, end: BroadcastEnd) -> None:
        """Interrupt a member, and notify it that its reply is not awaited any more."""
        faults.CANCEL_BEFORE.hit(group.name)
        with contextlib.suppress(AegisError):  # it was purged
            await self.sessions.withdraw(end.session, f"broadcast:{end.id}", f"group:{group.name}")
            if (await self.sessions.show(end.session)).state != "closed":
                await self.sessions.deliver(_cancellation(group, end))
        faults.CANCEL_AFTER.hit(group.name)

    async def notify(self, group: AgentGroup, message: Deliver) -> None:
        """Notify the sender of a broadcast that it is over; its inbox has the message once."""
        faults.NOTIFY_BEFORE.hit(group.name)
        await self.sessions.deliver(message)
        faults.NOTIFY_AFTER.hit(group.name)

    # States.

    async def states(self, sessions: Iterable[str]) -> dict[str, GroupMember]:
        """Return the states of sessions by their ids, of those that report it in a moment."""
        found: dict[str, GroupMember] = {}

        async def find(session: str) -> None:
            with contextlib.suppress(AskError, AegisError):
                request = ShowAgent(handle=session)
                info = await self.sessions.services.ask("agents", request, STATE_S)
                found[session] = GroupMember(
                    handle=info.handle, profile=info.profile, state=info.state, needs=_needs(info)
                )

        async with trio.open_nursery() as nursery:
            for session in sessions:
                nursery.start_soon(find, session)
        return found


def _open_one(info: AgentInfo) -> AgentInfo:
    """Return an open session. Raises ``Unavailable`` for one that was closed meanwhile."""
    if info.state == "closed":
        raise Unavailable(f"the session {info.handle!r} was closed before the group was formed")
    return info


def _needs(info: AgentInfo) -> str:
    if info.blocked is not None:
        return f"{info.blocked.kind}: {info.blocked.title}"
    if info.limited_until is not None:
        return f"its usage limit ends at {info.limited_until}"
    return info.reason


# The messages to members, and to the sender of a broadcast.


def brief(request: BroadcastToGroup) -> str:
    """Return the text that the members get."""
    parts = (
        ("Objective", request.objective),
        ("Output format", request.output_format),
        ("Tools", request.tool_guidance),
        ("Boundaries", request.boundaries),
    )
    given = [f"{title}:\n{text.strip()}" for title, text in parts if text.strip()]
    return "\n\n".join([BEGINNING, *given])


def order(group: AgentGroup, broadcast: GroupBroadcast, text: str, session: str) -> Deliver:
    """Return the message of a broadcast to one member; its id is the same in each life."""
    return Deliver(
        handle=group.members[session].handle,
        id=f"broadcast:{end_id(broadcast.id, session)}",
        sender=f"group:{group.name}/broadcast:{broadcast.id}",
        body=text,
        timestamp=broadcast.at,
    )


def _cancellation(group: AgentGroup, end: BroadcastEnd) -> Deliver:
    """Return the message to a member whose reply is not awaited any more."""
    return Deliver(
        handle=group.members[end.session].handle,
        id=f"cancel:{end.id}",
        sender=f"group:{group.name}/cancel:{end.broadcast}",
        body=(
            f"{end.reason}: your reply to broadcast {end.broadcast} is not awaited any more. Do "
            "not work on it; there is nothing to answer."
        ),
        timestamp=utc_now(),
    )


def result(
    group: AgentGroup, progress: BroadcastProgress, texts: Iterable[str], handles: Mapping[str, str]
) -> Deliver:
    """Return the message to the sender of a broadcast that is over.

    ``handles`` are those of the members now, by their sessions; ``texts`` the replies in their
    order.
    """
    broadcast, replied = progress.broadcast, progress.replied
    lost = [end for end in progress.ends.values() if end.end != "completed"]
    has_failed = any(not each.is_dropped for each in lost)
    lines = [
        f"broadcast {broadcast.id} is over: {len(replied)} of {len(broadcast.members)} members "
        "have replied",
        *(f"{handles[each.session]}: {_loss(each)}" for each in lost),
    ]
    head = "\n".join(lines)[:HEAD_CHARS]
    share = (MAX_BODY_CHARS - len(head)) // max(1, len(replied)) - HEAD_CHARS // 8
    given = zip(replied, texts, strict=True)
    parts = [f"{handles[each]}:\n{text[:share]}" for each, text in given]
    return Deliver(
        handle=broadcast.sender.removeprefix("agent:"),
        id=f"broadcast:{broadcast.id}/end",
        sender=f"group:{group.name}",
        body="\n\n".join([head, *parts])[:MAX_BODY_CHARS],
        timestamp=utc_now(),
        status="error" if has_failed or not replied else "ok",
    )


def _loss(end: BroadcastEnd) -> str:
    return f"{end.end}, {end.reason}" if end.reason else end.end

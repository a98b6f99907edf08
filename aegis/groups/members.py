"""``Members``: opens the sessions of groups, follows them, and closes them.

Each call runs in a task of the desk's actor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import attrs
import trio

from actors import AskError, System
from aegis.errors import AegisError, AlreadyExists, NotFound, Unavailable
from aegis.groups import events as e
from aegis.groups import faults
from aegis.groups.briefs import cancellation, order, result
from aegis.groups.group import Broadcast, Forming, Group, Member
from aegis.groups.views import Shown, handles_of
from aegis.protocol.agents import AgentInfo, ShowAgent, SpawnMember
from aegis.protocol.groups import GroupMember
from aegis.turns.services import AGAIN_S, Services
from aegis.turns.sessions import Sessions

SPAWN_S = 120.0
"""Seconds until a session that was not opened is asked for again."""

STATE_S = 3.0
"""Seconds that a session has to report its state to a caller that waits for replies."""

Report = Callable[[e.Event], None]


@attrs.frozen
class Members:
    """The members of all groups; ``report`` takes the events of a member."""

    system: System
    report: Report = attrs.field(repr=False)
    shown: Shown = attrs.field(repr=False)
    _sessions: Sessions = attrs.field(init=False, repr=False)

    @_sessions.default
    def _of_system(self) -> Sessions:
        return Sessions(Services(self.system))

    # Opening and closing.

    async def form(self, group: Group, forming: Forming) -> None:
        """Open the sessions of members, those that are not open; a repeated call opens no other."""
        opened: list[Member] = []
        try:
            for member in forming.members:
                faults.SPAWN_BEFORE.hit(group.name)
                info = await self._open(member, forming.by)
                faults.SPAWN_AFTER.hit(group.name)
                opened.append(attrs.evolve(member, handle=info.handle))
        except AegisError as error:
            self.report(e.NotFormed(group=group.id, id=forming.id, error=error))
        else:
            self.report(e.Formed(group=group.id, id=forming.id, members=opened))

    async def _open(self, member: Member, by: str | None) -> AgentInfo:
        """Open the session of a member, whose id it has. Raises ``AegisError``."""
        request = SpawnMember(
            profile=member.profile,
            handle=member.handle or None,
            session=member.session,
            from_handle=by,
        )
        while True:
            try:
                info = await self._sessions.services.ask("agents", request, SPAWN_S)
            except (AskError, AlreadyExists) as error:
                # The directory may have opened it all the same, now or for an earlier call.
                with contextlib.suppress(NotFound):
                    return _open_one(await self._sessions.show(member.session))
                if isinstance(error, AlreadyExists):
                    raise
                await trio.sleep(AGAIN_S)
            else:
                return _open_one(info)

    async def unform(self, group: Group, forming: Forming) -> None:
        """Close the sessions of members that were not all opened."""
        await self._close_all(forming.members)
        self.report(e.Unformed(group=group.id, id=forming.id))

    async def close(self, group: Group) -> None:
        """Close all members of a group."""
        faults.CLOSE_BEFORE.hit(group.name)
        await self._close_all(group.members.values())
        self.report(e.Closed(group=group.id))

    async def _close_all(self, members: Iterable[Member]) -> None:
        async with trio.open_nursery() as nursery:
            for member in members:
                nursery.start_soon(self._close, member)

    async def _close(self, member: Member) -> None:
        with contextlib.suppress(AegisError):  # it was never opened, or was purged
            await self._sessions.close(member.session)

    # Broadcasts.

    async def follow(self, group: Group, broadcast: Broadcast, member: Member) -> None:
        """Deliver a broadcast to a member, if it has it not, and report the outcome of its turn."""
        since = group.seen(member.session)
        outcome = await self._sessions.outcome(order(group, broadcast, member), since=since)
        ids = {"group": group.id, "broadcast": broadcast.id, "member": member.session}
        self.report(e.Ended(outcome=outcome, **ids))

    async def withdraw(self, group: Group, broadcast: Broadcast, member: Member) -> None:
        """Interrupt a member, and notify it that its reply is not awaited any more."""
        message = order(group, broadcast, member).id
        faults.CANCEL_BEFORE.hit(group.name)
        with contextlib.suppress(AegisError):  # it was purged
            await self._sessions.withdraw(member.session, message, f"group:{group.name}")
            if (await self._sessions.show(member.session)).state != "closed":
                await self._sessions.deliver(cancellation(group, broadcast, member))
        faults.CANCEL_AFTER.hit(group.name)
        self.report(e.Withdrawn(group=group.id, broadcast=broadcast.id, member=member.session))

    async def notify(self, group: Group, broadcast: Broadcast) -> None:
        """Notify the sender of a broadcast that it is over; its inbox has the message once."""
        faults.NOTIFY_BEFORE.hit(group.name)
        handles = handles_of(group, broadcast, self.shown)
        await self._sessions.deliver(result(group, broadcast, handles))
        faults.NOTIFY_AFTER.hit(group.name)
        self.report(e.Notified(group=group.id, broadcast=broadcast.id))

    # States.

    async def states(self, sessions: Iterable[str]) -> dict[str, GroupMember]:
        """Return the states of sessions by their ids, of those that report it in a moment."""
        found: dict[str, GroupMember] = {}

        async def find(session: str) -> None:
            with contextlib.suppress(AskError, AegisError):
                request = ShowAgent(handle=session)
                info = await self._sessions.services.ask("agents", request, STATE_S)
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

"""Groups of agent sessions."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import Gap, StatesKind
from aegis.client.streams import Stream
from aegis.protocol.group_streams import GroupItem, GroupsItem
from aegis.protocol.groups import (
    WAIT_S,
    BroadcastSent,
    BroadcastToGroup,
    DissolveGroup,
    GroupInfo,
    GroupList,
    GroupOrders,
    GroupReplies,
    ListGroupOrders,
    ListGroups,
    Reducer,
    RenameGroup,
    ShowGroup,
    SpawnIntoGroup,
    SpawnMixedGroup,
    WaitForAll,
    WaitForAny,
)

Profiles = list[str]


GroupsValue = GroupsItem | GroupItem | Gap


class Groups(Noun):
    """Groups of agent sessions that get the same order, and whose replies are gathered."""

    async def spawn(self, group: str, profile: str, *, handle: str | None = None) -> GroupInfo:
        """Start a session as a member of a group, which is created with its first member."""
        return await self._call(SpawnIntoGroup, group=group, profile=profile, handle=handle)

    async def spawn_mixed(
        self, group: str, profiles: Profiles | None = None, *, preset: str | None = None
    ) -> GroupInfo:
        """Create a group with several members: either all start, or none.

        Their profiles are given, or are those of a preset of the configuration.
        """
        return await self._call(SpawnMixedGroup, group=group, profiles=profiles, preset=preset)

    async def broadcast(
        self,
        group: str,
        objective: str,
        *,
        output_format: str = "",
        tool_guidance: str = "",
        boundaries: str = "",
        callback: bool = True,
        key: str | None = None,
    ) -> BroadcastSent:
        """Give all members an order; durable on return. The same ``key`` sends nothing again.

        With ``callback`` a message comes to the inbox when no reply is awaited any more.
        """
        return await self._call(
            BroadcastToGroup,
            group=group,
            objective=objective,
            output_format=output_format,
            tool_guidance=tool_guidance,
            boundaries=boundaries,
            callback=callback,
            key=key,
        )

    async def wait_all(
        self,
        group: str,
        *,
        timeout: float = WAIT_S,
        reducer: Reducer = "concat",
        broadcast_id: str | None = None,
    ) -> GroupReplies:
        """Return the replies once every member has replied, or will not; or after ``timeout`` s."""
        return await self._call(
            WaitForAll, group=group, timeout=timeout, reducer=reducer, broadcast_id=broadcast_id
        )

    async def wait_any(
        self,
        group: str,
        *,
        timeout: float = WAIT_S,
        cancel_losers: bool = True,
        broadcast_id: str | None = None,
    ) -> GroupReplies:
        """Return the replies once one member has replied; or after ``timeout`` seconds.

        With ``cancel_losers`` the others are interrupted.
        """
        return await self._call(
            WaitForAny,
            group=group,
            timeout=timeout,
            cancel_losers=cancel_losers,
            broadcast_id=broadcast_id,
        )

    async def show(self, group: str) -> GroupInfo:
        """Return a group with the states of its members and of its newest broadcast."""
        return await self._call(ShowGroup, group=group)

    async def orders(
        self, group: str, *, before: str | None = None, limit: int = 10
    ) -> GroupOrders:
        """List the orders of a group with the replies, the newest first.

        ``before`` is a broadcast: only orders before it.
        """
        return await self._call(ListGroupOrders, group=group, before=before, limit=limit)

    async def list(self) -> GroupList:
        """List the groups."""
        return await self._call(ListGroups)

    async def rename(self, group: str, new_name: str) -> GroupInfo:
        """Give a group another name; the old one stays an alias."""
        return await self._call(RenameGroup, group=group, new_name=new_name)

    async def dissolve(self, group: str) -> GroupInfo:
        """Close the members of a group, and end it."""
        return await self._call(DissolveGroup, group=group)

    def follow(self) -> AbstractAsyncContextManager[Stream[GroupsValue]]:
        """Open the stream of groups, with ``async with``: all of them, then changes."""
        session = self._session
        kind = StatesKind[GroupsValue](session.handle, "groups", GroupsItem, GroupItem)
        return session.watch(Stream(session, kind))

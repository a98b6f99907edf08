"""The daemon itself, its sessions, and the stream of its supervision tree."""

from __future__ import annotations

import builtins
from contextlib import AbstractAsyncContextManager

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import TreeKind, TreeValue
from aegis.client.streams import Stream
from aegis.protocol.daemon import (
    DaemonStatus,
    Examination,
    Examine,
    GetStatus,
    GetTree,
    ListSessionHandles,
    NewSession,
    RevokeSession,
    RotateToken,
    Session,
    SessionList,
    StopDaemon,
    Stopping,
    TreeNode,
    Voided,
)
from aegis.protocol.history import HistoryKind, HistoryPage, SearchHistory
from aegis.protocol.nodes import ForgetNode, Forgotten
from aegis.protocol.pages import (
    DEFAULT_LINK_S,
    ListPages,
    NewLink,
    NewPageCode,
    PageAddress,
    PageList,
    PagesRevoked,
    RevokePage,
)
from aegis.protocol.push import (
    GetPushKey,
    ListPush,
    PushKey,
    PushRemoved,
    PushSubscription,
    PushSubscriptions,
    RemovePush,
    SubscribePush,
)


class Daemon(Noun):
    """The daemon itself."""

    async def status(self) -> DaemonStatus:
        """Return the daemon's address, uptime, memory and counts. Operator only."""
        return await self._call(GetStatus)

    async def history(
        self,
        *,
        kind: HistoryKind | None = None,
        name: str | None = None,
        word: str | None = None,
        exit_code: int | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int = 50,
        more: str | None = None,
    ) -> HistoryPage:
        """Find ended commands, tasks, requests, runs, and texts of transcripts, newest first.

        The archive is searched too, transcripts only if that is the kind.
        ``more`` of a page continues its search. Times are ISO 8601.
        """
        return await self._call(
            SearchHistory,
            kind=kind,
            name=name,
            word=word,
            exit_code=exit_code,
            since=since,
            until=until,
            limit=limit,
            more=more,
        )

    async def tree(self) -> TreeNode:
        """Return the supervision tree. Operator only."""
        return await self._call(GetTree)

    async def doctor(self) -> Examination:
        """Check the machine, the state of the root and the shells. Operator only."""
        return await self._call(Examine)

    async def rotate_token(self, *, session: str | None = None, all_keys: bool = False) -> Voided:
        """Replace keys and disconnect the clients that use the old ones. Operator only.

        Replaces the operator's token, the secret of the handle ``session``, or, with ``all_keys``,
        all of them.
        """
        return await self._call(RotateToken, session=session, all_keys=all_keys)

    async def forget_node(self, node: str) -> Forgotten:
        """Forget a host that will not join again. Operator only."""
        return await self._call(ForgetNode, node=node)

    async def down(self) -> Stopping:
        """Stop the daemon. Operator only."""
        return await self._call(StopDaemon)


class Pages(Noun):
    """The web page: browsers that are logged in, and read-only links."""

    async def code(self) -> PageAddress:
        """Return an address that logs a browser in, once, within a minute. Operator only."""
        return await self._call(NewPageCode)

    async def list(self) -> PageList:
        """List the browsers that are logged in, and the links. Operator only."""
        return await self._call(ListPages)

    async def revoke(self, id: str) -> PagesRevoked:  # noqa: A002 -- its name on the wire
        """Log out a browser, or revoke a link; ``all`` for everything. Operator only."""
        return await self._call(RevokePage, id=id)

    async def link(
        self, view: str, *, for_s: float = DEFAULT_LINK_S, label: str = ""
    ) -> PageAddress:
        """Return a read-only link. Operator only.

        ``view`` is what it shows: ``terminal:NAME`` or ``agent:HANDLE``. It ends after
        ``for_s`` seconds; ``label`` is a note for the list.
        """
        return await self._call(NewLink, view=view, for_s=for_s, label=label)


class Push(Noun):
    """Notifications for browsers whose page is closed. For a person only."""

    async def key(self) -> PushKey:
        """Return the public key with which a browser subscribes. Operator only."""
        return await self._call(GetPushKey)

    async def subscribe(
        self,
        endpoint: str,
        p256dh: str,
        auth: str,
        *,
        label: str = "",
        requests: bool = True,
        ends: bool = False,
        hides: bool = False,
    ) -> PushSubscription:
        """Send notifications to a browser, by its address and keys. Operator only.

        ``requests``: of those that wait for a person. ``ends``: of messages to the person.
        ``hides``: without names and texts.
        """
        return await self._call(
            SubscribePush,
            endpoint=endpoint,
            p256dh=p256dh,
            auth=auth,
            label=label,
            requests=requests,
            ends=ends,
            hides=hides,
        )

    async def list(self) -> PushSubscriptions:
        """List the browsers that are subscribed. Operator only."""
        return await self._call(ListPush)

    async def remove(self, id: str) -> PushRemoved:  # noqa: A002 -- its name on the wire
        """Send no more notifications to a browser; ``all`` for all of them. Operator only."""
        return await self._call(RemovePush, id=id)


class Sessions(Noun):
    """The sessions: MCP URLs, each bound to one handle."""

    async def new(self, handle: str, *, tools: builtins.list[str] | None = None) -> Session:
        """Return the MCP URL of a handle, made if there is none. Operator only.

        ``tools`` are the tools that it offers from now on: ``core``, ``all``, or names.
        """
        return await self._call(NewSession, handle=handle, tools=tools)

    async def list(self) -> SessionList:
        """List the handles that have a session. Operator only."""
        return await self._call(ListSessionHandles)

    async def revoke(self, handle: str) -> Voided:
        """Revoke the MCP URL of a handle and disconnect its clients. Operator only."""
        return await self._call(RevokeSession, handle=handle)


class Tree(Noun):
    """The stream of the supervision tree. Operator only."""

    def watch(self) -> AbstractAsyncContextManager[Stream[TreeValue]]:
        """Open the stream, with ``async with``: the tree, then changes; the tree after a gap."""
        session = self._session
        return session.watch(Stream(session, TreeKind(session.handle)))

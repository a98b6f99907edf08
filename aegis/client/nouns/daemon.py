"""The daemon itself."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import TreeKind, TreeValue
from aegis.client.streams import Stream
from aegis.protocol.daemon import (
    DaemonStatus,
    GetStatus,
    GetTree,
    ListSessions,
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
from aegis.protocol.nodes import ForgetNode, Forgotten


class Daemon(Noun):
    """The daemon itself."""

    async def status(self) -> DaemonStatus:
        """Show the daemon's address, age, memory and how much it holds; for the operator."""
        return await self._call(GetStatus)

    async def tree(self) -> TreeNode:
        """Show the live supervision tree; for the operator."""
        return await self._call(GetTree)

    async def rotate_token(self, *, session: str | None = None, all_keys: bool = False) -> Voided:
        """Void keys and put new ones in their place; whoever uses the old ones is sent away.

        The operator's token, the secret of the handle ``session``, or all keys; for the operator.
        """
        return await self._call(RotateToken, session=session, all_keys=all_keys)

    async def forget_node(self, node: str) -> Forgotten:
        """Forget a host that will not join again; for the operator."""
        return await self._call(ForgetNode, node=node)

    async def down(self) -> Stopping:
        """Stop the daemon in order; for the operator."""
        return await self._call(StopDaemon)


class Sessions(Noun):
    """Sessions: addresses that are bound to one handle."""

    async def new(self, handle: str) -> Session:
        """Make the MCP URL of a handle, or give the one it has; for the operator."""
        return await self._call(NewSession, handle=handle)

    async def list(self) -> SessionList:
        """Name the handles that have a session; for the operator."""
        return await self._call(ListSessions)

    async def revoke(self, handle: str) -> Voided:
        """Void a handle's MCP URL for good, and send away whoever uses it; for the operator."""
        return await self._call(RevokeSession, handle=handle)


class Tree(Noun):
    """The live supervision tree; for the operator."""

    def watch(self) -> AbstractAsyncContextManager[Stream[TreeValue]]:
        """``async with`` it: the whole tree, then each change; behind a ``Gap`` the whole again."""
        session = self._session
        return session.watch(Stream(session, TreeKind(session.handle)))

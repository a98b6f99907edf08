"""The daemon itself, one call after the other."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
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


class Daemon(BlockingNoun):
    """The daemon itself."""

    def status(self) -> DaemonStatus:
        """Show the daemon's address, age, memory and how much it holds; for the operator."""
        return self._call(GetStatus)

    def tree(self) -> TreeNode:
        """Show the live supervision tree; for the operator."""
        return self._call(GetTree)

    def rotate_token(self, *, session: str | None = None, all_keys: bool = False) -> Voided:
        """Void keys and put new ones in their place; whoever uses the old ones is sent away.

        The operator's token, the secret of the handle ``session``, or all keys; for the operator.
        """
        return self._call(RotateToken, session=session, all_keys=all_keys)

    def forget_node(self, node: str) -> Forgotten:
        """Forget a host that will not join again; for the operator."""
        return self._call(ForgetNode, node=node)

    def down(self) -> Stopping:
        """Stop the daemon in order; for the operator."""
        return self._call(StopDaemon)


class Sessions(BlockingNoun):
    """Sessions: addresses that are bound to one handle."""

    def new(self, handle: str) -> Session:
        """Make the MCP URL of a handle, or give the one it has; for the operator."""
        return self._call(NewSession, handle=handle)

    def list(self) -> SessionList:
        """Name the handles that have a session; for the operator."""
        return self._call(ListSessions)

    def revoke(self, handle: str) -> Voided:
        """Void a handle's MCP URL for good, and send away whoever uses it; for the operator."""
        return self._call(RevokeSession, handle=handle)

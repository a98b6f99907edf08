"""The daemon itself, one call after the other."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
from aegis.protocol.daemon import (
    DaemonStatus,
    GetStatus,
    GetTree,
    RotateToken,
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

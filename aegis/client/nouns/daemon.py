"""The daemon itself."""

from __future__ import annotations

from aegis.client.nouns.noun import Noun
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

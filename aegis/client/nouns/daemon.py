"""The daemon itself."""

from __future__ import annotations

from aegis.client.nouns.noun import Noun
from aegis.protocol.daemon import DaemonStatus, GetStatus, GetTree, StopDaemon, Stopping, TreeNode


class Daemon(Noun):
    """The daemon itself."""

    async def status(self) -> DaemonStatus:
        """Show the daemon's address, age, memory and how much it holds; for the operator."""
        return await self._call(GetStatus)

    async def tree(self) -> TreeNode:
        """Show the live supervision tree; for the operator."""
        return await self._call(GetTree)

    async def down(self) -> Stopping:
        """Stop the daemon in order; for the operator."""
        return await self._call(StopDaemon)

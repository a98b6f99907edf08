"""The daemon itself, one call after the other."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
from aegis.protocol.daemon import DaemonStatus, GetStatus, GetTree, StopDaemon, Stopping, TreeNode


class Daemon(BlockingNoun):
    """The daemon itself."""

    def status(self) -> DaemonStatus:
        """Show the daemon's address, age, memory and how much it holds; for the operator."""
        return self._call(GetStatus)

    def tree(self) -> TreeNode:
        """Show the live supervision tree; for the operator."""
        return self._call(GetTree)

    def down(self) -> Stopping:
        """Stop the daemon in order; for the operator."""
        return self._call(StopDaemon)

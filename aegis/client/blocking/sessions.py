"""Sessions: addresses that are bound to one handle, one call after the other."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
from aegis.protocol.daemon import NewSession, Session


class Sessions(BlockingNoun):
    """Sessions: addresses that are bound to one handle."""

    def new(self, handle: str) -> Session:
        """Make the MCP URL of a handle, or give the one it has; for the operator."""
        return self._call(NewSession, handle=handle)

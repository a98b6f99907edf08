"""Sessions: addresses that are bound to one handle."""

from __future__ import annotations

from aegis.client.nouns.noun import Noun
from aegis.protocol.daemon import NewSession, Session


class Sessions(Noun):
    """Sessions: addresses that are bound to one handle."""

    async def new(self, handle: str) -> Session:
        """Make the MCP URL of a handle, or give the one it has; for the operator."""
        return await self._call(NewSession, handle=handle)

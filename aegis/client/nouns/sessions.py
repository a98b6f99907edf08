"""Sessions: addresses that are bound to one handle."""

from __future__ import annotations

from aegis.client.nouns.noun import Noun
from aegis.protocol.daemon import (
    ListSessions,
    NewSession,
    RevokeSession,
    Session,
    SessionList,
    Voided,
)


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

"""Sessions: addresses that are bound to one handle, one call after the other."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
from aegis.protocol.daemon import (
    ListSessions,
    NewSession,
    RevokeSession,
    Session,
    SessionList,
    Voided,
)


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

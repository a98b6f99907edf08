"""The fault points of the servers."""

from __future__ import annotations

from actors.faults import FaultTable

SERVERS = FaultTable()

ACCEPT_BEFORE = SERVERS.point("gateway.accept.before")
"""A client has connected; nothing was read of it. An error here is one of the gateway itself."""

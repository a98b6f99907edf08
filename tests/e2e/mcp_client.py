"""The official MCP client, on Trio, for a daemon of the harness."""

from __future__ import annotations

from aegis.chaos.real.sessions import connect_mcp

connect_mcp_to = connect_mcp

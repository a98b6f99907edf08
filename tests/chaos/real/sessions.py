"""The official MCP client, on Trio, for a scratch daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.chaos.real.scratch import GUARD_S, ScratchDaemon


class ToolFailed(Exception):
    """A tool answered with an error; the sentence is the daemon's."""


class Session:
    """A caller of the tools of one daemon."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, command: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the result of the tool of this command. Raises ``ToolFailed``."""
        result = await self._client.call_tool(f"aegis_{command}", dict(arguments))
        if result.is_error or result.structured_content is None:
            raise ToolFailed(str(result.content))
        return dict(result.structured_content)


@asynccontextmanager
async def open_session(daemon: ScratchDaemon, handle: str | None = None) -> AsyncIterator[Session]:
    """Open a session of ``handle``, of the era that client and server agree upon."""
    async with connect_mcp(daemon, "auto", handle) as client:
        yield Session(client)


@asynccontextmanager
async def connect_mcp(
    daemon: ScratchDaemon, mode: str, handle: str | None = None
) -> AsyncIterator[Client]:
    """Connect a client of the era ``mode``, at the session URL of ``handle``, or the operator's."""
    url, headers = daemon.endpoint.mcp, {"authorization": f"Bearer {daemon.endpoint.token}"}
    if handle is not None:
        url, headers = daemon.call("session_new", handle=handle)["url"], {}
    socket = None if daemon.is_reached_by_port else daemon.endpoint.socket
    transport = httpx2.AsyncHTTPTransport(uds=socket)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=GUARD_S, transport=transport) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client

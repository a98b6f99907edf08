"""The official MCP client, on Trio, for a daemon of the harness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.harness import GUARD_S, DaemonProcess


@asynccontextmanager
async def connect_mcp_to(
    daemon: DaemonProcess, mode: str, handle: str | None = None
) -> AsyncIterator[Client]:
    """A client of the era ``mode``; without a handle it is the operator's."""
    url, headers = daemon.endpoint.mcp, {"authorization": f"Bearer {daemon.endpoint.token}"}
    if handle is not None:
        url, headers = daemon.call("session_new", handle=handle)["url"], {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=GUARD_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client

"""Official MCP clients of both eras that watch resources."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import trio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import Subscription

from tests.e2e.harness import GUARD_S, DaemonProcess


class Watcher:
    """A client, and the addresses of which it was told that they have changed."""

    def __init__(self, client: Client, told: trio.MemoryReceiveChannel[str]) -> None:
        self.client = client
        self._told = told

    async def next(self) -> str:
        """The next notification."""
        with trio.fail_after(GUARD_S):
            return await self._told.receive()

    def told(self) -> list[str]:
        """What has come already and was not asked for yet."""
        found = []
        while self._told.statistics().current_buffer_used:
            found.append(self._told.receive_nowait())
        return found

    async def read(self, uri: str) -> Any:
        """The document there."""
        [content] = (await self.client.read_resource(uri)).contents
        assert isinstance(content, types.TextResourceContents)
        assert (content.uri, content.mime_type) == (uri, "application/json")
        return json.loads(content.text)


@asynccontextmanager
async def watching(
    daemon: DaemonProcess, era: str, uris: list[str], handle: str | None = None
) -> AsyncIterator[Watcher]:
    """A client of this era that watches these; without a handle it is the operator's."""
    url, headers = daemon.endpoint.mcp, {"authorization": f"Bearer {daemon.endpoint.token}"}
    if handle is not None:
        url, headers = daemon.call("session_new", handle=handle)["url"], {}
    async with watching_at(url, era, uris, headers) as watcher:
        yield watcher


@asynccontextmanager
async def watching_at(
    url: str, era: str, uris: list[str], headers: dict[str, str]
) -> AsyncIterator[Watcher]:
    """Likewise, by the address of a session."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=GUARD_S) as http,
        watching_over(streamable_http_client(url, http_client=http), era, uris) as watcher,
    ):
        yield watcher


@asynccontextmanager
async def watching_over(server: Any, era: str, uris: list[str]) -> AsyncIterator[Watcher]:
    """Likewise, by whatever a client connects to."""
    send, told = trio.open_memory_channel[str](1000)

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            send.send_nowait(str(message.params.uri))

    async def follow(subscription: Subscription) -> None:
        async for event in subscription:
            send.send_nowait(event.uri)  # type: ignore[union-attr]

    handler = on_message if era == "legacy" else None
    async with Client(server, mode=era, message_handler=handler) as client:
        if era == "legacy":
            for uri in uris:
                await client.session.subscribe_resource(uri)
            yield Watcher(client, told)
            return
        async with client.listen(resource_subscriptions=uris) as subscription:
            assert subscription.honored.resource_subscriptions == uris
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow, subscription)
                yield Watcher(client, told)
                nursery.cancel_scope.cancel()

"""Hypercorn as it is used here: HTTP/1.1 and nothing else, one connection at a time, no logs.

Left alone it would speak HTTP/2 to whoever asks for it without encryption, by its preface or by
``Upgrade: h2c``: a hundred requests at once on one connection, and nothing here needs that.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

import h11
import hypercorn.config
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, LifespanState

from aegis.servers.http1 import MAX_HEAD_BYTES
from aegis.servers.streams import ClientStream

KEEP_ALIVE_S = 15.0
"""How long a connection may stay between two requests, the head of the second one included."""

CLIENT = "aegis.client"
"""Under this key an application finds the ``ClientStream`` in its scope."""

Scope = MutableMapping[str, Any]
Asgi = Callable[
    [Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


async def serve_http(stream: ClientStream, app: Asgi, context: WorkerContext) -> None:
    """Serve the requests of one connection, one after the other, until it is over."""

    async def with_client(
        scope: Scope,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        await app({**scope, CLIENT: stream}, receive, send)

    wrapped = ASGIWrapper(cast("ASGIFramework", with_client))
    await _Server(wrapped, _CONFIG, context, LifespanState({}), cast("Any", stream)).run()


class _Http11(H11Protocol):
    """The protocol of a connection, whatever else the client would like to speak."""

    async def _check_protocol(self, event: h11.Request) -> None:
        pass


class _Server(TCPServer):
    async def _read_data(self) -> None:
        chosen = self.protocol
        own = _Http11(
            chosen.app,
            chosen.config,
            chosen.context,
            chosen.task_group,
            chosen.state,
            chosen.ssl,
            chosen.client,
            chosen.server,
            chosen.send,
        )
        self.protocol = cast("ProtocolWrapper", own)  # of which initiate and handle are used
        await super()._read_data()


def _config() -> hypercorn.config.Config:
    config = hypercorn.config.Config()
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.keep_alive_max_requests = sys.maxsize  # an agent keeps its connection for days
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    config.include_server_header = False
    # Its logs would show addresses, and a session's address is its key.
    config.accesslog = None
    config.errorlog = None
    return config


_CONFIG = _config()

"""Hypercorn limited to strict HTTP/1.1: one request at a time per connection, no logs.

By itself Hypercorn serves HTTP/2 over cleartext, by prior knowledge or ``Upgrade: h2c``: a hundred
concurrent requests on one connection, which no client here needs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

import h11
import hypercorn.config
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.events import RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, LifespanState

from aegis.servers.gateway.client_stream import ClientStream
from aegis.servers.gateway.http1 import MAX_HEAD_BYTES, head_refusal, plain_answer

KEEP_ALIVE_S = 15.0
"""Seconds that a connection may stay idle, including the time to receive the next head."""

GONE = (trio.BrokenResourceError, trio.ClosedResourceError)

LINGER_S = 1.0
"""Seconds in which the rest of a refused request is read and dropped."""

CLIENT = "aegis.client"
"""The key of the ``ClientStream`` in the ASGI scope."""

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


class _StrictConnection(h11.Connection):
    """An h11 connection that checks each head strictly before h11 parses it leniently.

    ``refusal`` is the complete response to a refused head.
    """

    refusal: bytes | None = None

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self.their_state is h11.IDLE:
            refused = head_refusal(self.trailing_data[0])
            if refused is not None:
                self.refusal = plain_answer(*refused)
                raise h11.RemoteProtocolError(refused[1], error_status_hint=refused[0])
        return super().next_event()


class _Http11(H11Protocol):
    """HTTP/1.1 without upgrades."""

    def __init__(self, *given: Any, linger: Callable[[], Awaitable[None]]) -> None:
        super().__init__(*given)
        self._linger = linger
        self.connection = _StrictConnection(
            h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_size
        )

    async def _check_protocol(self, event: h11.Request) -> None:
        pass

    async def _send_error_response(self, status_code: int) -> None:
        """Send the refusal of the head; Hypercorn closes the connection afterwards."""
        refusal = getattr(self.connection, "refusal", None)
        if refusal is None:
            await super()._send_error_response(status_code)
            return
        await self.send(RawData(data=refusal))
        await self._linger()


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
            linger=self._read_and_drop,
        )
        self.protocol = cast("ProtocolWrapper", own)  # TCPServer uses initiate and handle only
        await super()._read_data()

    async def _read_and_drop(self) -> None:
        """Read and drop the rest of the request, within limits of time and size."""
        # Closing a socket with unread data sends a reset, and the client may lose the answer.
        left = MAX_HEAD_BYTES
        with trio.move_on_after(LINGER_S), contextlib.suppress(*GONE):
            while left > 0 and (data := await self.stream.receive_some(left)):
                left -= len(data)


def _config() -> hypercorn.config.Config:
    config = hypercorn.config.Config()
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.keep_alive_max_requests = sys.maxsize  # an agent keeps its connection for days
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    config.include_server_header = False
    # Hypercorn's logs contain paths, and the path of a session is its key.
    config.accesslog = None
    config.errorlog = None
    return config


_CONFIG = _config()

"""The server of HTTP requests: ``/mcp``, ``/mcp/s/<secret>`` and ``/mcp/s/<secret>/mcp`` for MCP,
``/health`` without a key, and the web page.

Host, Origin, key and size of a request are checked before it reaches MCP, and the key is removed
from it. A refused request is answered with a status and one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import unquote

import attrs
import structlog
import trio

from aegis.json_bounds import (
    MAX_KEYS,
    BadId,
    RepeatedKey,
    has_too_many_keys,
    make_ids_whole,
    read_json,
)
from aegis.servers.access.admission import ErrorResponse, bearer_token, body_refusal, turned_away
from aegis.servers.access.auth import Keys
from aegis.servers.calls import Identity, one_sentence
from aegis.servers.gateway.http1 import RequestHead
from aegis.servers.gateway.http_server import Exchange
from aegis.servers.gateway.uploads import IMAGE_PATH, UPLOAD_PATH, Uploads

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MCP_PATH = "/mcp"
SESSION_PREFIX = "/mcp/s/"
MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_LIMIT_S = 30.0

INVALID_REQUEST = -32600
"""The code of a JSON-RPC error for a request that was not read."""

log = structlog.get_logger("aegis.servers.http")


class Mcp(Protocol):
    """The server of MCP."""

    async def serve_call(
        self, identity: Identity, exchange: Exchange, document: Any, body: bytes
    ) -> bool:
        """Answer a frequent request; return False for any other request.

        ``document`` is the JSON of the body, None if it is none.
        """
        ...

    async def handle(self, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI) of an authenticated client."""
        ...


class Web(Protocol):
    """The server of the web page."""

    async def serves(self, path: str) -> bool:
        """Return whether a path belongs to the page."""
        ...

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> ErrorResponse | None:
        """Answer a request for a path of the page; return a refusal for the caller to send."""
        ...


@attrs.frozen
class HttpApp:
    """The server of requests; ``hosts`` are the accepted host names, ``web`` serves the page.

    ``uploads`` takes the files that a page sends.
    """

    keys: Keys
    hosts: frozenset[str]
    mcp: Mcp
    web: Web | None = None
    uploads: Uploads | None = None

    async def __call__(self, exchange: Exchange) -> None:
        """Serve one request."""
        try:
            await self._serve(exchange)
        except Exception:
            # Without the path, which may contain a key. The HTTP server answers 500.
            log.exception("an HTTP request failed", method=exchange.head.method)

    async def _serve(self, exchange: Exchange) -> None:
        path, receive, send = unquote(exchange.head.path), exchange.receive, exchange.send
        if self.web is not None and await self.web.serves(path):
            refusal = await self.web.serve(exchange.scope(), receive, send)
            if refusal is not None:
                await answer(refusal, send)
            return
        if path in (UPLOAD_PATH, IMAGE_PATH) and self.uploads is not None:
            refusal = await self.uploads.serve(exchange)
            if refusal is not None:
                await answer(refusal, send)
            return
        admitted = self._admit(exchange.head, path)
        if isinstance(admitted, ErrorResponse):
            await answer(admitted, send)
            return
        exchange.client.trust(admitted)
        received = exchange.take_body(MAX_BODY_BYTES)
        body = await read_body(receive) if received is None else received
        document: Any = None
        if isinstance(body, bytes):
            document, body = read_document(body)
        if isinstance(body, ErrorResponse):
            await answer(body, send, as_json=True)
            return
        is_post = exchange.head.method == "POST"
        if body is None or (
            is_post and await self.mcp.serve_call(admitted, exchange, document, body)
        ):
            return
        scope = _without_key(exchange.scope())
        await self.mcp.handle(admitted, scope, replay(body, receive), send)

    def _admit(self, head: RequestHead, path: str) -> Identity | ErrorResponse:
        judged = tuple([pair for pair in head.headers if pair[0] in _JUDGED])
        refusal = _refusal(judged, head.query, self.hosts)
        if refusal is not None:
            return refusal
        if path == "/health":
            return ErrorResponse(200, "ok") if head.method in ("GET", "HEAD") else _ONLY_GET
        if path.rstrip("/") == MCP_PATH:
            token = bearer_token(head.headers)
            identity = None if token is None else self.keys.identity_of_token(token)
            return identity or _NO_TOKEN
        if path.startswith(SESSION_PREFIX):
            # Some MCP clients append /mcp to every URL.
            secret = path.removeprefix(SESSION_PREFIX).rstrip("/").removesuffix(MCP_PATH)
            return self.keys.identity_of_session(secret) or _NO_SESSION
        return _NOT_FOUND


@lru_cache(maxsize=64)
def _refusal(
    judged: tuple[tuple[bytes, bytes], ...], query: bytes, hosts: frozenset[str]
) -> ErrorResponse | None:
    """Return the refusal of a request by these headers; clients repeat them on each request."""
    return turned_away(judged, query, hosts) or body_refusal(judged)


async def read_body(receive: Receive) -> bytes | ErrorResponse | None:
    """Return the body; an ``ErrorResponse`` if it is too large or slow; None if the client left."""
    body = bytearray()
    with trio.move_on_after(BODY_LIMIT_S):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > MAX_BODY_BYTES:
                return _TOO_LARGE
            if not message.get("more_body", False):
                return bytes(body)
    return _TOO_SLOW


def read_document(body: bytes) -> tuple[Any, bytes | ErrorResponse]:
    """Return the JSON of a body, and the body with the ids that the SDK understands, or a refusal.

    Text that is not JSON is left to the MCP SDK.
    """
    if has_too_many_keys(body):
        return None, _TOO_MANY_KEYS
    try:
        document = read_json(body)
        is_changed = make_ids_whole(document)
    except (RepeatedKey, BadId) as error:
        return None, ErrorResponse(400, one_sentence(str(error)))
    except (ValueError, RecursionError):
        return None, body
    return document, json.dumps(document).encode() if is_changed else body


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that returns ``body`` first, then calls the given one."""
    waiting = [body]

    async def received() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return received


async def answer(reply: ErrorResponse, send: Send, *, as_json: bool = False) -> None:
    """Answer with one sentence.

    ``as_json``: as a JSON-RPC error. Clients of MCP do not show the text of a refusal otherwise.
    """
    text = (_json_error(reply) if as_json else reply.sentence).encode() + b"\n"
    kind = b"application/json" if as_json else b"text/plain; charset=utf-8"
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(text)).encode()),
        (b"cache-control", b"no-store"),
        # A refused client may retry on a new connection.
        *([(b"connection", b"close")] if reply.status >= 400 else []),
        *([(b"www-authenticate", b"Bearer")] if reply.status == 401 else []),
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def _json_error(reply: ErrorResponse) -> str:
    error = {"code": INVALID_REQUEST, "message": reply.sentence}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error})


def _without_key(scope: Scope) -> Scope:
    headers = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
    return {**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode(), "headers": headers}


_JUDGED = frozenset({b"host", b"origin", b"content-encoding"})
"""The headers that admission depends on, besides those that the HTTP server has checked."""

_ONLY_GET = ErrorResponse(405, "use GET")
_NO_TOKEN = ErrorResponse(
    401, "send the header 'Authorization: Bearer <token>' with the token of endpoint.json"
)
_NO_SESSION = ErrorResponse(
    403, "this session address is not valid; 'aegis-actors session new --handle H' prints one"
)
_NOT_FOUND = ErrorResponse(
    404, "no such path; MCP clients use /mcp, others use /ws or the Unix socket"
)
_TOO_LARGE = ErrorResponse(413, f"the request's body is larger than {MAX_BODY_BYTES} bytes")
_TOO_MANY_KEYS = ErrorResponse(413, f"the request's body has more than {MAX_KEYS} keys")
_TOO_SLOW = ErrorResponse(408, f"the request's body did not arrive within {BODY_LIMIT_S:g} seconds")


class OneAnswer:
    """A ``send`` that drops messages after the end of the response.

    The MCP SDK answers twice when it fails after its response. ``is_whole``: the response was sent
    completely.
    """

    def __init__(self, send: Callable[[Any], Awaitable[None]]) -> None:
        self._send = send
        self.is_whole = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        """Send an ASGI message of the response."""
        if self.is_whole:
            return
        await self._send(message)
        is_body = message["type"] == "http.response.body"
        self.is_whole = is_body and not message.get("more_body", False)

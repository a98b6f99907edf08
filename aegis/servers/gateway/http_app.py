"""The ASGI application: ``/mcp``, ``/mcp/s/<secret>`` and ``/mcp/s/<secret>/mcp`` for MCP clients,
``/health`` without a key, and the web page.

Host, Origin, key and size of a request are checked before it reaches MCP, and the key is removed
from it. A refused request is answered with a status and one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol

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
from aegis.servers.gateway.http_server import CLIENT

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MCP_PATH = "/mcp"
SESSION_PREFIX = "/mcp/s/"
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_DROPPED_BYTES = 16 * 1024 * 1024
"""Bytes of a refused request that are read and dropped, so that its sender gets the answer."""

BODY_LIMIT_S = 30.0
LINGER_S = 1.0

INVALID_REQUEST = -32600
"""The code of a JSON-RPC error for a request that was not read."""

log = structlog.get_logger("aegis.servers.http")

McpHandler = Callable[[Identity, Scope, Receive, Send], Awaitable[None]]


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
    """The ASGI application; ``hosts`` are the accepted host names, ``web`` serves the web page."""

    keys: Keys
    hosts: frozenset[str]
    mcp: McpHandler
    web: Web | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            await self._serve(scope, receive, send)
        except Exception:
            # Without the path, which may contain a key. The HTTP server answers 500.
            log.exception("an HTTP request failed", method=scope["method"])

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.web is not None and await self.web.serves(scope["path"]):
            refusal = await self.web.serve(scope, receive, send)
            if refusal is not None:
                await answer(refusal, receive, send)
            return
        admitted = self._admit(scope)
        if isinstance(admitted, ErrorResponse):
            await answer(admitted, receive, send)
            return
        if CLIENT in scope:
            scope.pop(CLIENT).trust(admitted)
        body = await read_body(receive)
        if isinstance(body, bytes):
            body = checked_body(body)
        if isinstance(body, ErrorResponse):
            await answer(body, receive, send, as_json=True)
        elif body is not None:
            await self.mcp(admitted, _without_key(scope), replay(body, receive), send)

    def _admit(self, scope: Scope) -> Identity | ErrorResponse:
        headers = scope["headers"]
        refusal = turned_away(headers, scope["query_string"], self.hosts) or body_refusal(headers)
        if refusal is not None:
            return refusal
        path: str = scope["path"]
        if path == "/health":
            return ErrorResponse(200, "ok") if scope["method"] in ("GET", "HEAD") else _ONLY_GET
        if path.rstrip("/") == MCP_PATH:
            return self._by_token(scope) or _NO_TOKEN
        if path.startswith(SESSION_PREFIX):
            # Some MCP clients append /mcp to every URL.
            secret = path.removeprefix(SESSION_PREFIX).rstrip("/").removesuffix(MCP_PATH)
            return self.keys.identity_of_session(secret) or _NO_SESSION
        return _NOT_FOUND

    def _by_token(self, scope: Scope) -> Identity | None:
        token = bearer_token(scope["headers"])
        return None if token is None else self.keys.identity_of_token(token)


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


def checked_body(body: bytes) -> bytes | ErrorResponse:
    """Return the body with the ids that the SDK understands, or its refusal.

    Text that is not JSON is left to the MCP SDK.
    """
    if has_too_many_keys(body):
        return _TOO_MANY_KEYS
    try:
        document = read_json(body)
        is_changed = make_ids_whole(document)
    except (RepeatedKey, BadId) as error:
        return ErrorResponse(400, one_sentence(str(error)))
    except (ValueError, RecursionError):
        return body
    return json.dumps(document).encode() if is_changed else body


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that returns ``body`` first, then calls the given one."""
    waiting = [body]

    async def received() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return received


async def answer(
    reply: ErrorResponse, receive: Receive, send: Send, *, as_json: bool = False
) -> None:
    """Answer with one sentence, then read and drop the rest of the request, within limits.

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
    await send({"type": "http.response.body", "body": text, "more_body": True})
    # Closing a socket with unread data sends a reset, and the client may lose the answer.
    with trio.move_on_after(LINGER_S):
        await _read_and_drop(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _json_error(reply: ErrorResponse) -> str:
    error = {"code": INVALID_REQUEST, "message": reply.sentence}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error})


async def _read_and_drop(receive: Receive) -> None:
    left = MAX_DROPPED_BYTES
    while left > 0:
        message = await receive()
        if not message.get("more_body", False):
            return
        left -= len(message.get("body", b""))


def _without_key(scope: Scope) -> Scope:
    headers = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
    return {**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode(), "headers": headers}


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

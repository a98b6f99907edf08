"""The response to one POST of an MCP client: plain JSON if it is ready soon, else an event stream.

The SDK is used in its JSON mode, which takes a third less CPU time than its event streams. This
module adds what that mode lacks: a long call moves to an event stream, so that proxies and clients
do not time out before the head of the response; progress is sent on that stream; and a disconnected
client is detected. A client that accepts only event streams gets its answer as one. The SDK serves
no such client, nor one that sends no Accept header, so it gets the header as it wants it.

The head is sent when the answer is ready, or ``OPEN_AFTER_S`` seconds after the SDK has dispatched
the request. Not earlier: earlier refusals (an unknown session or method) are an HTTP status, and a
handshake needs the session id in the head.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any

import trio

OPEN_AFTER_S = 0.1
PING_S = 15.0
"""How often a silent stream gets a comment, so that no proxy closes it."""

JSON_TYPES = ("application/json", "application/*", "*/*")
STREAM_TYPES = ("text/event-stream", "text/*", "*/*")

_PING = b": ping\r\n\r\n"
_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class PostAnswer:
    """The answer to one POST. ``send`` and ``receive`` are what the SDK gets.

    ``watch`` must be running meanwhile. It alone calls the real ``receive``.
    """

    def __init__(self, headers: list[tuple[bytes, bytes]], body: Message, send: Send) -> None:
        takes_json, self._may_stream = accepts(accept_of(headers))
        self.request_id: str | int | None = None
        self.session: str | None = None
        self._only_stream = self._may_stream and not takes_json
        self._body: Message | None = body
        self._send = send
        self._sending = trio.Lock()
        self._opening = trio.CancelScope()
        self._start: Message | None = None
        self._is_stream = False
        self._is_from_sdk = False  # a stream of the SDK, or no body: sent as it comes
        self._is_whole = False
        self._is_dispatched = trio.Event()
        self._is_gone = trio.Event()

    def dispatched(
        self, request_id: str | int, session: str | None, open_after_s: float | None = None
    ) -> None:
        """Note that a handler has the request, and in which session, if it is in one.

        The answer becomes a stream in ``open_after_s`` seconds, or ``OPEN_AFTER_S``.
        """
        self.request_id = request_id
        self.session = session
        self._is_dispatched.set()
        if self._may_stream and not self._is_from_sdk:
            after_s = OPEN_AFTER_S if open_after_s is None else open_after_s
            self._opening.deadline = trio.current_time() + after_s

    async def receive(self) -> Message:
        """Return the body of the request, then wait until the client has gone."""
        if self._body is not None:
            body, self._body = self._body, None
            return body
        await self._is_gone.wait()
        return {"type": "http.disconnect"}

    async def watch(self, receive: Receive, abandon: Callable[[], None]) -> None:
        """Open the stream when it is time, and keep it open. Runs until cancelled.

        Call ``abandon`` once if the client goes away after a handler got its request.
        """
        while not self._is_gone.is_set():
            with self._opening as until:
                if (await receive())["type"] == "http.disconnect":
                    self._is_gone.set()
            if until.cancelled_caught:
                self._opening = trio.CancelScope(deadline=trio.current_time() + PING_S)
                await self._write_event(_PING if self._is_stream else b"")
            else:
                self._opening = trio.CancelScope(deadline=until.deadline)
        await self._is_dispatched.wait()
        abandon()

    async def send(self, message: Message) -> None:
        """Send a message of the SDK's answer: the head when the first part of the body is there."""
        if message["type"] == "http.response.start":
            if _is_json(message):
                self._start = message
                return
            self._is_from_sdk = True
            self._opening.deadline = math.inf
            async with self._sending:
                if not self._is_stream:  # else the SDK was slow, and the head of a stream is sent
                    await self._send(message)
            return
        async with self._sending:
            if self._is_from_sdk:
                await self._send(message)
                return
            if self._only_stream and self._start is not None and self._start["status"] == 200:
                await self._open_stream(self._start)
            if self._is_stream:
                await self._finish_stream(message)
                return
            self._is_whole = not message.get("more_body", False)
            await self._pass_on()
            await self._send(message)

    async def notify_progress(self, token: str | int, progress: int, line: str) -> None:
        """Send ``notifications/progress``, unless the client takes no stream."""
        if not self._may_stream:
            return
        params = {"progressToken": token, "progress": progress, "message": line}
        message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await self._write_event(_event(json.dumps(message, ensure_ascii=False).encode()))

    async def _open_stream(self, start: Message) -> None:
        """Send the head of a stream in place of the head of a JSON answer."""
        if self._is_stream or self._is_whole:
            return
        self._is_stream = True
        own = (b"content-type", b"content-length", b"cache-control")
        others = [each for each in start["headers"] if each[0].lower() not in own]
        await self._send({**start, "headers": [*_STREAM_HEADERS, *others]})

    async def _pass_on(self) -> None:
        start, self._start = self._start, None
        if start is not None:
            await self._send(start)

    async def _write_event(self, event: bytes) -> None:
        """Write ``event`` on the stream, which is opened now if it is not open."""
        # Shielded: half an event would spoil those behind it. A send has a deadline of its own.
        with trio.CancelScope(shield=True):
            async with self._sending:
                if self._is_whole or self._is_from_sdk:
                    return
                if not self._is_stream:
                    self._is_stream = True
                    await self._send(self._head_of_stream())
                if event:
                    await self._send(_part(event, more=True))

    async def _finish_stream(self, message: Message) -> None:
        if self._is_whole:
            return
        self._is_whole = not message.get("more_body", False)
        body = message.get("body", b"")
        await self._send(_part(_event(body) if body else b"", more=not self._is_whole))

    def _head_of_stream(self) -> Message:
        headers = [*_STREAM_HEADERS]
        if self.session is not None:
            headers.append((b"mcp-session-id", self.session.encode()))
        return {"type": "http.response.start", "status": 200, "headers": headers}


def with_accept(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request with the Accept header that the SDK asks for.

    It stays as it is for a client that accepts no answer that MCP has.
    """
    takes_json, takes_stream = accepts(accept_of(headers))
    types = [b"text/event-stream"] if takes_stream else []
    if types or takes_json:
        others = [each for each in headers if each[0].lower() != b"accept"]
        return [*others, (b"accept", b", ".join([b"application/json", *types]))]
    return headers


def accept_of(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return what a client accepts: anything if it does not say (RFC 9110, section 12.5.1)."""
    given = [value for name, value in headers if name.lower() == b"accept" and value.strip()]
    return b",".join(given) or b"*/*"


@lru_cache(maxsize=64)
def accepts(accept: bytes) -> tuple[bool, bool]:
    """Return whether a header Accept takes JSON, and whether it takes an event stream."""
    text = accept.decode("latin-1") or "*/*"
    names = {each.split(";")[0].strip().lower() for each in text.split(",")}
    return not names.isdisjoint(JSON_TYPES), not names.isdisjoint(STREAM_TYPES)


def _is_json(start: Message) -> bool:
    content_type: bytes = dict(start["headers"]).get(b"content-type", b"")
    return content_type.startswith(b"application/json")


def _event(document: bytes) -> bytes:
    return b"event: message\r\ndata: " + document + b"\r\n\r\n"


def _part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}

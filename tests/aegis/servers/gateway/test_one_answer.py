"""An answer is sent once, whatever comes behind it; the SDK's sessions that end in the middle."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import trio

from aegis.servers.calls import OPERATOR
from aegis.servers.gateway.http_app import OneAnswer
from aegis.servers.mcp.tools import McpFace
from tests.aegis.servers.conftest import RecordingPort

START: Mapping[str, Any] = {"type": "http.response.start", "status": 200, "headers": []}
PART: Mapping[str, Any] = {"type": "http.response.body", "body": b"a", "more_body": True}
END: Mapping[str, Any] = {"type": "http.response.body", "body": b"b"}

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def test_what_comes_behind_an_answer_is_passed_over() -> None:
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    answer = OneAnswer(send)
    whole: list[bool] = []
    for message in (START, PART, END, START, END):
        await answer(message)
        whole.append(answer.is_whole)
    assert whole == [False, False, True, True, True]
    assert sent == [START, PART, END]


class Asked:
    """Requests to a face, as the HTTP server hands them on."""

    def __init__(self, face: McpFace) -> None:
        self._face = face
        self.session = b""

    async def request(
        self,
        method: str,
        document: object = None,
        then: Callable[[], Awaitable[None]] | None = None,
    ) -> list[int]:
        """The statuses that it is answered with; ``then`` is done when the answer is whole."""
        body = b"" if document is None else json.dumps(document).encode()
        headers = [
            (b"host", b"127.0.0.1"),
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            *([(b"mcp-session-id", self.session)] if self.session else []),
        ]
        scope = {
            "type": "http",
            "method": method,
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": headers,
        }
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        last = [] if then is None else [then]
        statuses: list[int] = []

        async def receive() -> Mapping[str, Any]:
            if not waiting:
                await trio.sleep_forever()
            return waiting.pop()

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                found = dict(message["headers"])
                self.session = found.get(b"mcp-session-id", self.session)
            elif last and not message.get("more_body", False):
                await last.pop()()

        await self._face.handle(OPERATOR, scope, receive, send)
        return statuses


@pytest.mark.every_python
async def test_a_session_that_ends_while_a_notification_is_on_its_way_is_no_error() -> None:
    face = McpFace(RecordingPort(), version="0")
    async with trio.open_nursery() as nursery:
        await nursery.start(face.run)
        asked = Asked(face)
        assert await asked.request("POST", INITIALIZE) == [200]

        async def end() -> None:
            assert await Asked.request(ended, "DELETE") == [200]

        ended = Asked(face)
        ended.session = asked.session
        assert await asked.request("POST", INITIALIZED, then=end) == [202]
        nursery.cancel_scope.cancel()

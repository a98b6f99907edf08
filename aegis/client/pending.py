"""Which requests that went through are not answered yet, read off the bytes that pass by. Pure.

JSON-RPC messages, one a line. For whoever carries them on and must answer in the other's place
when that is gone. What cannot be understood is passed over: it is not for the carrier to judge.
"""

from __future__ import annotations

import json

RequestId = str | int

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is carried, but not looked into."""

MAX_PENDING = 1024
"""Of more requests than this only the newest are known."""

UNREACHABLE = -32000
"""The code of an answer given in the server's place (JSON-RPC 2.0, "server error")."""


class Pending:
    """What passes by in both directions, in pieces of any size."""

    def __init__(self) -> None:
        self._asked = _Lines()
        self._answered = _Lines()
        self._ids: dict[RequestId, None] = {}

    @property
    def ids(self) -> list[RequestId]:
        """The requests that are not answered, oldest first."""
        return list(self._ids)

    @property
    def is_inside_a_line(self) -> bool:
        """Whether what went to the client ends in the middle of a line."""
        return self._answered.is_inside

    def to_server(self, data: bytes) -> None:
        """The client sent ``data``."""
        for line in self._asked.feed(data):
            message = _message(line)
            request = message.get("id")
            if "method" not in message:
                continue
            if isinstance(request, RequestId):
                self._ids[request] = None
                if len(self._ids) > MAX_PENDING:
                    del self._ids[next(iter(self._ids))]
            elif message["method"] == "notifications/cancelled":
                self._forget(_params(message).get("requestId"))

    def to_client(self, data: bytes) -> None:
        """The server sent ``data``."""
        for line in self._answered.feed(data):
            message = _message(line)
            if "method" not in message:
                self._forget(message.get("id"))

    def _forget(self, request: object) -> None:
        if isinstance(request, RequestId):
            self._ids.pop(request, None)


def error_answer(request: RequestId, sentence: str) -> bytes:
    """The line that answers ``request`` with an error."""
    error = {"code": UNREACHABLE, "message": sentence}
    return json.dumps({"jsonrpc": "2.0", "id": request, "error": error}).encode() + b"\n"


class _Lines:
    """Whole lines out of pieces; those that are too long are left out."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_inside = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes."""
        first, *others = data.split(b"\n")
        found = []
        self._add(first)
        for piece in others:
            if self._size <= MAX_LINE_BYTES:
                found.append(b"".join(self._pieces))
            self._pieces, self._size, self.is_inside = [], 0, False
            self._add(piece)
        return found

    def _add(self, piece: bytes) -> None:
        if not piece:
            return
        self.is_inside = True
        self._size += len(piece)
        if self._size <= MAX_LINE_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces = []


def _message(line: bytes) -> dict[str, object]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _params(message: dict[str, object]) -> dict[str, object]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}

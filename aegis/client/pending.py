"""The pending JSON-RPC requests of a forwarded connection, derived from its bytes. Pure.

Messages are one per line. The bridge answers the pending requests when the server is gone. Lines
that cannot be parsed are ignored: the bridge does not validate messages.
"""

from __future__ import annotations

import json

from aegis.client.sizes import MAX_FRAME_BYTES

RequestId = str | int

ENDLESS = frozenset({"subscriptions/listen"})
"""The methods of requests that end with the connection."""

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is forwarded without being parsed."""

MAX_PENDING = 1024
"""Most requests that are recorded; older ones are dropped."""

UNREACHABLE = -32000
"""The error code of an answer by the bridge (JSON-RPC 2.0, "server error")."""

TOO_LONG = -32600
"""The error code of a request that the daemon does not read (JSON-RPC 2.0, "invalid request")."""


class Pending:
    """The pending requests, fed with both directions in pieces of any size."""

    def __init__(self) -> None:
        self._requests = _Lines()
        self._answers = _Lines()
        self._ids: dict[RequestId, str] = {}
        self._too_long: list[RequestId] = []

    @property
    def ids(self) -> list[RequestId]:
        """The ids of the pending requests, oldest first."""
        return list(self._ids)

    @property
    def is_awaited(self) -> bool:
        """Whether an answer will come, also after the client's input has ended."""
        return not ENDLESS.issuperset(self._ids.values())

    @property
    def is_inside_a_line(self) -> bool:
        """Whether the bytes sent to the client end inside a line."""
        return self._answers.is_inside

    def to_server(self, data: bytes) -> None:
        """Record the requests in ``data``, sent by the client."""
        for line in self._requests.feed(data):
            message = _message(line)
            request = _id_in(message.get("id"))
            if "method" not in message:
                continue
            if request is not None and len(line) > MAX_FRAME_BYTES:
                self._too_long.append(request)
            elif request is not None:
                self._ids[request] = str(message["method"])
                if len(self._ids) > MAX_PENDING:
                    del self._ids[next(iter(self._ids))]
            elif message["method"] == "notifications/cancelled":
                self._remove(_params(message).get("requestId"))

    def end_of_input(self) -> bytes:
        """Return the line end that the client's last line lacks, if any, after recording it."""
        missing = b"\n" if self._requests.is_inside else b""
        self.to_server(missing)
        return missing

    def refusals(self) -> bytes:
        """Return the answers to requests that are too long for the daemon, each once.

        The daemon cannot answer them: it has not read their ids.
        """
        if self.is_inside_a_line:
            return b""
        found, self._too_long = self._too_long, []
        sentence = f"a line must be at most {MAX_FRAME_BYTES} bytes long, and this one was longer"
        return b"".join(error_answer(each, sentence, TOO_LONG) for each in found)

    def to_client(self, data: bytes) -> None:
        """Record the answers in ``data``, sent by the server."""
        for line in self._answers.feed(data):
            message = _message(line)
            if "method" not in message:
                self._remove(message.get("id"))

    def _remove(self, request: object) -> None:
        found = _id_in(request)
        if found is not None:
            self._ids.pop(found, None)


def _id_in(value: object) -> RequestId | None:
    """Return an id as the daemon reads it: 1.0 is 1; None for a value that is no id."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def error_answer(request: RequestId, sentence: str, code: int = UNREACHABLE) -> bytes:
    """Return the line that answers ``request`` with an error."""
    error = {"code": code, "message": sentence}
    return json.dumps({"jsonrpc": "2.0", "id": request, "error": error}).encode() + b"\n"


class _Lines:
    """A splitter of pieces into whole lines; lines that are too long are left out."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_inside = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that ``data`` completes."""
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

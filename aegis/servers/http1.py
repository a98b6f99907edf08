"""The head of an HTTP/1.1 request (RFC 9112), read strictly, and plain answers. Pure.

Only enough of HTTP to see where a connection belongs: whatever is unclear here goes to the real
HTTP server, which judges it.
"""

from __future__ import annotations

import re
from http import HTTPStatus

import attrs

MAX_HEAD_BYTES = 16_384
END_OF_HEAD = b"\r\n\r\n"

_REQUEST_LINE = re.compile(rb"([A-Z]+) ([!-~]+) HTTP/1\.1")
_HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~\t\x80-\xff]*)")


@attrs.frozen
class RequestHead:
    """Method, target and headers; header names are in lower case."""

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]

    @property
    def path(self) -> str:
        """The target up to the question mark."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> bytes:
        """The target after the question mark; empty if there is none."""
        return self.target.partition("?")[2].encode("ascii")

    @property
    def wants_websocket(self) -> bool:
        """Whether the client asks to go on as WebSocket (RFC 6455, 4.1)."""
        return self.method == "GET" and any(
            name == b"upgrade" and value.strip().lower() == b"websocket"
            for name, value in self.headers
        )


def is_complete(data: bytes | bytearray) -> bool:
    """Whether ``data`` holds a whole head."""
    return END_OF_HEAD in data


def parse_head(data: bytes) -> RequestHead | None:
    """The request head that ``data`` begins with; None if there is none, or not a strict one."""
    head, end, _ = data.partition(END_OF_HEAD)
    first, *lines = head.split(b"\r\n")
    request = _REQUEST_LINE.fullmatch(first)
    fields = [_HEADER_LINE.fullmatch(line) for line in lines]
    if not end or request is None or None in fields:
        return None
    return RequestHead(
        method=request[1].decode("ascii"),
        target=request[2].decode("ascii"),
        headers=tuple((field[1].lower(), field[2]) for field in fields if field is not None),
    )


def plain_answer(status: int, sentence: str) -> bytes:
    """A whole response that says ``sentence`` and ends the connection."""
    body = sentence.encode() + b"\n"
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        "content-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body

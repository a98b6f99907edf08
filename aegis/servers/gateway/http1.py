"""A strict parser for the head of an HTTP/1.1 request (RFC 9112), and plain responses. Pure.

``parse_head`` is used to route a connection, ``head_refusal`` to check a head before Hypercorn
parses it. Hypercorn is lenient where RFC 9112 allows it (folded lines, bare line feeds, a repeated
length). A proxy may parse such a head differently and see another end of the request: request
smuggling (RFC 9112, 11.2).
"""

from __future__ import annotations

import re
from http import HTTPStatus

import attrs

MAX_HEAD_BYTES = 16_384
END_OF_HEAD = b"\r\n\r\n"

_END_OF_HEAD = re.compile(rb"\n\r?\n")
"""The end of a head as h11 sees it: h11 accepts a bare line feed (RFC 9112, 2.2)."""

_VERSION = re.compile(rb"HTTP/([0-9]+\.[0-9]+)")
_LENGTH = re.compile(rb"[0-9]{1,18}")

_ONCE = frozenset(
    {
        b"content-length",
        b"content-type",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"sec-websocket-key",
        b"sec-websocket-version",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that must not be repeated: one program would use the first, another the last."""

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
    def has_body(self) -> bool:
        """Whether the headers announce a body (RFC 9112, 6.3)."""
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 \t"))
            for name, value in self.headers
        )

    @property
    def wants_websocket(self) -> bool:
        """Whether the client asks for an upgrade to WebSocket (RFC 6455, 4.1)."""
        return self.method == "GET" and any(
            name == b"upgrade" and value.strip().lower() == b"websocket"
            for name, value in self.headers
        )


def is_complete(data: bytes | bytearray) -> bool:
    """Return whether ``data`` contains a whole head, as h11 sees it."""
    return _END_OF_HEAD.search(data) is not None


def parse_head(data: bytes) -> RequestHead | None:
    """Parse the request head at the start of ``data``; None if it is incomplete or not strict."""
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


def head_refusal(data: bytes) -> tuple[int, str] | None:
    """Return a status and a sentence if the head at the start of ``data`` is refused.

    None if the head is strict, or incomplete.
    """
    end = _END_OF_HEAD.search(data)
    if end is None:
        return None
    head = parse_head(data[: end.end()])
    return _form_refusal(data[: end.end()]) if head is None else framing_refusal(head)


def framing_refusal(head: RequestHead) -> tuple[int, str] | None:
    """Return a status and a sentence if the target or the framing of the body is refused.

    The target must be a path (origin form, RFC 9112, 3.2.1), and the length of the body must be
    given in one way (RFC 9112, 6.3).
    """
    if not head.target.startswith("/"):
        return 400, "the request target must begin with '/'"
    names = [name for name, _ in head.headers]
    if names.count(b"host") != 1:
        return 421, "send the header 'Host' exactly once"
    repeated = sorted(name for name in _ONCE if names.count(name) > 1)
    if repeated:
        return 400, f"send the header {repeated[0].decode('ascii')!r} once"
    headers = dict(head.headers)
    length, coding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
    if length is not None and coding is not None:
        return 400, "send one Content-Length, or Transfer-Encoding: chunked, not both"
    if length is not None and _LENGTH.fullmatch(length.rstrip(b" \t")) is None:
        return 400, "Content-Length must be one decimal number"
    if coding is not None and coding.strip().lower() != b"chunked":
        return 501, "the only Transfer-Encoding is 'chunked'"
    if b"upgrade" in headers and head.has_body:
        return 400, "a request with an Upgrade header must not have a body"
    return None


def _form_refusal(head: bytes) -> tuple[int, str]:
    """Return a status and a sentence for a complete head that ``parse_head`` rejects."""
    first, _, lines = head.partition(b"\n")
    version = _VERSION.search(first.rstrip(b"\r"))
    if version is not None and version[1] != b"1.1":
        return 505, "use HTTP/1.1"
    if _REQUEST_LINE.fullmatch(first.removesuffix(b"\r")) is None:
        return 400, "a request line is a method in capital letters, a path and HTTP/1.1"
    if re.search(rb"(?<!\r)\n", head) or re.search(rb"\r(?!\n)", head):
        return 400, "end each line of the request head with CR LF; neither may be inside a line"
    if re.search(rb"(?:^|\n)[ \t]", lines):
        return 400, "folded header lines are not supported: send each header on one line"
    return 400, "a header is a name, a colon and a value without control characters"


def plain_answer(status: int, sentence: str) -> bytes:
    """Return a complete response with ``sentence`` that closes the connection."""
    body = sentence.encode() + b"\n"
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        "content-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body

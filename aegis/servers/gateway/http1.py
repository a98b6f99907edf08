"""A strict parser for the head of an HTTP/1.1 request (RFC 9112), and plain responses. Pure.

RFC 9112 allows a lenient parser (folded lines, bare line feeds, a repeated length). A proxy may
parse such a head differently and see another end of the request: request smuggling (RFC 9112,
11.2).
"""

from __future__ import annotations

import re
from http import HTTPStatus

import attrs

MAX_HEAD_BYTES = 16_384
END_OF_HEAD = b"\r\n\r\n"

_END_OF_HEAD = re.compile(rb"\n\r?\n")
"""The end of a head as a lenient parser sees it: with a bare line feed (RFC 9112, 2.2)."""

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
_HEADER_LINES = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ -~\t\x80-\xff]*\r\n)*")


@attrs.frozen
class RequestHead:
    """Method, target and headers; header names are in lower case, values without blanks around.

    ``fields`` has the last value of each header.
    """

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    fields: dict[bytes, bytes]

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
        length = self.fields.get(b"content-length", b"")
        return b"transfer-encoding" in self.fields or bool(length.strip(b"0"))

    @property
    def wants_websocket(self) -> bool:
        """Whether the client asks for an upgrade to WebSocket (RFC 6455, 4.1)."""
        return self.method == "GET" and self.fields.get(b"upgrade", b"").lower() == b"websocket"


def size_of_head(data: bytes | bytearray) -> int:
    """Return the size of the head at the start of ``data``, as a lenient parser sees it.

    0 if it is incomplete. Data that begins with no letter is a head to its end: it is refused.
    """
    end = _END_OF_HEAD.search(data)
    if end is not None:
        return end.end()
    return len(data) if data and not data[:1].isalpha() else 0


def parse_head(data: bytes) -> RequestHead | None:
    """Parse the request head at the start of ``data``; None if it is incomplete or not strict."""
    text, end, _ = data.partition(END_OF_HEAD)
    first, _, lines = text.partition(b"\r\n")
    request = _REQUEST_LINE.fullmatch(first)
    headers = header_lines(lines + b"\r\n" if lines else b"")
    if not end or request is None or headers is None:
        return None
    return RequestHead(
        request[1].decode("ascii"), request[2].decode("ascii"), headers, dict(headers)
    )


def header_lines(lines: bytes) -> tuple[tuple[bytes, bytes], ...] | None:
    """Parse header lines, each with its end; None if one of them is not strict."""
    if _HEADER_LINES.fullmatch(lines) is None:
        return None
    pairs = [line.split(b":", 1) for line in lines.split(b"\r\n")[:-1]]
    return tuple([(name.lower(), value.strip(b" \t")) for name, value in pairs])


def strict_head(data: bytes) -> RequestHead | bytes:
    """Parse a whole head; return the complete answer that refuses it if it is not strict."""
    head = parse_head(data)
    if head is None:
        return plain_answer(*_form_refusal(data))
    refusal = framing_refusal(head)
    return head if refusal is None else plain_answer(*refusal)


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
    repeated = sorted([name for name in _ONCE & head.fields.keys() if names.count(name) > 1])
    if repeated:
        return 400, f"send the header {repeated[0].decode('ascii')!r} once"
    length, coding = head.fields.get(b"content-length"), head.fields.get(b"transfer-encoding")
    if length is not None and coding is not None:
        return 400, "send one Content-Length, or Transfer-Encoding: chunked, not both"
    if length is not None and _LENGTH.fullmatch(length) is None:
        return 400, "Content-Length must be one decimal number"
    if coding is not None and coding.lower() != b"chunked":
        return 501, "the only Transfer-Encoding is 'chunked'"
    if b"upgrade" in head.fields and head.has_body:
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

"""How an answer is written on one wire: the interface of the four of them. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Protocol

import attrs

from tests.agents_real.model_server.conversation import Request
from tests.agents_real.model_server.script import Call, Json

PIECE_CHARS = 24
CHARS_PER_TOKEN = 4


def pieces(text: str) -> Iterator[str]:
    """Cut a text as a model streams it."""
    for at in range(0, len(text), PIECE_CHARS):
        yield text[at : at + PIECE_CHARS]


def tokens(*values: object) -> int:
    """Return a count of tokens that depends on nothing but the values."""
    return sum(len(str(value)) for value in values) // CHARS_PER_TOKEN + 1


def input_tokens(request: Request) -> int:
    """Return the tokens of a request."""
    return tokens(request.system, *(text for each in request.messages for text in each.texts))


def server_sent(document: Json, event: str | None = None) -> bytes:
    """Return one server-sent event."""
    head = "" if event is None else f"event: {event}\n"
    return f"{head}data: {json.dumps(document)}\n\n".encode()


class Reply(Protocol):
    """One answer in the making: each method returns the events that the wire has for it."""

    def begin(self) -> bytes:
        """Begin the answer."""

    def say(self, text: str) -> Iterator[bytes]:
        """Add text."""

    def think(self, text: str) -> Iterator[bytes]:
        """Add reasoning."""

    def call(self, call: Call, number: int) -> bytes:
        """Add a tool call; ``number`` is unique for the server."""

    def end(self) -> bytes:
        """End the answer."""

    def broken(self, message: str) -> bytes:
        """End a stream that has begun with an error."""

    def whole(self) -> Json:
        """Return the answer as one document, for a request that is not streamed."""


@attrs.frozen(kw_only=True)
class Wire:
    """An API: how its requests are read, its answers and its errors written."""

    name: str
    read: Callable[[Json, str], Request]
    """Read a request from its body and path."""
    reply: Callable[[Request, int], Reply]
    """Begin the answer with this number."""
    error: Callable[[int, str], Json]
    """The body of an HTTP error."""
    limit: Callable[[int], tuple[dict[str, str], Json]]
    """Headers and body of a 429; the limit is lifted at this Unix time."""

"""The frames of the WebSocket protocol that a client sends and receives. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.client.errors import ProtocolMismatch
from aegis.protocol.streams import (
    Ended,
    Gap,
    Item,
)

PROTOCOL_VERSION = 1


@attrs.frozen
class Welcome:
    """The daemon's hello: name and version, and the handle that the connection is bound to.

    ``instance`` names the run of the daemon.
    """

    server: str
    instance: str
    handle: str | None


@attrs.frozen
class ReplyFrame:
    """The result of request ``id``."""

    id: int
    result: dict[str, Any]


@attrs.frozen
class FailureFrame:
    """The failure of a request or an open; ``id`` is None for a frame that was not understood."""

    id: int | None
    code: str
    message: str


@attrs.frozen
class OpenedFrame:
    """Stream ``id`` is open; ``start`` describes where it starts."""

    id: int
    channel: int | None
    start: dict[str, Any]


Incoming = Welcome | ReplyFrame | FailureFrame | OpenedFrame | Item | Gap | Ended


def parse_incoming(text: str) -> Incoming:
    """Parse a frame. Raises ``ProtocolMismatch``."""
    try:
        document = json.loads(text)
        return _frame(document)
    except (ValueError, KeyError, TypeError, RecursionError, CodecError):
        shown = text if len(text) <= 80 else f"{text[:79]}…"
        raise ProtocolMismatch(f"the daemon sent no frame of the protocol: {shown!r}") from None


def _frame(document: Any) -> Incoming:
    match document["type"]:
        case "reply":
            return ReplyFrame(_number(document["id"]), dict(document["result"]))
        case "error":
            number = None if document["id"] is None else _number(document["id"])
            return FailureFrame(number, str(document["code"]), str(document["message"]))
        case "opened":
            return _opened(document)
        case "item":
            return structure(Item, document)
        case "gap":
            return structure(Gap, document)
        case "ended":
            return structure(Ended, document)
        case "hello":
            return Welcome(str(document["server"]), str(document["instance"]), document["handle"])
        case _:
            raise ValueError(document["type"])


def _opened(document: Mapping[str, Any]) -> OpenedFrame:
    start = {
        name: value for name, value in document.items() if name not in ("type", "id", "channel")
    }
    channel = document.get("channel")
    return OpenedFrame(
        _number(document["id"]), None if channel is None else _number(channel), start
    )


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("an id must be a number")
    return value


def hello_frame(*, token: str | None, session: str | None) -> str:
    """Return the first frame of a client, with its key."""
    key = {"token": token, "session": session}
    given = {name: value for name, value in key.items() if value is not None}
    return _text({"type": "hello", "version": PROTOCOL_VERSION, **given})


def request_frame(number: int, command: str, arguments: Mapping[str, object]) -> str:
    """Return the frame that requests a command."""
    return _text({"type": "request", "id": number, "command": command, "arguments": arguments})


def cancel_frame(number: int) -> str:
    """Return the frame that cancels a request."""
    return _text({"type": "cancel", "id": number})


def open_frame(number: int, stream: str, arguments: Mapping[str, object], credit: int) -> str:
    """Return the frame that opens a stream with ``credit`` bytes of credit."""
    return _text(
        {"type": "open", "id": number, "stream": stream, "arguments": arguments, "credit": credit}
    )


def credit_frame(number: int, amount: int) -> str:
    """Return the frame that adds ``amount`` bytes of credit to a stream."""
    return _text({"type": "credit", "id": number, "amount": amount})


def close_frame(number: int) -> str:
    """Return the frame that closes a stream."""
    return _text({"type": "close", "id": number})


def claim_frame(number: int, cols: int, rows: int, *, take: bool) -> str:
    """Return the frame that claims the size of a stream's terminal."""
    return _text({"type": "claim", "id": number, "cols": cols, "rows": rows, "take": take})


def release_frame(number: int) -> str:
    """Return the frame that releases the size of a stream's terminal."""
    return _text({"type": "release", "id": number})


def _text(frame: Mapping[str, object]) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

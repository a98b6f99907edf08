"""The frames of the WebSocket and of the line protocol: one JSON object each. Pure.

From the client:  {"type": "hello", "version": 1, "token": "…"}      or "session": "…", or neither
                  {"type": "request", "id": 7, "command": "term_run", "arguments": {…}}
                  {"type": "cancel", "id": 7}
                  open, credit, close: see ``aegis.protocol.streams``
From the server:  {"type": "hello", "version": 1, "server": "aegis-actors/…", "handle": null}
                  {"type": "reply", "id": 7, "result": {…}}
                  {"type": "error", "id": 7, "code": "busy", "message": "…"}

Each request gets exactly one reply or error, in the order of completion. An error whose ``id`` is
null is about a frame that could not be understood. The frames of streams come beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.errors import InvalidRequest
from aegis.names import shorten
from aegis.path_text import is_utf8
from aegis.protocol.streams import (
    MAX_CREDIT,
    Close,
    Credit,
    Ended,
    Gap,
    Item,
    Open,
    Opened,
    RequestId,
)
from aegis.servers.access.json_bounds import MAX_KEYS, has_too_many_keys, read_json
from aegis.servers.calls import Failure
from aegis.servers.json_text import json_text

PROTOCOL_VERSION = 1
MAX_FRAME_BYTES = 4 * 1024 * 1024
MAX_ID_CHARS = 128
MAX_ID_NUMBER = 2**53

_F = TypeVar("_F")
_KINDS = "'hello', 'request', 'cancel', 'open', 'credit' and 'close'"


@attrs.frozen(kw_only=True)
class Hello:
    """The client's protocol version and, optionally, its key."""

    version: int
    token: str | None = attrs.field(default=None, repr=False)
    session: str | None = attrs.field(default=None, repr=False)

    @property
    def shows_key(self) -> bool:
        """Whether the frame has a key of the client."""
        return self.token is not None or self.session is not None


@attrs.frozen
class Request:
    """A request for a command."""

    id: RequestId
    command: str
    arguments: Mapping[str, object]


@attrs.frozen
class Cancel:
    """The cancellation of a request."""

    id: RequestId


Frame = Hello | Request | Cancel | Open | Credit | Close


def parse_frame(text: str | bytes) -> Frame:
    """Parse a frame. Raises ``InvalidRequest`` with the allowed values."""
    document = _parse_object(text)
    kind = document.pop("type", None)
    if kind == "hello":
        return _hello(document)
    if kind == "request":
        return _request(document)
    if kind == "cancel":
        _no_others(document, {"id"}, kind)
        return Cancel(_id(document))
    if kind == "open":
        return _open(document)
    if kind in ("credit", "close"):
        return _about_stream(document, kind)
    raise InvalidRequest(f"'type' must be one of {_KINDS}, not {shorten(json.dumps(kind))}")


def hello_frame(server: str, handle: str | None) -> str:
    """Return the server's answer to a hello; ``handle`` is null for the operator."""
    return json_text(
        {"type": "hello", "version": PROTOCOL_VERSION, "server": server, "handle": handle}
    )


def reply_frame(request: RequestId, result: Mapping[str, Any]) -> str:
    """Return the frame of a request's result. Raises ``UnsendableText``."""
    return json_text({"type": "reply", "id": request, "result": result})


def error_frame(request: RequestId | None, failure: Failure) -> str:
    """Return the frame of a failure; ``request`` is None for a frame that was not understood."""
    return json_text(
        {"type": "error", "id": request, "code": failure.code, "message": failure.sentence}
    )


def stream_frame(
    frame: Opened | Item | Gap | Ended, beside: Mapping[str, object] | None = None
) -> str:
    """Return a frame of a stream; ``beside`` has the start fields of an opened stream.

    Raises ``UnsendableText``.
    """
    fields = attrs.asdict(frame, recurse=False)
    if isinstance(frame, Gap) and frame.cursor is None:
        del fields["cursor"]
    return json_text({"type": frame.tag, **fields, **(beside or {})})


def _hello(document: dict[str, Any]) -> Hello:
    _no_others(document, {"version", "token", "session"}, "hello")
    version = document.get("version")
    if version != PROTOCOL_VERSION or isinstance(version, bool):
        raise InvalidRequest(f"this server speaks version {PROTOCOL_VERSION}: send it as 'version'")
    token, session = document.get("token"), document.get("session")
    if not all(key is None or isinstance(key, str) for key in (token, session)):
        raise InvalidRequest("'token' and 'session' must be text")
    if token is not None and session is not None:
        raise InvalidRequest("give 'token' or 'session', not both")
    return Hello(version=PROTOCOL_VERSION, token=token, session=session)


def _request(document: dict[str, Any]) -> Request:
    _no_others(document, {"id", "command", "arguments"}, "request")
    command, arguments = document.get("command"), document.get("arguments", {})
    if not isinstance(command, str):
        raise InvalidRequest("'command' must be the name of a command")
    if not isinstance(arguments, dict):
        raise InvalidRequest("'arguments' must be an object")
    return Request(_id(document), command, arguments)


def _open(document: dict[str, Any]) -> Open:
    frame = _structured(Open, document, "open")
    if not 0 <= frame.credit <= MAX_CREDIT:
        raise InvalidRequest(f"'credit' must be from 0 to {MAX_CREDIT} bytes, not {frame.credit}")
    return frame


def _about_stream(document: dict[str, Any], kind: str) -> Credit | Close:
    if kind == "close":
        return _structured(Close, document, kind)
    frame = _structured(Credit, document, kind)
    if not 1 <= frame.amount <= MAX_CREDIT:
        raise InvalidRequest(f"'amount' must be from 1 to {MAX_CREDIT} bytes, not {frame.amount}")
    return frame


def _structured(form: type[_F], document: dict[str, Any], kind: str) -> _F:
    _id(document)
    try:
        return structure(form, {"type": kind, **document})
    except CodecError as error:
        raise InvalidRequest(f"{kind}: {shorten(str(error), 300)}") from None


def _id(document: dict[str, Any]) -> RequestId:
    value = document.get("id")
    if isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARS and is_utf8(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_ID_NUMBER:
        return value
    raise InvalidRequest(
        f"'id' must be a whole number, or text of 1 to {MAX_ID_CHARS} characters without lone "
        "surrogates"
    )


def _no_others(document: dict[str, Any], allowed: set[str], kind: str) -> None:
    extra = sorted(document.keys() - allowed)
    if extra:
        raise InvalidRequest(
            f"a {kind} has no {shorten(extra[0])!r}; it has {', '.join(sorted(allowed))}"
        )


def _parse_object(text: str | bytes) -> dict[str, Any]:
    if has_too_many_keys(text.encode(errors="replace") if isinstance(text, str) else text):
        raise InvalidRequest(f"the JSON has more than {MAX_KEYS} keys")
    try:
        document = read_json(text)
    except RecursionError:
        raise InvalidRequest("the JSON is nested too deeply") from None
    except ValueError as error:
        raise InvalidRequest(f"a message must be one JSON object ({error})") from None
    if not isinstance(document, dict):
        raise InvalidRequest("a message must be one JSON object")
    return document

"""The frames of the WebSocket and of the line protocol: one JSON object each. Pure.

From the client:  {"type": "hello", "version": 1, "token": "…"}      or "session": "…", or neither
                  {"type": "request", "id": 7, "command": "term_run", "arguments": {…}}
                  {"type": "cancel", "id": 7}
                  {"type": "ping", "id": 8}
                  open, credit, close, claim, release: see ``aegis.protocol.streams``
From the server:  {"type": "hello", "version": 1, "server": "aegis-actors/…", "instance": "…",
                   "handle": null}
                  {"type": "reply", "id": 7, "result": {…}}
                  {"type": "pong", "id": 8}
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
from aegis.json_bounds import MAX_KEYS, has_too_many_keys, read_json
from aegis.names import shorten
from aegis.path_text import is_utf8
from aegis.protocol.streams import (
    MAX_CREDIT,
    Claim,
    Close,
    Credit,
    Ended,
    Gap,
    Item,
    Open,
    Opened,
    Release,
    RequestId,
)
from aegis.servers.calls import Failure, Identity
from aegis.servers.json_text import json_text

PROTOCOL_VERSION = 1
MAX_FRAME_BYTES = 4 * 1024 * 1024
MAX_ID_CHARS = 128
MAX_ID_NUMBER = 2**53

_F = TypeVar("_F")
_ABOUT_STREAMS: dict[str, type[Credit | Close | Claim | Release]] = {
    form.tag: form for form in (Credit, Close, Claim, Release)
}
_KINDS = "'hello', 'request', 'cancel', 'ping', 'open', 'credit', 'close', 'claim' and 'release'"


@attrs.frozen(kw_only=True)
class Hello:
    """The client's protocol version and, optionally, its key.

    ``page`` is the page key of a browser, which is valid together with its cookie.
    """

    version: int
    token: str | None = attrs.field(default=None, repr=False)
    session: str | None = attrs.field(default=None, repr=False)
    page: str | None = attrs.field(default=None, repr=False)

    @property
    def shows_key(self) -> bool:
        """Whether the frame has a key of the client."""
        return any(key is not None for key in (self.token, self.session, self.page))


@attrs.frozen
class CommandRequest:
    """A request for a command."""

    id: RequestId
    command: str
    arguments: Mapping[str, object]


@attrs.frozen
class Cancel:
    """The cancellation of a request."""

    id: RequestId


@attrs.frozen
class Ping:
    """A check of the connection, answered by a pong."""

    id: RequestId


Frame = Hello | CommandRequest | Cancel | Ping | Open | Credit | Close | Claim | Release


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
    if kind == "ping":
        _no_others(document, {"id"}, kind)
        return Ping(_id(document))
    if kind == "open":
        return _open(document)
    if isinstance(kind, str) and kind in _ABOUT_STREAMS:
        return _about_stream(document, kind)
    raise InvalidRequest(f"'type' must be one of {_KINDS}, not {shorten(json.dumps(kind))}")


def hello_frame(server: str, instance: str, identity: Identity) -> str:
    """Return the server's answer to a hello.

    ``instance`` names this run of the daemon. ``handle`` is null for the operator. A web page is
    sent its id, and what it may see if its link is limited.
    """
    page = {} if identity.page is None else {"page": identity.page, "view": identity.view}
    return json_text(
        {
            "type": "hello",
            "version": PROTOCOL_VERSION,
            "server": server,
            "instance": instance,
            "handle": identity.handle,
            **page,
        }
    )


def pong_frame(ping: RequestId) -> str:
    """Return the answer to a ping."""
    return json_text({"type": "pong", "id": ping})


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
    _no_others(document, {"version", "token", "session", "page"}, "hello")
    version = document.get("version")
    if version != PROTOCOL_VERSION or isinstance(version, bool):
        raise InvalidRequest(f"this server speaks version {PROTOCOL_VERSION}: send it as 'version'")
    keys = {name: document.get(name) for name in ("token", "session", "page")}
    if not all(key is None or isinstance(key, str) for key in keys.values()):
        raise InvalidRequest("'token', 'session' and 'page' must be text")
    if sum(key is not None for key in keys.values()) > 1:
        raise InvalidRequest("give one of 'token', 'session' and 'page'")
    return Hello(version=PROTOCOL_VERSION, **keys)


def _request(document: dict[str, Any]) -> CommandRequest:
    _no_others(document, {"id", "command", "arguments"}, "request")
    command, arguments = document.get("command"), document.get("arguments", {})
    if not isinstance(command, str):
        raise InvalidRequest("'command' must be the name of a command")
    if not isinstance(arguments, dict):
        raise InvalidRequest("'arguments' must be an object")
    return CommandRequest(_id(document), command, arguments)


def _open(document: dict[str, Any]) -> Open:
    frame = _structured(Open, document, "open")
    if not 0 <= frame.credit <= MAX_CREDIT:
        raise InvalidRequest(f"'credit' must be from 0 to {MAX_CREDIT} bytes, not {frame.credit}")
    return frame


def _about_stream(document: dict[str, Any], kind: str) -> Credit | Close | Claim | Release:
    frame = _structured(_ABOUT_STREAMS[kind], document, kind)
    if isinstance(frame, Credit) and not 1 <= frame.amount <= MAX_CREDIT:
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

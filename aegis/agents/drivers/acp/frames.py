"""Values of untrusted JSON, and the frames of JSON-RPC 2.0. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from aegis.agents.drivers.harness import Frame

Id = int | str
"""The id of a request. ``1`` and ``"1"`` are two ids."""

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
REQUEST_CANCELLED = -32800

MAX_ERROR_CHARS = 2000
MAX_NAME_CHARS = 500
MAX_DEPTH = 100
"""A frame may be nested so deep; Python compares and encodes by recursion."""

LARGEST_COUNT = 2**63


@attrs.frozen(kw_only=True)
class AcpReply:
    """The agent's response to a request of ours; ``error`` is None if it succeeded."""

    result: dict[str, Any] = attrs.field(factory=dict)
    error: str | None = None
    code: int = 0


def mapping(value: object) -> dict[str, Any]:
    """Return ``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object, limit: int = 1000) -> list[Any]:
    """Return at most ``limit`` items of ``value`` if it is an array, else none."""
    return value[:limit] if isinstance(value, list) else []


def string(value: object) -> str:
    """Return ``value`` if it is a string, else ``""``."""
    return value if isinstance(value, str) else ""


def name(value: object) -> str:
    """Return ``value`` if it is a string that can be a name, else ``""``."""
    return value if isinstance(value, str) and len(value) <= MAX_NAME_CHARS else ""


def count(value: object) -> int | None:
    """Return ``value`` if it is a number of tokens."""
    return value if type(value) is int and 0 <= value < LARGEST_COUNT else None


def amount(value: object) -> float | None:
    """Return ``value`` if it is a finite amount that is not negative."""
    if type(value) is int:
        return float(value) if 0 <= value < LARGEST_COUNT else None
    return value if type(value) is float and math.isfinite(value) and value >= 0 else None


def request_id(value: object) -> Id | None:
    """Return ``value`` if it can be the id of a request; True is no number here."""
    return value if type(value) is int or type(value) is str else None


def request(id_: int, method: str, params: Mapping[str, Any]) -> Frame:
    """Return the frame of a request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": dict(params)}


def notification(method: str, params: Mapping[str, Any]) -> Frame:
    """Return the frame of a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": dict(params)}


def response(id_: Id, result: Mapping[str, Any]) -> Frame:
    """Return the frame of a successful response."""
    return {"jsonrpc": "2.0", "id": id_, "result": dict(result)}


def error_response(id_: Id, code: int, message: str) -> Frame:
    """Return the frame of a response that reports an error."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def reply_in(frame: Frame) -> AcpReply:
    """Return the response in a frame; a frame without a result and an error is a success."""
    if "error" not in frame or frame["error"] is None:
        return AcpReply(result=mapping(frame.get("result")))
    error = mapping(frame["error"])
    code = error.get("code")
    return AcpReply(error=error_text(frame["error"]), code=code if type(code) is int else 0)


def error_text(error: object) -> str:
    """Return the sentence of an error object, with the details that some agents add."""
    fields = mapping(error)
    data = fields.get("data")
    details = string(data) or string(mapping(data).get("details"))
    parts = [string(fields.get("message")) or "an error without a message", details]
    return ": ".join(dict.fromkeys(filter(None, parts)))[:MAX_ERROR_CHARS].rstrip(".")


def is_nested_deeper(value: object, limit: int) -> bool:
    """Whether a JSON value has more than ``limit`` levels."""
    level = [value]
    for _ in range(limit):
        if not level:
            return False
        level = [each for parent in level for each in _children(parent)]
    return bool(level)


def _children(value: object) -> list[object]:
    """Return the objects and arrays directly in a value."""
    if isinstance(value, dict):
        return [each for each in value.values() if isinstance(each, dict | list)]
    if isinstance(value, list):
        return [each for each in value if isinstance(each, dict | list)]
    return []


def without_depth(frame: Frame) -> Frame:
    """Return the plain values of a frame, and of its result or error.

    A request then lacks its parameters and is refused; a response keeps how it ended.
    """
    plain = _plain(frame)
    return plain | {key: _plain(frame[key]) for key in ("result", "error") if frame.get(key)}


def _plain(value: object) -> dict[str, Any]:
    fields = mapping(value)
    return {key: each for key, each in fields.items() if not isinstance(each, dict | list)}

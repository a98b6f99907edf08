"""The base of all commands, and the descriptions and validators of their fields."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from actors.messages import Request

T = TypeVar("T")

MAX_REPLY_BYTES = 340 * 1024
"""Maximum length of a reply's JSON. Over MCP it is sent twice, the second time as text with every
quote and line end escaped, and the official client refuses an event of more than 1 MiB."""

MAX_TIMEOUT_S = 86_400.0
"""A day: the longest time, in seconds, that a call may wait."""


def json_size(value: object) -> int:
    """Return the bytes of a value, as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace"))


def fitting(text: str, room: int) -> str:
    """Return the longest beginning of a text that takes at most ``room`` bytes of JSON."""
    if json_size(text) <= room:
        return text
    low, high = 0, max(0, min(len(text), room))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if json_size(text[:middle]) <= room else (low, middle - 1)
    return text[:low]


@attrs.frozen(kw_only=True)
class Command(Request[T]):
    """A request of a client, the same object for MCP, WebSocket and lines.

    ``from_handle`` is the caller's handle. On a session URL the server fills in the bound handle
    and refuses another; on the operator's connection any is accepted, and ``None`` means ``human``.
    """

    from_handle: str | None = attrs.field(
        default=None,
        metadata={
            "doc": "Your handle. Leave it out on a session URL, which belongs to a handle.",
            "brief": "Act as this handle.",
        },
    )


def described(doc: str, brief: str | None = None, **schema: Any) -> dict[str, Any]:
    """Return field metadata: ``doc`` is a sentence for the schema, ``schema`` its other keywords.

    ``brief`` replaces ``doc`` for MCP clients, which read every schema in every conversation.
    """
    return {"doc": doc, "schema": schema} | ({} if brief is None else {"brief": brief})


def configurable(
    doc: str, setting: str, default: str, brief: str | None = None, **schema: Any
) -> dict[str, Any]:
    """Return metadata as ``described`` does, for a field whose default the configuration may set.

    ``setting`` is the key of the configuration, ``default`` describes the value without it. The
    server fills in the configured value where the caller gave none; the schema has no default.
    """
    full = f"{doc} Default: {setting} of the daemon's .aegis.yaml, else {default}."
    in_brief = f"{brief or doc} Default: {setting} of .aegis.yaml, else {default}."
    return {"doc": full, "schema": schema, "brief": in_brief, "setting": setting}


Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def between(low: float, high: float, unit: str) -> Validator:
    """Return a validator of numbers from ``low`` to ``high``, both included; ``None`` passes."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is None:
            return
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(
                f"{attribute.name} must be from {low:.16g} to {high:.16g} {unit}, not {value!r}"
            )

    return check


def matching(pattern: str, rule: str) -> Validator:
    """Return a validator of text that matches ``pattern`` as a whole; ``rule`` describes it."""
    compiled = re.compile(pattern)

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is None:
            return
        if compiled.fullmatch(value) is None:
            shown = value if len(value) <= 80 else value[:79] + "…"
            raise ValueError(f"{attribute.name} must be {rule}, not {shown!r}")

    return check


def at_most_chars(limit: int) -> Validator:
    """Return a validator of text of at most ``limit`` characters; ``None`` passes."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and len(value) > limit:
            raise ValueError(
                f"{attribute.name} must be at most {limit} characters long, not {len(value)}"
            )

    return check

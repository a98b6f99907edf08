"""What every command has in common: who asks, and how a field is described and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from actors.messages import Request

T = TypeVar("T")

MAX_REPLY_BYTES = 340 * 1024
"""A reply's JSON at most. Over MCP it travels twice, the second time as text with every quote and
line end escaped, and the official client refuses an event of more than 1 MiB."""

MAX_TIMEOUT_S = 86_400.0
"""A day: the longest time that a call may ask to wait, in seconds."""


@attrs.frozen(kw_only=True)
class Command(Request[T]):
    """A request of a client. The same object whichever face it came through.

    ``from_handle`` is who asks. On a session URL the server fills in the bound handle and refuses
    another; on the operator's connection it is taken as given, and ``None`` means ``human``.
    """

    from_handle: str | None = attrs.field(
        default=None,
        metadata={
            "doc": "Your handle. Leave it out on a session URL: there it is known.",
            "brief": "The agent you act as.",
        },
    )


def described(doc: str, brief: str | None = None, **schema: Any) -> dict[str, Any]:
    """Field metadata: ``doc`` is one sentence for the schema, ``schema`` more of its keywords.

    ``brief`` replaces ``doc`` for MCP clients, which read every schema in every conversation.
    """
    return {"doc": doc, "schema": schema} | ({} if brief is None else {"brief": brief})


def configurable(
    doc: str, setting: str, default: str, brief: str | None = None, **schema: Any
) -> dict[str, Any]:
    """Field metadata as ``described`` gives it, of a field whose default the daemon's owner sets.

    ``setting`` is the key of the configuration, ``default`` in words what holds without it. Who
    receives a call puts the daemon's own value where the caller gave none; a schema states none.
    """
    told = f"{doc} Default: {setting} of the daemon's .aegis.yaml, else {default}."
    in_brief = f"{brief or doc} Default: {setting} of .aegis.yaml, else {default}."
    return {"doc": told, "schema": schema, "brief": in_brief, "setting": setting}


Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def between(low: float, high: float, unit: str) -> Validator:
    """A validator: a number from ``low`` to ``high``, both included; ``None`` passes."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is None:
            return
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(
                f"{attribute.name} must be from {low:.16g} to {high:.16g} {unit}, not {value!r}"
            )

    return check


def matching(pattern: str, rule: str) -> Validator:
    """A validator: text that fits ``pattern`` whole; ``rule`` says in words what is allowed."""
    compiled = re.compile(pattern)

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is None:
            return
        if compiled.fullmatch(value) is None:
            shown = value if len(value) <= 80 else value[:79] + "…"
            raise ValueError(f"{attribute.name} must be {rule}, not {shown!r}")

    return check


def at_most_chars(limit: int) -> Validator:
    """A validator: text of at most ``limit`` characters; ``None`` passes."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and len(value) > limit:
            raise ValueError(
                f"{attribute.name} must be at most {limit} characters long, not {len(value)}"
            )

    return check

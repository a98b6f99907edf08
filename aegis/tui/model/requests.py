"""A request as text, the keys that answer it, and the guard against a key meant for another place.

Pure.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from aegis.agents.render import StyledSegment
from aegis.protocol.agent_events import OptionKind
from aegis.protocol.requests import (
    Decision,
    RequestInfo,
    Scope,
    Value,
    options_to_name,
    session_words,
)
from aegis.tui.model.states import tool_name
from aegis.tui.model.times import since

GUARD_S = 0.6
"""Seconds after a request is shown in which keys do not answer it."""

MAX_INPUT_LINES = 2_000
"""Lines of one field of an input that are shown. A longer one can only be denied here."""

MAX_DIGITS = 9
"""Options that a digit chooses."""


@attrs.frozen
class RequestAnswer:
    """The answer to a request, as it is sent."""

    answer: Decision
    scope: Scope = "once"
    option: str = ""
    values: dict[str, Value] = attrs.field(factory=dict)
    label: str = ""


DENYING = {
    "n": RequestAnswer("deny", label="denied"),
    "c": RequestAnswer("cancel", label="denied, turn cancelled"),
}
"""The answers that refuse any request, by their keys."""

ALLOWING: tuple[tuple[str, OptionKind, Scope, str], ...] = (
    ("y", "allow_once", "once", "allowed once"),
    ("s", "allow_session", "session", "allowed for the session"),
)
"""The kinds of options that allow: the key, the kind, its scope, and what is reported."""


@attrs.frozen
class Question:
    """One question with its labels; ``is_multiple``: several may be chosen."""

    text: str
    labels: list[str]
    is_multiple: bool = False


class AnswerDelay:
    """Accepts a key only if the same request has been shown for ``GUARD_S`` seconds.

    A person types where the focus was: a request that appears under the fingers must not take the
    key that was meant for something else.
    """

    def __init__(self) -> None:
        self._shown = ""
        self._since = 0.0

    def show(self, request_id: str, now: float) -> None:
        """Note which request is shown."""
        if request_id != self._shown:
            self._shown, self._since = request_id, now

    def touch(self, now: float) -> None:
        """Start the time again: a key came too early, so others may follow it."""
        self._since = now

    def left(self, now: float) -> float:
        """Return the seconds until keys answer."""
        return max(0.0, self._since + GUARD_S - now)


def may_allow(request: RequestInfo) -> bool:
    """Return whether the request can be allowed: its input is shown whole."""
    return request.input is not None and all(
        _left_out(each) == 0 for each in request.input.values()
    )


def key_reply(request: RequestInfo, key: str) -> RequestAnswer | None:
    """Return the answer that one key gives to a request without fields; None: it gives none."""
    return {**_allowing(request), **DENYING}.get(key)


def _allowing(request: RequestInfo) -> dict[str, RequestAnswer]:
    """Return the answers that allow a request, by their keys.

    Each of several options of one kind has a digit, from 1 on; the letter of the kind is for a
    request with one at most.
    """
    if request.kind not in ("permission", "login") or not may_allow(request):
        return {}
    numbered: list[RequestAnswer] = []
    lettered: dict[str, RequestAnswer] = {}
    for key, kind, scope, text in ALLOWING:
        if scope == "session" and (request.kind == "login" or request.no_session_scope):
            continue
        alike = options_to_name(request, kind)
        if not alike:
            covered = session_words(request) if scope == "session" else ""
            label = f"{text}: {covered}" if covered else text
            lettered[key] = RequestAnswer("allow", scope=scope, label=label)
        for each in alike:
            label = f"{text}: {each.name or each.id}"
            numbered.append(RequestAnswer("allow", scope=scope, option=each.id, label=label))
    return {str(number): each for number, each in enumerate(numbered[:MAX_DIGITS], 1)} | lettered


def key_hints(request: RequestInfo) -> list[tuple[str, str]]:
    """Return the keys that answer a request, with what each does."""
    hints = [
        (key, each.label.replace("allowed", "allow", 1)) for key, each in _allowing(request).items()
    ]
    if request.kind in ("question", "elicitation") and may_allow(request):
        hints.append(("enter", "answer"))
    return [*hints, ("n", "deny"), ("c", "deny and end the turn")]


def questions_of(request: RequestInfo) -> list[Question]:
    """Return the questions of a request of that kind."""
    asked = (request.input or {}).get("questions")
    found = []
    for each in asked if isinstance(asked, list) else []:
        if isinstance(each, dict) and isinstance(each.get("question"), str):
            options = each.get("options")
            labels = [
                str(option["label"])
                for option in (options if isinstance(options, list) else [])
                if isinstance(option, dict) and "label" in option
            ]
            found.append(Question(each["question"], labels, bool(each.get("multiSelect"))))
    return found


def fields_of(request: RequestInfo) -> dict[str, dict[str, Any]]:
    """Return the fields of a form by their names."""
    document = request.input or {}
    names = ("requestedSchema", "requested_schema", "schema")
    schema: dict[str, Any] = next(
        (document[each] for each in names if isinstance(document.get(each), dict)), {}
    )
    fields = schema.get("properties")
    return {
        name: each
        for name, each in (fields if isinstance(fields, dict) else {}).items()
        if isinstance(each, dict)
    }


def typed_value(text: str, kind: object) -> Value:
    """Return what was typed for a field as a value of its type; the daemon checks it."""
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
    except ValueError:
        return text
    if kind == "boolean":
        return text.strip().lower() in ("true", "yes", "y", "1")
    if kind == "array":
        return [each.strip() for each in text.split(",") if each.strip()]
    return text


def request_segments(request: RequestInfo, now: float) -> list[StyledSegment]:
    """Return a request as text: who asks, for what, with which input."""
    what = tool_name(request.tool) or request.tool_kind
    asks = {"permission": "wants to use", "question": "asks", "login": "needs a login"}
    head = [
        StyledSegment(request.handle, "bold"),
        StyledSegment(f" {asks.get(request.kind, 'asks')} ", ""),
        StyledSegment(what if request.kind == "permission" else "", "bold"),
        StyledSegment(f"   {since(request.created, now)} ago\n", "dim"),
    ]
    if request.title:
        head.append(StyledSegment(f"{request.title}\n"))
    if request.reason:
        head.append(StyledSegment(f"{request.reason}\n", "dim"))
    return [*head, StyledSegment("\n"), *_input(request), *_flags(request)]


def _input(request: RequestInfo) -> list[StyledSegment]:
    if request.input is None:
        text = f"{request.input_bytes:,} bytes: too large to show whole, it can only be denied\n"
        return [StyledSegment(text, "yellow"), StyledSegment(f"{request.excerpt}…\n")]
    if request.kind == "question":
        return _questions(request)
    segments = []
    for name, value in request.input.items():
        body = "\n".join(_text(value).split("\n")[:MAX_INPUT_LINES])
        separator = "\n" if "\n" in body else " "
        segments += [StyledSegment(f"{name}:{separator}", "cyan"), StyledSegment(f"{body}\n")]
        if more := _left_out(value):
            text = f"{more} lines more: read them with aegis-actors request show {request.id}, "
            segments.append(
                StyledSegment(f"{text}and allow it there; here it can only be denied\n", "yellow")
            )
    return segments


def _text(value: Any) -> str:
    """Return a value of an input as it is shown."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _left_out(value: Any) -> int:
    """Return the number of lines of a value that are not shown."""
    return max(0, _text(value).count("\n") + 1 - MAX_INPUT_LINES)


def _questions(request: RequestInfo) -> list[StyledSegment]:
    segments = []
    for question in questions_of(request):
        segments.append(StyledSegment(f"{question.text}\n", "bold"))
        for number, label in enumerate(question.labels, 1):
            segments += [StyledSegment(f"  {number} ", "cyan"), StyledSegment(f"{label}\n")]
    return segments


def _flags(request: RequestInfo) -> list[StyledSegment]:
    segments = []
    if request.needs_person:
        segments.append(
            StyledSegment("a single key cannot allow it: press y, then Enter\n", "yellow")
        )
    if request.default_to_no:
        segments.append(StyledSegment("the agent suggests to refuse it\n", "yellow"))
    return segments

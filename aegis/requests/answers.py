"""Checking an answer against its request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from aegis.errors import InvalidRequest
from aegis.names import shorten
from aegis.path_text import is_utf8
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    OptionKind,
    PermissionAnswer,
    QuestionAnswer,
    RequestAnswer,
)
from aegis.protocol.requests import MAX_VALUES_CHARS, AnswerRequest
from aegis.requests.records import Record
from aegis.shown_text import escape_line, escape_text

MAX_SHOWN = 5
"""The number of names that an error sentence lists."""


@attrs.frozen(kw_only=True)
class Question:
    """One question of an agent; ``labels`` are the answers that it offers."""

    text: str
    labels: tuple[str, ...]
    several: bool


def answer_of(record: Record, request: AnswerRequest) -> RequestAnswer:
    """Return the answer as the owner gets it. Raises ``InvalidRequest`` if it does not fit."""
    allows = request.answer == "allow"
    if allows and record.input is None:
        raise InvalidRequest(
            f"request {record.id} can only be denied: its input of {record.input_bytes} bytes "
            "cannot be shown as a whole"
        )
    if record.kind != "permission" and request.scope != "once":
        raise InvalidRequest(f"request {record.id} is a {record.kind}: its scope is 'once'")
    if request.values and (record.kind == "permission" or not allows):
        raise InvalidRequest(
            f"request {record.id} takes no values: they belong to answer 'allow' of a question or "
            "a form"
        )
    if (request.message or request.option) and record.kind != "permission":
        raise InvalidRequest(
            f"request {record.id} is a {record.kind}: message and option go with a permission only"
        )
    match record.kind:
        case "permission":
            return _permission(record, request)
        case "question":
            return QuestionAnswer(answers=_answers(record, request.values) if allows else None)
        case "elicitation" | "login":
            return _elicitation(record, request)


def _permission(record: Record, request: AnswerRequest) -> PermissionAnswer:
    lasts = request.scope == "session"
    allows = request.answer == "allow"
    if request.message and allows:
        raise InvalidRequest("a message goes with a refusal: use answer 'deny'")
    if lasts and record.no_session_scope:
        raise InvalidRequest(f"request {record.id} can be answered once only: use scope 'once'")
    kind: OptionKind
    if allows:
        kind = "allow_session" if lasts else "allow_once"
    else:
        kind = "deny_session" if lasts else "deny"
    option = _option(record, kind, request.option)
    offered = [each.kind for each in record.options]
    if kind != "deny" and offered and kind not in offered:
        known = ", ".join(sorted(set(offered)))
        raise InvalidRequest(f"request {record.id} does not offer {kind!r}; it offers {known}")
    return PermissionAnswer(
        kind=kind,
        option=option,
        message=request.message,
        interrupt=request.answer == "cancel",
    )


def _option(record: Record, kind: OptionKind, shown: str) -> str:
    """Return the id of the option that is meant; empty if its kind says enough."""
    alike = {escape_line(each.id): each for each in record.options if each.kind == kind}
    if shown and shown not in alike:
        raise InvalidRequest(
            f"request {record.id} has no option {shorten(escape_line(shown))!r} of kind {kind!r}; "
            f"it has {_named(alike)}"
        )
    if not shown and len(alike) > 1 and kind != "deny":
        raise InvalidRequest(
            f"request {record.id} has {len(alike)} options of kind {kind!r}: "
            f"choose one with option; it has {_named(alike)}"
        )
    return alike[shown].id if shown else ""


def _named(names: Iterable[str]) -> str:
    return ", ".join(repr(shorten(each)) for each in list(names)[:MAX_SHOWN]) or "none"


# Questions.


def questions_in(document: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions of an input, in their order; what is no question is left out."""
    found = document.get("questions")
    return tuple(
        Question(
            text=each["question"],
            labels=tuple(_labels(each.get("options"))),
            several=each.get("multiSelect") is True,
        )
        for each in (found if isinstance(found, list) else [])
        if isinstance(each, dict) and isinstance(each.get("question"), str)
    )


def _labels(options: object) -> list[str]:
    return [
        each["label"]
        for each in (options if isinstance(options, list) else [])
        if isinstance(each, dict) and isinstance(each.get("label"), str)
    ]


def _answers(record: Record, values: Mapping[str, Any]) -> dict[str, list[str]]:
    questions = questions_in(record.input or {})
    by_shown = {escape_text(each.text): each for each in questions}
    for given in values:
        if given not in by_shown:
            raise InvalidRequest(
                f"request {record.id} has no question {shorten(escape_line(given))!r}; "
                f"it asks {_named(by_shown)}"
            )
    answers = {}
    for shown, question in by_shown.items():
        if shown not in values:
            raise InvalidRequest(
                f"request {record.id}: question {shorten(shown)!r} has no answer in values"
            )
        answers[question.text] = _chosen(record, shown, question, values[shown])
    return answers


def _chosen(record: Record, shown: str, question: Question, given: Any) -> list[str]:
    labels: Any = [given] if isinstance(given, str) else given
    where = f"request {record.id}: question {shorten(shown)!r}"
    if not (isinstance(labels, list) and labels and all(map(_is_text, labels))):
        raise InvalidRequest(f"{where} takes a label, or a list of labels")
    if len(labels) > 1 and not question.several:
        raise InvalidRequest(f"{where} takes one label, not {len(labels)}")
    if sum(map(len, labels)) > MAX_VALUES_CHARS:
        raise InvalidRequest(f"{where} takes at most {MAX_VALUES_CHARS} characters")
    raw = {escape_text(each): each for each in question.labels}
    chosen: list[str] = labels
    return [raw.get(each, each) for each in chosen]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_utf8(value)


# Forms.


def _elicitation(record: Record, request: AnswerRequest) -> ElicitationAnswer:
    match request.answer:
        case "deny":
            return ElicitationAnswer(action="decline")
        case "cancel":
            return ElicitationAnswer(action="cancel")
        case "allow":
            return ElicitationAnswer(action="accept", content=_content(record, request.values))


def schema_in(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a form in an input; empty if it has none."""
    for name in ("requestedSchema", "requested_schema", "schema"):
        found = document.get(name)
        if isinstance(found, dict):
            return found
    return document if isinstance(document.get("properties"), dict) else {}


def _content(record: Record, values: Mapping[str, Any]) -> dict[str, Any]:
    schema = schema_in(record.input or {})
    fields = schema.get("properties")
    fields = fields if isinstance(fields, dict) else {}
    by_shown = {escape_text(each): each for each in fields}
    content = {}
    for name, value in values.items():
        if name not in by_shown:
            raise InvalidRequest(
                f"request {record.id} has no field {shorten(escape_line(name))!r}; "
                f"it has {_named(by_shown)}"
            )
        rule = fields[by_shown[name]]
        _check_value(record, name, value, rule if isinstance(rule, dict) else {})
        content[by_shown[name]] = value
    required = schema.get("required")
    for each in required if isinstance(required, list) else []:
        if isinstance(each, str) and each not in content:
            raise InvalidRequest(
                f"request {record.id}: field {shorten(escape_line(each))!r} has no value in values"
            )
    return content


def _check_value(record: Record, name: str, value: Any, rule: Mapping[str, Any]) -> None:
    kind, allowed = rule.get("type"), rule.get("enum")
    where = f"request {record.id}: field {shorten(name)!r}"
    is_flag = isinstance(value, bool)
    fits = {
        "string": _is_text(value) and len(value) <= MAX_VALUES_CHARS,
        "boolean": is_flag,
        "integer": isinstance(value, int) and not is_flag,
        "number": isinstance(value, int | float) and not is_flag,
        "array": isinstance(value, list) and all(map(_is_text, value)),
    }
    if isinstance(kind, str) and not fits.get(kind, False):
        raise InvalidRequest(f"{where} takes a value of type {shorten(kind)}")
    if not isinstance(kind, str) and not any(fits.values()):
        raise InvalidRequest(f"{where} takes a text, a number, true or false, or a list of texts")
    if isinstance(allowed, list) and value not in allowed:
        known = ", ".join(escape_line(shorten(repr(each))) for each in allowed[:MAX_SHOWN])
        raise InvalidRequest(f"{where} takes one of {known}")

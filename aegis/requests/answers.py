"""Answers: the right to give one, the check against its request, and the replies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

import attrs

from aegis.errors import Forbidden, InvalidRequest
from aegis.names import shorten
from aegis.path_text import is_utf8
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    OptionKind,
    PermissionAnswer,
    QuestionAnswer,
    RequestAnswer,
)
from aegis.protocol.requests import (
    MAX_VALUES_CHARS,
    PLAN,
    Answerer,
    AnswerRequest,
    OpenedRequest,
    PersonAnswer,
    RequestReply,
    is_plan,
)
from aegis.requests.records import Record
from aegis.shown_text import escape_line, escape_text

MAX_PLAN_CHARS = 64 * 1024
"""The length of an edited plan."""

MAX_SHOWN = 5
"""The number of names that an error sentence lists."""


@attrs.frozen(kw_only=True)
class AgentQuestion:
    """One question of an agent; ``labels`` are the answers that it offers."""

    text: str
    labels: tuple[str, ...]
    several: bool


# Rights.


def check_right(record: Record, request: AnswerRequest, by: Answerer | None) -> None:
    """Raise ``Forbidden`` unless ``by`` (None: the operator) may give this answer."""
    approves = request.answer == "allow" and not isinstance(request, PersonAnswer)
    if approves and is_plan(record.kind, record.tool_kind, record.needs_person):
        raise Forbidden(
            f"request {record.id} is a plan, which only a person approves: aegis-actors request "
            f"show {record.id}"
        )
    if by is None:
        return
    if by.owns(record.session, record.handle):
        raise Forbidden(
            f"request {record.id} is your own, {by.handle!r}: a person answers it; wait for that"
        )
    if record.session is not None and record.session in by.ancestors:
        raise Forbidden(
            f"request {record.id} is of {record.handle!r}, which spawned you, {by.handle!r}: "
            "a person answers it"
        )
    if not by.answers_requests:
        raise Forbidden(
            f"{by.handle!r} may not answer requests: a person does, or an agent whose profile has "
            "answers_requests: true"
        )
    if record.needs_person and request.answer == "allow":
        raise Forbidden(f"request {record.id} can only be allowed by a person")


def may_see(record: Record, by: Answerer | None) -> bool:
    """Return whether ``by`` (None: the operator) may see the request."""
    return by is None or by.may_see(record.session, record.handle)


# Fitting.


def check_digest(record: Record, digest: str) -> None:
    """Raise ``InvalidRequest`` if an answer was given to something else than this request."""
    if digest != record.digest:
        raise InvalidRequest(
            f"digest {shorten(digest, 12)!r} is not that of request {record.id}, a {record.kind} "
            f"of {record.handle!r} for tool {record.tool!r}: look at it again with "
            "aegis_request_list, and answer with its digest"
        )


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
    edits = record.takes_edit and set(request.values) == {PLAN}
    if request.values and ((record.kind == "permission" and not edits) or not allows):
        raise InvalidRequest(
            f"request {record.id} takes no values: they belong to answer 'allow' of a question or "
            f"a form{_instead_of_an_edit(record)}"
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


def _instead_of_an_edit(record: Record) -> str:
    if not is_plan(record.kind, record.tool_kind, record.needs_person):
        return ""
    able = "only `plan`, its edited text" if record.takes_edit else "no edited plan"
    return f"; this agent takes {able}: deny it with a message"


def _edited_plan(record: Record, values: Mapping[str, Any]) -> str:
    text = values.get(PLAN, "")
    if PLAN in values and not (_is_text(text) and text.strip() and len(text) <= MAX_PLAN_CHARS):
        raise InvalidRequest(
            f"request {record.id}: an edited plan is a text of at most {MAX_PLAN_CHARS} characters"
        )
    edited: str = text
    return edited


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
        plan=_edited_plan(record, request.values),
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


def questions_in(document: Mapping[str, Any]) -> tuple[AgentQuestion, ...]:
    """Return the questions of an input, in their order; what is no question is left out."""
    found = document.get("questions")
    return tuple(
        AgentQuestion(
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


def _chosen(record: Record, shown: str, question: AgentQuestion, given: Any) -> list[str]:
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


# Replies to owners and answerers.


def opened(record: Record) -> OpenedRequest:
    """Return the reply to the owner of an opened request."""
    return OpenedRequest(id=record.id, digest=record.digest, state=record.state)


def opened_before(entry: Mapping[str, Any]) -> OpenedRequest:
    """Return the reply to the owner of an answered request that is in the archive."""
    return OpenedRequest(id=entry["id"], digest=entry["digest"], state="answered")


def unknown(request_id: str) -> RequestReply:
    """Return the reply to an answer to no known request."""
    return RequestReply(
        id=request_id,
        outcome="unknown",
        text=f"there is no request {request_id}; aegis_request_list lists them",
        by=None,
        at=None,
    )


def acted(record: Record) -> RequestReply:
    """Return the reply to the answer that won and has acted."""
    return RequestReply(
        id=record.id,
        outcome="applied",
        text=f"request {record.id} of {record.handle!r} was answered: {answer_text(record)}",
        by=record.by,
        at=record.answered,
    )


def settled(record: Record) -> RequestReply:
    """Return the reply to an answer to a request that is no longer open."""
    if record.phase == "withdrawn":
        return RequestReply(
            id=record.id,
            outcome="withdrawn",
            text=f"request {record.id} of {record.handle!r} was withdrawn: {record.withdrawn}",
            by=None,
            at=None,
        )
    return RequestReply(
        id=record.id,
        outcome="already_answered",
        text=f"request {record.id} of {record.handle!r} was answered by {record.by} at "
        f"{record.answered}: {answer_text(record)}",
        by=record.by,
        at=record.answered,
    )


def settled_before(request_id: str, entry: Mapping[str, Any]) -> RequestReply:
    """Return the reply to an answer to a request of which only an entry of the index is left."""
    is_answered = entry["end"] == "answered"
    by, at = (entry["by"], entry["at"]) if is_answered else (None, None)
    outcome = f"was answered by {by} at {at}" if is_answered else "was withdrawn"
    return RequestReply(
        id=request_id,
        outcome="already_answered" if is_answered else "withdrawn",
        text=f"request {request_id} {outcome}, and the archive has it no more",
        by=by,
        at=at,
    )


def answer_text(record: Record) -> str:
    """Return the answer of a request in a few words."""
    return words_of(record.answer)


def words_of(answer: RequestAnswer | None) -> str:
    """Return an answer in a few words."""
    match answer:
        case PermissionAnswer(kind=kind, interrupt=interrupt):
            return f"{kind.replace('_', ' ')}{' and end the turn' if interrupt else ''}"
        case QuestionAnswer(answers=answers):
            return "declined" if answers is None else "answered"
        case ElicitationAnswer(action=action):
            return action
        case None:
            return "not answered"
    assert_never(answer)

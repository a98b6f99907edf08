"""Requests of Claude Code to a person, and the responses that carry the answers. Pure.

An answer never changes files of the person: rules that a suggestion would store in settings are
limited to the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from aegis.agents.drivers.claude.frames import (
    PLAN_TOOL,
    QUESTION_TOOL,
    items,
    kind_of,
    mapping,
    name,
    text,
)
from aegis.agents.drivers.harness import APPROVE, APPROVE_EDITS, KEEP_PLANNING, Frame
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    PermissionAnswer,
    QuestionAnswer,
    RequestAnswer,
    RequestOpened,
    RequestOption,
)
from aegis.protocol.requests import PLAN, plan_text

MAX_RULES = 20
"""Rules of one answer; a suggestion with more is not offered."""

EDITS: Frame = {"toolName": "Edit", "ruleContent": "/**"}
"""The rule that allows every tool that edits files, below the working directory."""

DECLINED = "The person declined to answer."
DENIED = "The person denied this."

Mode = Literal["form", "url"]


@attrs.frozen(kw_only=True)
class ClaudeRequest:
    """A request of the agent.

    ``rules`` are the rules of an answer for the session; ``questions`` maps the text of each
    question to whether several labels may answer it. ``outlives_turn``: it is not withdrawn at the
    end of the turn, for a subagent in the background can have made it.
    """

    event: RequestOpened
    rules: list[Frame] = attrs.field(factory=list)
    questions: Mapping[str, bool] = attrs.field(factory=dict)
    mode: Mode = "form"
    outlives_turn: bool = False


@attrs.frozen
class Unusable:
    """A request that nobody can answer; ``reason`` is for the agent."""

    reason: str


def asked(key: str, request: Frame) -> ClaudeRequest | Unusable | None:
    """Return the request of a control frame; None if it must not be answered."""
    match request.get("subtype"):
        case "can_use_tool" if request.get("tool_name") == QUESTION_TOOL:
            return _questions(key, request)
        case "can_use_tool" if request.get("tool_name") == PLAN_TOOL:
            return _plan(key, request)
        case "can_use_tool":
            return _permission(key, request)
        case "elicitation":
            return _elicitation(key, request)
    return None


def response(asked: ClaudeRequest, answer: RequestAnswer) -> Frame | str:
    """Return the response that carries an answer, or one sentence why the answer does not fit."""
    match asked.event.kind, answer:
        case _, PermissionAnswer(kind="deny") if asked.event.kind != "elicitation":
            return _denial(answer)
        case "permission", PermissionAnswer() if is_plan(asked):
            return _approval(asked, answer)
        case "permission", PermissionAnswer():
            return _allowance(asked, answer)
        case "question", QuestionAnswer():
            return _answers(asked, answer)
        case "elicitation", ElicitationAnswer():
            return _form(asked, answer)
    kind, given = asked.event.kind, type(answer).__name__
    return f"request {asked.event.id!r} is of the kind {kind!r}, which {given} does not answer"


# Permissions.


def _permission(key: str, request: Frame) -> ClaudeRequest | Unusable:
    tool, given = name(request.get("tool_name")), request.get("input")
    if not tool or not isinstance(given, dict):
        return Unusable("the permission request names no tool or has no input")
    rules = [] if request.get("suppress_always_allow_rule") else _session_rules(tool, request)
    event = RequestOpened(
        id=key,
        kind="permission",
        tool=tool,
        tool_kind=kind_of(tool),
        tool_use=name(request.get("tool_use_id")),
        title=name(request.get("title")) or name(request.get("display_name")) or tool,
        reason=_reason(request),
        input=given,
        options=_options(rules),
        needs_person=bool(request.get("requires_user_interaction")),
        default_to_no=bool(request.get("default_to_no")),
        no_session_scope=not rules,
    )
    return ClaudeRequest(event=event, rules=rules, outlives_turn=bool(request.get("agent_id")))


def _reason(request: Frame) -> str:
    path = text(request.get("blocked_path"))
    return text(request.get("decision_reason")) or (f"path: {path}" if path else "")


def _options(rules: list[Frame]) -> list[RequestOption]:
    session = f"Allow {_rules_text(rules)} for this session"
    options = [RequestOption(id="allow_once", name="Allow once", kind="allow_once")]
    if rules:
        options.append(RequestOption(id="allow_session", name=session, kind="allow_session"))
    return [*options, RequestOption(id="deny", name="Deny", kind="deny")]


def _rules_text(rules: list[Frame]) -> str:
    if rules == [EDITS]:
        return "edits in the working directory"
    return ", ".join(
        f"{each['toolName']}({each['ruleContent']})" if "ruleContent" in each else each["toolName"]
        for each in rules
    )


def _session_rules(tool: str, request: Frame) -> list[Frame]:
    """Return the rules that an answer for the session adds; none: it cannot be given.

    The suggested mode "acceptEdits" becomes a rule for edits in the working directory: the mode
    would let shell commands that change files run unasked too.
    """
    suggested = [mapping(each) for each in items(request.get("permission_suggestions"))]
    adding = [each for each in suggested if each.get("type") == "addRules"]
    allowing = [each for each in adding if each.get("behavior") == "allow"]
    rules = [_rule(rule) for each in allowing for rule in items(each.get("rules"))]
    # One that cannot be read could be narrower than the rest: then none is offered.
    found = [each for each in rules if each is not None]
    if len(found) < len(rules) or len(rules) > MAX_RULES:
        return []
    modes = [each.get("mode") for each in suggested if each.get("type") == "setMode"]
    inside = kind_of(tool) == "edit" and not request.get("blocked_path")
    return [EDITS] if not found and inside and "acceptEdits" in modes else found


def _rule(value: object) -> Frame | None:
    rule = mapping(value)
    tool, content = name(rule.get("toolName")), rule.get("ruleContent")
    if not tool:
        return None
    if content is None:
        return {"toolName": tool}
    return {"toolName": tool, "ruleContent": content} if name(content) else None


def _allowance(asked: ClaudeRequest, answer: PermissionAnswer) -> Frame | str:
    allowed: dict[str, Any] = {"behavior": "allow", "updatedInput": asked.event.input}
    if answer.kind == "allow_once":
        return allowed
    if answer.kind == "allow_session" and asked.rules:
        added = {"type": "addRules", "rules": asked.rules, "behavior": "allow"}
        return {**allowed, "updatedPermissions": [{**added, "destination": "session"}]}
    offered = ", ".join(each.kind for each in asked.event.options)
    return f"request {asked.event.id!r} does not offer {answer.kind!r}; it offers: {offered}"


def _denial(answer: PermissionAnswer) -> Frame:
    denied: dict[str, Any] = {"behavior": "deny", "message": answer.message or DENIED}
    return {**denied, "interrupt": True} if answer.interrupt else denied


# Plans.


PLAN_OPTIONS = (
    RequestOption(id="approve", name=APPROVE, kind="allow_once"),
    RequestOption(id="approve_edits", name=APPROVE_EDITS, kind="allow_session"),
    RequestOption(id="keep_planning", name=KEEP_PLANNING, kind="deny"),
)


def _plan(key: str, request: Frame) -> ClaudeRequest | Unusable:
    # Nothing else of its input is approved with it: versions of the tool take rules for Bash there.
    given = {PLAN: "", **mapping(request.get("input"))}
    given = {each: given[each] for each in (PLAN, "planFilePath") if each in given}
    if not plan_text("plan", given).strip():
        return Unusable("the plan is empty: write it, then ask for its approval again")
    event = RequestOpened(
        id=key,
        kind="permission",
        tool=PLAN_TOOL,
        tool_kind="plan",
        tool_use=name(request.get("tool_use_id")),
        title="The plan",
        reason=_reason(request),
        input=given,
        options=[*PLAN_OPTIONS],
        needs_person=True,
        takes_edit=True,
    )
    return ClaudeRequest(event=event, outlives_turn=bool(request.get("agent_id")))


def is_plan(asked: ClaudeRequest) -> bool:
    """Return whether a request is for the approval of a plan."""
    return asked.event.tool == PLAN_TOOL


def _approval(asked: ClaudeRequest, answer: PermissionAnswer) -> Frame:
    # Its own mode for edits would run shell commands that change files unasked: our policy answers.
    edited = {PLAN: answer.plan} if answer.plan else {}
    return {"behavior": "allow", "updatedInput": {**asked.event.input, **edited}}


# Questions.


def _questions(key: str, request: Frame) -> ClaudeRequest | Unusable:
    given = mapping(request.get("input"))
    questions = [mapping(each) for each in items(given.get("questions"))]
    by_text = {text(each.get("question")): each.get("multiSelect") is True for each in questions}
    if not questions or "" in by_text or len(by_text) < len(questions):
        return Unusable("each question needs a text of its own")
    event = RequestOpened(
        id=key,
        kind="question",
        tool=QUESTION_TOOL,
        tool_use=name(request.get("tool_use_id")),
        title=next(iter(by_text)),
        reason=_reason(request),
        input=given,
        needs_person=True,
        default_to_no=bool(request.get("default_to_no")),
        no_session_scope=True,
    )
    return ClaudeRequest(
        event=event, questions=by_text, outlives_turn=bool(request.get("agent_id"))
    )


def _answers(asked: ClaudeRequest, answer: QuestionAnswer) -> Frame | str:
    if answer.answers is None:
        return {"behavior": "deny", "message": DECLINED}
    key, questions = asked.event.id, asked.questions
    missing = [each for each in questions if not answer.answers.get(each)]
    if missing:
        return f"request {key!r} needs an answer to each question; none is given to {missing[0]!r}"
    for question, labels in answer.answers.items():
        if question not in questions:
            return f"request {key!r} has no question {question!r}"
        if len(labels) > 1 and not questions[question]:
            return f"request {key!r} takes one answer to {question!r}; {len(labels)} were given"
    joined = {question: ", ".join(labels) for question, labels in answer.answers.items()}
    return {"behavior": "allow", "updatedInput": {**asked.event.input, "answers": joined}}


# Elicitations.


def _elicitation(key: str, request: Frame) -> ClaudeRequest | Unusable:
    schema, url = request.get("requested_schema"), request.get("url")
    given: Frame
    mode: Mode
    match request.get("mode", "form"):
        case "form" if isinstance(schema, dict):
            mode, given = "form", {"mode": "form", "schema": schema}
        case "url" if isinstance(url, str) and url:
            mode, given = "url", {"mode": "url", "url": url}
        case _:
            return Unusable("the elicitation has neither a form nor a URL")
    event = RequestOpened(
        id=key,
        kind="elicitation",
        tool=name(request.get("mcp_server_name")),
        title=text(request.get("message")),
        input=given,
        needs_person=True,
        no_session_scope=True,
    )
    # An elicitation does not say whether a subagent's call is the cause. The process withdraws it.
    return ClaudeRequest(event=event, mode=mode, outlives_turn=True)


def _form(asked: ClaudeRequest, answer: ElicitationAnswer) -> Frame | str:
    wanted = asked.mode == "form" and answer.action == "accept"
    if wanted and answer.content is None:
        return f"request {asked.event.id!r} is a form: accept it with its content, or decline it"
    if not wanted and answer.content is not None:
        return f"request {asked.event.id!r} takes content only with the acceptance of a form"
    return {"action": answer.action, **({"content": answer.content} if wanted else {})}

"""``session/request_permission``: the request that a person sees, and the outcome. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from aegis.agents.drivers.acp.frames import items, mapping, string
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.acp.runs import diffs_in, is_shown
from aegis.agents.drivers.acp.updates import KINDS, content_text
from aegis.agents.drivers.harness import APPROVE, APPROVE_EDITS, OrderRefused
from aegis.protocol.agent_events import (
    OptionKind,
    PermissionAnswer,
    RequestOpened,
    RequestOption,
    ToolKind,
    ToolUse,
)
from aegis.protocol.requests import PLAN, plan_text

MAX_OPTIONS = 32

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}

_KINDS: dict[str, OptionKind] = {
    "allow_once": "allow_once",
    "allow_always": "allow_session",
    "reject_once": "deny",
    "reject_always": "deny_session",
}

_PREFERRED: dict[OptionKind, tuple[OptionKind, ...]] = {
    "allow_once": ("allow_once",),  # never an option that allows more than was answered
    "allow_session": ("allow_session",),
    "deny": ("deny", "deny_session"),
    "deny_session": ("deny_session", "deny"),
}
"""The kinds of option that fit an answer, the best first."""


SWITCH = "switch_mode"
"""The kind of a tool call that changes the agent's mode, such as one that shows its plan."""


def permission_request(
    key: str, params: dict[str, Any], known: ToolUse | None, facts: AcpOptions
) -> RequestOpened:
    """Return the request of a permission. ``known`` is its tool call, described before.

    Options that lead to a mode in which the agent asks less are left out.
    """
    call = mapping(params.get("toolCall"))
    use = known or ToolUse(id=string(call.get("toolCallId")), name="")
    every = _options(params.get("options"), None)
    # An update of a call need not repeat its kind.
    has_plan_option = bool(facts.plan_option) and facts.plan_option in [each.id for each in every]
    if has_plan_option or string(call.get("kind")) == SWITCH:
        return _plan_request(key, call, use, every, facts)
    named = KINDS.get(string(call.get("kind")), use.kind)
    shown = _input(call, use)
    tool_kind = _kind(named, call, use, shown)
    lasts = () if facts.edits_by_mode and "edit" in (named, tool_kind) else facts.session_options
    options = _options(params.get("options"), lasts)
    return RequestOpened(
        id=key,
        kind="permission",
        tool=use.name,
        tool_kind=tool_kind,
        tool_use=use.id,
        title=string(call.get("title")) or use.title,
        input=shown,
        options=options,
        no_session_scope=not any(each.kind == "allow_session" for each in options),
        takes_reason=False,
    )


def _plan_request(
    key: str, call: dict[str, Any], use: ToolUse, offered: list[RequestOption], facts: AcpOptions
) -> RequestOpened:
    """Return the request to approve a plan.

    Of the options that allow, only the one that leads to the asking mode is offered, also for edits
    of files: the policy of the session approves these.
    """
    approving = [each for each in offered if each.id == facts.plan_option and facts.plan_option]
    edits = [attrs.evolve(each, name=APPROVE_EDITS, kind="allow_session") for each in approving[:1]]
    once = [attrs.evolve(each, name=APPROVE, kind="allow_once") for each in approving[:1]]
    refusing = [each for each in offered if each.kind.startswith("deny")]
    given = _given(call, use) or _input(call, use)
    plan = plan_text("plan", given) or content_text(call.get("content"))
    return RequestOpened(
        id=key,
        kind="permission",
        tool=use.name,
        tool_kind="plan",
        tool_use=use.id,
        title=string(call.get("title")) or use.title,
        input={**given, PLAN: plan} if plan else given,
        # Without a text there is nothing to approve.
        options=[*once, *edits, *refusing] if plan else refusing,
        needs_person=True,
        no_session_scope=not (edits and plan),
        takes_reason=False,
    )


def _input(call: dict[str, Any], use: ToolUse) -> dict[str, Any]:
    """Return the raw input with the changes that it lacks; without one all that the agent shows.

    gemini and kimi send no ``rawInput``, and an answer must cover more than the title.
    """
    if given := _given(call, use):
        lacking = [each for each in diffs_in(call) if not _is_shown(each, given)]
        if not lacking:
            return given
        return {**({"value": given} if "content" in given else given), "content": lacking}
    raw = call.get("rawInput")
    shown = {name: call[name] for name in ("title", "content", "locations") if call.get(name)}
    return shown if raw is None or raw == {} else {"value": raw, **shown}


def _is_shown(diff: dict[str, Any], given: dict[str, Any]) -> bool:
    # claude-agent-acp shows the changed part of a file as its new text.
    return is_shown(diff, given) or ("old_string" in given and is_shown(diff, given, "new_string"))


def _given(call: dict[str, Any], use: ToolUse) -> dict[str, Any]:
    """Return the input that the agent gave, now or before."""
    return mapping(call.get("rawInput")) or use.input


_READS: tuple[ToolKind, ...] = ("read", "search", "think")


def _kind(named: ToolKind, call: dict[str, Any], use: ToolUse, shown: dict[str, Any]) -> ToolKind:
    """Return the kind of a call: the agent's own, unless the call carries a command or a change.

    An unknown kind stays one, which a person is asked about.
    """
    if named not in ("execute", "other") and _given(call, use).get("command"):
        return "execute"
    if named in _READS and (diffs_in(call) or diffs_in(shown)):
        return "edit"
    return named


def _options(options: object, session_options: Sequence[str] | None) -> list[RequestOption]:
    found = []
    for each in map(mapping, items(options, MAX_OPTIONS)):
        kind = _KINDS.get(string(each.get("kind")))
        id_ = string(each.get("optionId"))
        if kind is None or "optionId" not in each or not isinstance(each["optionId"], str):
            continue
        if kind == "allow_session" and session_options is not None and id_ not in session_options:
            continue  # its effect outlives the session
        found.append(RequestOption(id=id_, name=string(each.get("name")), kind=kind))
    return found


def permission_result(
    opened: RequestOpened, answer: PermissionAnswer, session_options: Sequence[str] | None
) -> dict[str, Any] | OrderRefused:
    """Return the outcome that an answer chooses, by the kind of an option."""
    for kind in _PREFERRED[answer.kind]:
        fitting = {each.id: None for each in opened.options if each.kind == kind}
        if answer.option:
            fitting = {each: None for each in fitting if each == answer.option}
        elif kind == "allow_session":
            fitting = _narrowest(fitting, session_options)
        if len(fitting) > 1 and kind in ("allow_once", "allow_session"):
            return OrderRefused(_several(opened, kind, fitting))
        if fitting:
            return {"outcome": {"outcome": "selected", "optionId": next(iter(fitting))}}
    if answer.kind in ("deny", "deny_session"):
        return CANCELLED
    return OrderRefused(_missing(opened, answer))


def _narrowest(fitting: dict[str, None], session_options: Sequence[str] | None) -> dict[str, None]:
    ordered = [each for each in session_options or () if each in fitting]
    return {ordered[0]: None} if ordered else fitting


def _several(opened: RequestOpened, kind: OptionKind, fitting: dict[str, None]) -> str:
    names = ", ".join(repr(each) for each in fitting)
    return f"request {opened.id!r} has several options of the kind {kind!r}: name one of {names}"


def _missing(opened: RequestOpened, answer: PermissionAnswer) -> str:
    offered = ", ".join(repr(each.kind) for each in opened.options) or "none"
    wanted = f" with the id {answer.option!r}" if answer.option else ""
    return (
        f"request {opened.id!r} has no option of the kind {answer.kind!r}{wanted}; "
        f"it has {offered}: answer with one of these, or deny it"
    )

"""Permissions: the request that is shown, and the option that an answer picks."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    OptionKind,
    PermissionAnswer,
    QuestionAnswer,
    ToolUse,
)
from tests.aegis.agents.drivers.acp.player import names, steps_of
from tests.aegis.agents.drivers.acp.summary import OPTIONS
from tests.aegis.agents.drivers.acp.wire import (
    PERMISSION_OPTIONS,
    Wire,
    events,
    frames,
    ready,
    refusals,
)

CANCELLED = {"outcome": {"outcome": "cancelled"}}


def chosen(wire: Wire, key: str, answer: PermissionAnswer) -> str:
    """Answer, and return the picked option, "cancelled", or the refusal."""
    outputs = wire.machine.answer(key, answer)
    if refusals(outputs):
        assert frames(outputs) == []
        return f"refused: {refusals(outputs)[0]}"
    (frame,) = frames(outputs)
    outcome = frame["result"]["outcome"]
    return str(outcome.get("optionId", outcome["outcome"]))


def options_of(agent: str) -> list[dict[str, Any]]:
    """Return the options of the first shell permission that was recorded."""
    found = [
        each.frame["params"]["options"]
        for each in steps_of(f"acp_{agent}_permission")
        if each.frame.get("method") == "session/request_permission"
    ]
    return list(found[0])


@pytest.mark.parametrize(
    ("agent", "answers"),
    [
        # allow once, allow for the session, deny, deny for the session
        ("claude", ("allow-once", "refused", "reject", "reject")),
        ("codex", ("allow_once", "refused", "cancel", "cancel")),
        ("gemini", ("proceed_once", "proceed_always", "cancel", "cancel")),
        ("opencode", ("once", "always", "reject", "reject")),
        ("kimi", ("approve", "approve_for_session", "reject", "reject")),
    ],
)
def test_an_answer_picks_the_option_of_its_kind(agent: str, answers: tuple[str, ...]) -> None:
    kinds: tuple[OptionKind, ...] = ("allow_once", "allow_session", "deny", "deny_session")
    for kind, expected in zip(kinds, answers, strict=True):
        for options in (options_of(agent), options_of(agent)[::-1]):
            wire = ready(agent)
            wire.turn()
            request = wire.ask(0, options=options)
            found = chosen(wire, request.id, PermissionAnswer(kind=kind))
            assert found.split(":")[0] == expected


@pytest.mark.parametrize(
    ("kinds", "kind", "expected"),
    [
        (["reject_always", "allow_once"], "deny", "0"),
        (["reject_once", "allow_once"], "deny_session", "0"),
        (["reject_once", "reject_always"], "deny_session", "1"),
        (["allow_once"], "deny", "cancelled"),
        ([], "deny", "cancelled"),
        (["allow_always"], "deny_session", "cancelled"),
        (["allow_always"], "allow_once", "refused"),
        (["allow_once"], "allow_session", "refused"),
        ([], "allow_once", "refused"),
        (["unheard_of"], "allow_once", "refused"),
        (["allow_once", "allow_once"], "allow_once", "refused"),
        (["allow_always", "allow_always"], "allow_session", "refused"),
        (["reject_once", "reject_once"], "deny", "0"),
    ],
)
def test_an_answer_never_allows_more_and_a_refusal_always_works(
    kinds: list[str], kind: OptionKind, expected: str
) -> None:
    wire = ready(options=AcpOptions())
    wire.turn()
    options = [{"optionId": str(i), "name": "x", "kind": each} for i, each in enumerate(kinds)]
    request = wire.ask(0, options=options)
    assert chosen(wire, request.id, PermissionAnswer(kind=kind)).split(":")[0] == expected


def test_a_refusal_names_the_options() -> None:
    wire = ready(options=AcpOptions())
    wire.turn()
    cases = [([], "none"), (["allow_always", "reject_once"], "'allow_session', 'deny'")]
    for id_, (kinds, shown) in enumerate(cases):
        options = [{"optionId": each, "name": "x", "kind": each} for each in kinds]
        request = wire.ask(id_, options=options)
        reason = chosen(wire, request.id, PermissionAnswer(kind="allow_once"))
        assert reason == (
            f"refused: request '{request.id}' has no option of the kind 'allow_once'; "
            f"it has {shown}: answer with one of these, or deny it"
        )


def test_an_option_is_named_where_several_have_the_kind() -> None:
    wire = ready(options=AcpOptions())
    wire.turn()
    options = [{"optionId": each, "name": each, "kind": "allow_always"} for each in ("all", "one")]
    request = wire.ask(0, options=options)
    refusal = chosen(wire, request.id, PermissionAnswer(kind="allow_session"))
    assert refusal.endswith("name one of 'all', 'one'")
    foreign = PermissionAnswer(kind="allow_session", option="other")
    assert chosen(wire, request.id, foreign).startswith("refused")
    named = PermissionAnswer(kind="allow_session", option="one")
    assert chosen(wire, request.id, named) == "one"


def test_the_narrowest_option_for_the_session_is_preferred() -> None:
    wire = ready("gemini")
    wire.turn()
    ids = ("proceed_always_server", "proceed_always_tool")
    options = [{"optionId": each, "name": each, "kind": "allow_always"} for each in ids]
    request = wire.ask(0, options=options)
    answer = PermissionAnswer(kind="allow_session")
    assert chosen(wire, request.id, answer) == "proceed_always_tool"


def test_an_option_that_outlives_the_session_is_not_offered() -> None:
    wire = ready("codex")
    wire.turn()
    request = wire.ask(0, options=options_of("codex"))
    assert [each.kind for each in request.options] == ["allow_once", "deny"]
    assert request.no_session_scope
    wire = ready("kimi")
    wire.turn()
    assert not wire.ask(0, options=options_of("kimi")).no_session_scope


def test_a_request_shows_the_call_that_was_described_before() -> None:
    wire = ready("codex")
    wire.turn()
    raw = {"server": "aegis", "tool": "aegis_term_run", "arguments": {"command": "ls"}}
    meta = {"is_mcp_tool_call": True}
    fields = {"toolCallId": "c1", "kind": "execute", "title": "mcp", "rawInput": raw, "_meta": meta}
    wire.update("tool_call", **fields)
    request = wire.ask(0, toolCall={"toolCallId": "c1", "kind": "execute"})
    assert request.tool == "mcp__aegis__aegis_term_run"
    assert (request.tool_kind, request.tool_use, request.title) == ("execute", "c1", "mcp")
    assert request.input == raw


def test_a_request_without_an_input_shows_all_that_it_has() -> None:
    wire = ready("gemini")
    wire.turn()
    content = [{"type": "diff", "path": "/w/a", "oldText": "a", "newText": "b"}]
    call = {"toolCallId": "c9", "title": "edit a", "content": content, "kind": "edit"}
    request = wire.ask(0, toolCall=call)
    assert request.input == {"title": "edit a", "content": content}
    assert request.tool_kind == "edit"


@pytest.mark.parametrize("kind", ["unheard_of", None, 3, ["execute"]])
def test_a_tool_of_another_kind_is_other(kind: object) -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0, toolCall={"toolCallId": "c1", "title": "x", "kind": kind})
    assert request.tool_kind == "other"


def test_a_call_is_announced_before_its_request_if_it_is_new() -> None:
    wire = ready("gemini")
    wire.turn()
    call = {"toolCallId": "c1", "title": "touch a", "rawInput": {"command": "touch a"}}
    params = {"toolCall": call, "options": PERMISSION_OPTIONS}
    outputs = wire.receive(id=0, method="session/request_permission", params=params)
    assert [each.tag for each in events(outputs)] == ["tool_use", "request_opened"]
    outputs = wire.receive(id=1, method="session/request_permission", params=params)
    assert [each.tag for each in events(outputs)] == ["request_opened"]
    assert [each.id for each in wire.events if isinstance(each, ToolUse)] == ["c1"]


def test_a_refusal_that_interrupts_cancels_the_turn() -> None:
    wire = ready()
    wire.turn()
    first, second = wire.ask(0), wire.ask(1)
    outputs = wire.machine.answer(first.id, PermissionAnswer(kind="deny", interrupt=True))
    written = frames(outputs)
    assert [each.get("method", each.get("id")) for each in written] == [0, "session/cancel", 1]
    assert written[2]["result"] == CANCELLED
    assert [each.tag for each in events(outputs)] == ["request_withdrawn"]
    assert refusals(wire.machine.answer(second.id, PermissionAnswer(kind="allow_once")))


def test_an_allowance_does_not_interrupt() -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    outputs = wire.machine.answer(request.id, PermissionAnswer(kind="allow_once", interrupt=True))
    assert len(frames(outputs)) == 1


@pytest.mark.parametrize(
    "answer", [QuestionAnswer(answers=None), ElicitationAnswer(action="accept")]
)
def test_an_answer_of_another_kind_is_refused(answer: Any) -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    (reason,) = refusals(wire.machine.answer(request.id, answer))
    assert reason == f"request '{request.id}' is of the kind 'permission': answer it as such"
    assert frames(wire.machine.answer(request.id, PermissionAnswer(kind="deny")))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"toolCall": None, "options": []},
        {"toolCall": {}, "options": {}},
        {"toolCall": [], "options": PERMISSION_OPTIONS},
    ],
)
def test_a_permission_of_wrong_types_is_refused_at_once(params: dict[str, Any]) -> None:
    wire = ready()
    wire.turn()
    outputs = wire.receive(id=0, method="session/request_permission", params=params)
    assert frames(outputs)[0]["error"]["code"] == -32602
    assert [each.tag for each in events(outputs)] == ["unknown"]


def test_options_of_wrong_types_are_left_out() -> None:
    wire = ready()
    wire.turn()
    wrong: list[Any] = [None, 3, {"kind": "allow_once"}, {"optionId": 4, "kind": "allow_once"}]
    request = wire.ask(0, options=[*wrong, [], {"optionId": "", "kind": "allow_once"}])
    assert [each.id for each in request.options] == [""]
    assert chosen(wire, request.id, PermissionAnswer(kind="allow_once")) == ""


def test_the_options_of_all_recordings_are_of_known_kinds() -> None:
    for name in names():
        agent = name.split("_")[1]
        for each in steps_of(name):
            if each.frame.get("method") == "session/request_permission":
                wire = ready(agent, OPTIONS[agent])
                wire.turn()
                options = each.frame["params"]["options"]
                assert wire.ask(0, options=options).options


PLAN_OPTIONS = [
    {"optionId": "exit-plan-default", "name": "Yes, manually", "kind": "allow_once"},
    {"optionId": "exit-plan-clear-auto", "name": "Yes, clear", "kind": "allow_always"},
    {"optionId": "exit-plan-auto", "name": "Yes, auto", "kind": "allow_once"},
    {"optionId": "exit-plan-bypass", "name": "Yes, bypass", "kind": "allow_always"},
    {"optionId": "reject", "name": "No, keep planning", "kind": "reject_once"},
]
PLANNING = AcpOptions(plan_mode="plan", plan_option="exit-plan-default", session_options=())


def plan_call(**fields: Any) -> dict[str, Any]:
    text = {"type": "content", "content": {"type": "text", "text": "# Plan"}}
    call = {"toolCallId": "c1", "title": "Approve Plan", "kind": "switch_mode", "content": [text]}
    return {**call, **fields}


@pytest.mark.parametrize("given", [{"plan": "# Plan", "planFilePath": "/p.md"}, {}, None])
def test_a_plan_is_shown_as_text_and_leads_only_to_the_asking_mode(given: object) -> None:
    wire = ready(options=PLANNING)
    wire.turn()
    request = wire.ask(0, toolCall=plan_call(rawInput=given), options=PLAN_OPTIONS)
    assert (request.kind, request.tool_kind, request.needs_person) == ("permission", "plan", True)
    assert request.input["plan"] == "# Plan"
    assert [(each.id, each.kind) for each in request.options] == [
        ("exit-plan-default", "allow_once"),
        ("exit-plan-default", "allow_session"),
        ("reject", "deny"),
    ]


@pytest.mark.parametrize(
    ("kind", "picked"),
    [
        ("allow_once", "exit-plan-default"),
        ("allow_session", "exit-plan-default"),
        ("deny", "reject"),
    ],
)
def test_each_answer_to_a_plan_picks_a_harmless_option(kind: OptionKind, picked: str) -> None:
    wire = ready(options=PLANNING)
    wire.turn()
    request = wire.ask(0, toolCall=plan_call(), options=PLAN_OPTIONS)
    assert chosen(wire, request.id, PermissionAnswer(kind=kind)) == picked


@pytest.mark.parametrize("option", ["exit-plan-auto", "exit-plan-bypass", "exit-plan-clear-auto"])
def test_an_option_that_ends_all_asking_is_refused_by_its_name_too(option: str) -> None:
    wire = ready(options=PLANNING)
    wire.turn()
    request = wire.ask(0, toolCall=plan_call(), options=PLAN_OPTIONS)
    for kind in ("allow_once", "allow_session"):
        answer = PermissionAnswer(kind=kind, option=option)
        assert chosen(wire, request.id, answer).startswith("refused")


@pytest.mark.parametrize(
    ("options", "call"),
    [(AcpOptions(), plan_call()), (PLANNING, plan_call(content=[], title="/p.md"))],
)
def test_a_plan_without_a_text_or_a_known_option_can_only_be_denied(
    options: AcpOptions, call: dict[str, Any]
) -> None:
    wire = ready(options=options)
    wire.turn()
    request = wire.ask(0, toolCall=call, options=PLAN_OPTIONS)
    assert [each.kind for each in request.options] == ["deny"]
    assert request.no_session_scope


def test_edits_are_not_allowed_for_the_session_where_that_changes_the_mode() -> None:
    options = AcpOptions(session_options=("always",), edits_by_mode=True)
    wire = ready(options=options)
    wire.turn()
    edit = {"toolCallId": "c1", "title": "x", "kind": "edit"}
    assert "always" not in [each.id for each in wire.ask(0, toolCall=edit).options]
    run = {"toolCallId": "c2", "title": "x", "kind": "execute"}
    assert "always" in [each.id for each in wire.ask(1, toolCall=run).options]


def test_a_plan_is_known_by_its_options_where_its_kind_is_not_repeated() -> None:
    wire = ready(options=PLANNING)
    wire.turn()
    call = {name: each for name, each in plan_call().items() if name != "kind"}
    request = wire.ask(0, toolCall=call, options=PLAN_OPTIONS)
    assert (request.tool_kind, request.needs_person) == ("plan", True)
    assert {each.id for each in request.options} == {"exit-plan-default", "reject"}


def test_a_mode_that_gemini_reports_as_text_is_its_mode_and_no_message() -> None:
    wire = ready("gemini", options=AcpOptions(mode_mark="[MODE_UPDATE] "))
    wire.turn()
    chunk = {"type": "text", "text": "[MODE_UPDATE] yolo"}
    outputs = wire.update("agent_message_chunk", content=chunk)
    assert [type(each).__name__ for each in events(outputs)] == ["SystemInit"]
    [reset] = frames(outputs)
    assert (reset["method"], reset["params"]["modeId"]) == ("session/set_mode", "default")
    other = {"type": "text", "text": "[MODE_UPDATE] no mode of it"}
    said = wire.update("agent_message_chunk", content=other)
    assert [type(each).__name__ for each in events(said)] == ["AssistantText"]

"""Requests of Claude Code: what opens one, which answers fit it, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.claude.machine import MAX_CLOSED, MAX_OPEN, Claude
from aegis.agents.drivers.harness import AgentReady
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    PermissionAnswer,
    QuestionAnswer,
    RequestAnswer,
    RequestOpened,
    RequestWithdrawn,
    Unknown,
)
from tests.aegis.agents.drivers.claude.wire import (
    begins,
    control,
    events,
    initialized,
    permission,
    ready,
    refused,
    result,
    rules,
    written,
)

ONCE = PermissionAnswer(kind="allow_once")
SESSION = PermissionAnswer(kind="allow_session")
DENY = PermissionAnswer(kind="deny")
COLOUR = {"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}
SIZES = {"question": "Sizes?", "multiSelect": True, "options": [{"label": "S"}, {"label": "L"}]}
ASKED = {"questions": [COLOUR, SIZES]}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOUCH = {"toolName": "Bash", "ruleContent": "touch:*"}
MODE = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}

Json = dict[str, Any]


def question(**fields: Any) -> Json:
    asks = {"tool_name": "AskUserQuestion", "input": ASKED, "tool_use_id": "t1"}
    return control("r1", "can_use_tool", **{**asks, **fields})


def form(**fields: Any) -> Json:
    asks = {"mcp_server_name": "m", "message": "How many?", "mode": "form"}
    return control("r1", "elicitation", **{**asks, "requested_schema": SCHEMA, **fields})


def link() -> Json:
    fields = {"mcp_server_name": "m", "message": "Open", "mode": "url", "url": "http://h/x"}
    return control("r1", "elicitation", **fields)


def opened(frame: Json) -> RequestOpened:
    [event] = events(ready().receive(frame))
    assert isinstance(event, RequestOpened)
    return event


def answered(frame: Json, answer: RequestAnswer) -> Json:
    machine = ready()
    machine.receive(frame)
    [response] = written(machine.answer("r1", answer))
    assert response["type"] == "control_response"
    assert response["response"]["subtype"] == "success"
    assert response["response"]["request_id"] == "r1"
    body: Json = response["response"]["response"]
    return body


def refusal(frame: Json, answer: RequestAnswer) -> str:
    machine = ready()
    machine.receive(frame)
    [reason] = refused(machine.answer("r1", answer))
    # A refused answer leaves the request open.
    assert written(machine.answer("r1", fitting(frame)))
    return reason


def fitting(frame: Json) -> RequestAnswer:
    if frame["request"]["subtype"] == "elicitation":
        return ElicitationAnswer(action="decline")
    return DENY


# Opening.


def test_a_permission_shows_the_tool_its_input_and_why_it_is_asked() -> None:
    frame = permission(
        permission_suggestions=[rules(TOUCH)],
        display_name="Shell",
        decision_reason="outside the directory",
        tool_use_id="t1",
        requires_user_interaction=True,
        default_to_no=True,
    )
    event = opened(frame)
    assert (event.id, event.kind, event.tool, event.tool_kind) == (
        "r1",
        "permission",
        "Bash",
        "execute",
    )
    assert (event.title, event.reason, event.tool_use) == ("Shell", "outside the directory", "t1")
    assert event.input == {"command": "touch a"}
    assert event.needs_person
    assert event.default_to_no
    assert not event.no_session_scope
    offered = [(each.kind, each.name) for each in event.options]
    assert offered == [
        ("allow_once", "Allow once"),
        ("allow_session", "Allow Bash(touch:*) for this session"),
        ("deny", "Deny"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"permission_suggestions": []},
        {"permission_suggestions": [rules(TOUCH)], "suppress_always_allow_rule": True},
        {"permission_suggestions": [rules(TOUCH, behavior="deny")]},
        {"permission_suggestions": [rules(TOUCH, type="removeRules")]},
        {"permission_suggestions": [rules({"toolName": "Bash", "ruleContent": 1})]},
        {"permission_suggestions": [rules(TOUCH, {"ruleContent": "x"})]},
        {"permission_suggestions": [rules(*[TOUCH] * 21)]},
        {"permission_suggestions": [rules()]},
        {"permission_suggestions": [MODE]},
        {"permission_suggestions": "all"},
    ],
)
def test_without_a_usable_rule_no_answer_for_the_session_is_offered(fields: Json) -> None:
    event = opened(permission(**fields))
    assert [each.kind for each in event.options] == ["allow_once", "deny"]
    assert event.no_session_scope
    assert "offers: allow_once, deny" in refusal(permission(**fields), SESSION)


@pytest.mark.parametrize("mode", ["bypassPermissions", "auto", "dontAsk", "plan", 1])
def test_a_suggested_mode_in_which_nobody_is_asked_is_never_offered(mode: object) -> None:
    frame = permission(tool="Write", permission_suggestions=[{**MODE, "mode": mode}])
    assert opened(frame).no_session_scope


def test_a_path_that_blocks_the_tool_is_the_reason() -> None:
    assert opened(permission(blocked_path="/etc")).reason == "path: /etc"


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (form(), {"mode": "form", "schema": SCHEMA}),
        (link(), {"mode": "url", "url": "http://h/x"}),
        (question(), ASKED),
    ],
)
def test_questions_and_forms_show_what_is_to_be_answered(frame: Json, shown: Json) -> None:
    event = opened(frame)
    assert event.input == shown
    assert event.needs_person
    assert event.title in ("How many?", "Open", "Which?")


@pytest.mark.parametrize(
    "frame",
    [
        permission(input=None),
        permission(input="touch"),
        permission(tool=""),
        permission(tool="x" * 501),
        question(input={}),
        question(input={"questions": []}),
        question(input={"questions": [{"question": 1}]}),
        question(input={"questions": [COLOUR, COLOUR]}),
        form(requested_schema=None),
        form(mode="fax"),
        control("r1", "elicitation"),
    ],
)
def test_a_request_that_cannot_be_shown_whole_is_answered_with_an_error(frame: Json) -> None:
    machine = ready()
    outputs = machine.receive(frame)
    [response] = written(outputs)
    assert response["response"]["subtype"] == "error"
    assert response["response"]["error"]
    assert events(outputs) == [Unknown(kind="control_request/refused", raw=frame)]
    assert "already answered" in refused(machine.answer("r1", DENY))[0]


@pytest.mark.parametrize(
    "frame",
    [
        control("r1", "request_user_dialog", dialog_kind="x", payload={}),
        control("r1", "hook_callback", callback_id="x"),
        control("r1", "something_new"),
        control("r1", "elicitation") | {"request": None},
        permission(""),
        permission(0),
        permission(None),
        permission(["r1"]),
        permission("x" * 501),
    ],
)
def test_a_dialog_that_was_not_declared_and_one_without_an_id_are_not_answered(frame: Json) -> None:
    machine = ready()
    outputs = machine.receive(frame)
    assert [type(each) for each in events(outputs)] == [Unknown]
    assert written(outputs) == []
    for key in ("r1", "", "0"):
        assert "is unknown" in refused(machine.answer(key, DENY))[0]


def test_a_repeated_id_opens_nothing_and_leaves_the_first_request_as_it_is() -> None:
    machine = ready()
    machine.receive(permission())
    again = permission(input={"command": "rm -rf /"})
    assert [type(each) for each in events(machine.receive(again))] == [Unknown]
    [frame] = written(machine.answer("r1", ONCE))
    assert frame["response"]["response"]["updatedInput"] == {"command": "touch a"}
    assert [type(each) for each in events(machine.receive(again))] == [Unknown]
    assert "already answered" in refused(machine.answer("r1", ONCE))[0]


def test_more_requests_than_may_be_open_are_answered_with_an_error() -> None:
    machine = ready()
    for number in range(MAX_OPEN):
        assert written(machine.receive(permission(f"r{number}"))) == []
    [frame] = written(machine.receive(permission("last")))
    assert frame["response"]["subtype"] == "error"
    assert "64 requests are open" in frame["response"]["error"]
    machine.answer("r0", ONCE)
    assert written(machine.receive(permission("next"))) == []


def test_ids_of_closed_requests_are_kept_up_to_a_limit() -> None:
    machine = ready()
    for number in range(MAX_CLOSED + 1):
        machine.receive(permission(f"r{number}"))
        machine.answer(f"r{number}", DENY)
    assert "is unknown" in refused(machine.answer("r0", DENY))[0]
    assert "already answered" in refused(machine.answer("r1", DENY))[0]


def test_requests_that_were_pending_before_are_opened_by_the_reply() -> None:
    machine = Claude(begins())
    waiting = [permission(), form(), "x", {}]
    outputs = initialized(machine, pending_permission_requests=waiting)
    assert isinstance(outputs[0], AgentReady)
    shown = [each.id for each in events(outputs) if isinstance(each, RequestOpened)]
    assert shown == ["r1"]
    assert written(machine.answer("r1", ONCE))


# Answers.


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (ONCE, {"behavior": "allow", "updatedInput": {"command": "touch a"}}),
        (
            SESSION,
            {
                "behavior": "allow",
                "updatedInput": {"command": "touch a"},
                "updatedPermissions": [rules(TOUCH, destination="session")],
            },
        ),
        (DENY, {"behavior": "deny", "message": "The person denied this."}),
        (
            PermissionAnswer(kind="deny", message="use make", interrupt=True),
            {"behavior": "deny", "message": "use make", "interrupt": True},
        ),
    ],
)
def test_each_answer_to_a_permission(answer: RequestAnswer, body: Json) -> None:
    suggested = [rules(TOUCH), {"type": "addDirectories", "directories": ["/"]}, MODE]
    assert answered(permission(permission_suggestions=suggested), answer) == body


@pytest.mark.parametrize("destination", ["localSettings", "userSettings", "projectSettings", 1])
def test_a_rule_is_limited_to_the_session(destination: object) -> None:
    suggested = [rules(TOUCH, destination=destination), rules({"toolName": "Read"})]
    body = answered(permission(permission_suggestions=suggested), SESSION)
    [update] = body["updatedPermissions"]
    assert update["destination"] == "session"
    assert update["rules"] == [TOUCH, {"toolName": "Read"}]


def test_a_suggested_mode_becomes_a_rule_for_edits_in_the_working_directory() -> None:
    frame = permission(tool="Write", permission_suggestions=[MODE])
    assert opened(frame).options[1].name == "Allow edits in the working directory for this session"
    edits = {"toolName": "Edit", "ruleContent": "/**"}
    assert answered(frame, SESSION)["updatedPermissions"] == [rules(edits, destination="session")]


def test_edits_outside_of_the_working_directory_are_allowed_once_only() -> None:
    frame = permission(tool="Write", permission_suggestions=[MODE], blocked_path="/etc/hosts")
    assert opened(frame).no_session_scope


def test_answers_to_questions_are_joined_by_question() -> None:
    answer = QuestionAnswer(answers={"Which?": ["Blue"], "Sizes?": ["S", "L"]})
    answers = {"Which?": "Blue", "Sizes?": "S, L"}
    body = {"behavior": "allow", "updatedInput": {**ASKED, "answers": answers}}
    assert answered(question(), answer) == body


@pytest.mark.parametrize("answer", [QuestionAnswer(answers=None), DENY])
def test_questions_can_be_declined(answer: RequestAnswer) -> None:
    assert answered(question(), answer)["behavior"] == "deny"


@pytest.mark.parametrize(
    ("frame", "answer", "body"),
    [
        (form(), ElicitationAnswer(action="accept", content={"n": 2}), {"content": {"n": 2}}),
        (form(), ElicitationAnswer(action="decline"), {}),
        (form(), ElicitationAnswer(action="cancel"), {}),
        (link(), ElicitationAnswer(action="accept"), {}),
    ],
)
def test_each_answer_to_an_elicitation(frame: Json, answer: ElicitationAnswer, body: Json) -> None:
    assert answered(frame, answer) == {"action": answer.action, **body}


@pytest.mark.parametrize(
    ("frame", "answer", "reason"),
    [
        (permission(), PermissionAnswer(kind="deny_session"), "does not offer 'deny_session'"),
        (permission(), QuestionAnswer(answers={}), "'permission', which QuestionAnswer"),
        (permission(), ElicitationAnswer(action="accept"), "which ElicitationAnswer"),
        (question(), ONCE, "'question', which PermissionAnswer"),
        (question(), ElicitationAnswer(action="accept"), "which ElicitationAnswer"),
        (question(), QuestionAnswer(answers={}), "to 'Which?'"),
        (question(), QuestionAnswer(answers={"Which?": ["Red"]}), "to 'Sizes?'"),
        (question(), QuestionAnswer(answers={"Which?": [], "Sizes?": ["S"]}), "to 'Which?'"),
        (
            question(),
            QuestionAnswer(answers={"Which?": ["Red", "Blue"], "Sizes?": ["S"]}),
            "takes one answer",
        ),
        (
            question(),
            QuestionAnswer(answers={"Which?": ["Red"], "Sizes?": ["S"], "Why?": ["x"]}),
            "no question 'Why?'",
        ),
        (form(), ElicitationAnswer(action="accept"), "with its content"),
        (form(), ElicitationAnswer(action="decline", content={}), "takes content only"),
        (link(), ElicitationAnswer(action="accept", content={}), "takes content only"),
        (form(), ONCE, "which PermissionAnswer"),
        (form(), DENY, "which PermissionAnswer"),
        (form(), QuestionAnswer(answers=None), "which QuestionAnswer"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(
    frame: Json, answer: RequestAnswer, reason: str
) -> None:
    assert reason in refusal(frame, answer)


# Withdrawal.


def cancel(key: object = "r1") -> Json:
    return {"type": "control_cancel_request", "request_id": key}


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda machine: machine.receive(cancel()), "the agent withdrew it"),
        (lambda machine: machine.receive(result("u1")), "the turn ended"),
        (lambda machine: machine.ended(), "the agent's process ended"),
    ],
)
def test_a_withdrawn_request_takes_no_answer(end: Any, reason: str) -> None:
    machine = ready()
    machine.receive(permission())
    assert RequestWithdrawn(id="r1", reason=reason) in events(end(machine))
    [refusal] = refused(machine.answer("r1", ONCE))
    assert refusal == "request 'r1' was withdrawn; nothing was sent to the agent"
    assert events(end(machine)) == [] or reason == "the turn ended"


@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        (permission(agent_id="a1"), ONCE),
        (question(agent_id="a1"), DENY),
        (form(), ElicitationAnswer(action="cancel")),
    ],
)
def test_the_request_of_a_subagent_outlives_the_turn(frame: Json, answer: RequestAnswer) -> None:
    machine = ready()
    machine.receive(frame)
    assert not [
        each for each in events(machine.receive(result("u1"))) if each.tag == "request_withdrawn"
    ]
    assert written(machine.answer("r1", answer))


@pytest.mark.parametrize("key", ["r2", "", 0, None, ["r1"], {}])
def test_a_withdrawal_of_no_open_request_does_nothing(key: object) -> None:
    machine = ready()
    machine.receive(permission())
    assert machine.receive(cancel(key)) == []
    assert written(machine.answer("r1", ONCE))
    assert machine.receive(cancel()) == []

"""Turns: one prompt at a time, its result, interruptions, and the requests of the agent."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.acp.requests import MAX_OPEN
from aegis.agents.drivers.harness import Emit, Harness, Serve, SettingChanged, StopServing
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    PermissionAnswer,
    RequestWithdrawn,
    Result,
    SystemInit,
    ToolResult,
    Unknown,
    Usage,
)
from tests.aegis.agents.drivers.acp.wire import (
    Wire,
    events,
    failure,
    frames,
    machine,
    only,
    opened,
    ready,
    refusals,
    session,
)

FORM = {
    "mode": "form",
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
}


def end(wire: Wire, reason: object = "end_turn", **result: Any) -> Result:
    return only(wire.reply("session/prompt", {"stopReason": reason, **result}), Result)


def test_a_turn_is_one_prompt() -> None:
    wire = ready()
    (frame,) = frames(wire.turn("t1", "do it"))
    assert frame["method"] == "session/prompt"
    assert frame["params"] == {"sessionId": "ses", "prompt": [{"type": "text", "text": "do it"}]}


def test_a_second_turn_is_refused_until_the_result() -> None:
    wire = ready()
    wire.turn("t1")
    outputs = wire.turn("t2")
    assert refusals(outputs) == ["the agent has a turn: send the next one after its result"]
    assert frames(outputs) == []
    assert end(wire).messages == ["t1"]
    assert frames(wire.turn("t2"))


def test_a_turn_before_the_start_and_after_the_end_is_refused() -> None:
    refusal = "the agent takes no turn: it has not started, or it has ended"
    assert refusals(machine().send("t1", "x")) == [refusal]
    assert refusals(opened().turn()) == [refusal]
    wire = ready()
    wire.machine.ended()
    assert refusals(wire.turn()) == [refusal]


@pytest.mark.parametrize(
    ("reason", "ok", "shown"),
    [
        ("end_turn", True, "end_turn"),
        ("cancelled", False, "cancelled"),
        ("max_tokens", False, "max_tokens"),
        ("max_turn_requests", False, "max_turn_requests"),
        ("refusal", False, "refusal"),
        (None, False, "no stop reason"),
        (["end_turn"], False, "no stop reason"),
        ("END_TURN", False, "END_TURN"),
    ],
)
def test_only_the_end_of_a_turn_is_a_success(reason: object, ok: bool, shown: str) -> None:
    wire = ready()
    wire.turn()
    result = end(wire, reason)
    assert (result.ok, result.reason, result.messages) == (ok, shown, ["t1"])


def test_an_error_ends_the_turn_without_success() -> None:
    wire = ready()
    wire.turn()
    result = only(wire.fail("session/prompt", -32603, "rate limited."), Result)
    assert (result.ok, result.reason, result.text) == (False, "error", "rate limited")
    assert frames(wire.turn("t2"))


def test_an_error_beside_a_result_is_an_error() -> None:
    wire = ready()
    wire.turn()
    frame = wire.pending.pop()
    error = {"code": -32603, "message": "x"}
    outputs = wire.receive(id=frame["id"], result={"stopReason": "end_turn"}, error=error)
    assert not only(outputs, Result).ok


def test_a_turn_is_no_success_after_codex_reported_a_failure_of_its_model() -> None:
    wire = ready("codex")
    status = {"codex": {"threadStatus": {"type": "systemError"}}}
    wire.update("session_info_update", _meta=status)
    wire.turn()
    assert end(wire).ok
    wire.turn("t2")
    wire.update("session_info_update", _meta=status)
    wire.update("agent_message_chunk", content={"type": "text", "text": "HTTP 400"})
    result = end(wire)
    assert (result.ok, result.reason, result.text) == (False, "error", "HTTP 400")
    wire.turn("t3")
    assert end(wire).ok


@pytest.mark.parametrize("id_", [999, "1", None, True, 1.0, [1]])
def test_a_response_to_nothing_ends_nothing(id_: object) -> None:
    wire = ready()
    wire.turn()
    outputs = wire.receive(id=id_, result={"stopReason": "end_turn"})
    assert [each.tag for each in events(outputs)] == ["unknown"]
    assert end(wire).messages == ["t1"]


def test_a_second_response_to_a_prompt_ends_nothing() -> None:
    wire = ready()
    wire.turn()
    id_ = wire.pending[-1]["id"]
    end(wire)
    wire.turn("t2")
    outputs = wire.receive(id=id_, result={"stopReason": "end_turn"})
    assert [each.tag for each in events(outputs)] == ["unknown"]
    assert end(wire).messages == ["t2"]


def test_the_result_has_the_text_after_the_last_tool() -> None:
    wire = ready()
    wire.turn()
    for text in ("let me ", "look"):
        wire.update("agent_message_chunk", content={"type": "text", "text": text})
    wire.update("tool_call", toolCallId="c1", title="x")
    for text in ("all ", "good"):
        wire.update("agent_message_chunk", content={"type": "text", "text": text})
    notice = {"claudeCode": {"kind": "informational"}}
    content = {"type": "text", "text": "update me"}
    wire.update("agent_message_chunk", content=content, _meta=notice)
    assert end(wire).text == "all good"


def test_the_primer_precedes_the_first_turn_of_a_new_conversation() -> None:
    wire = ready(primer="You are one of three.")
    (frame,) = frames(wire.turn("t1", "do it"))
    assert [each["text"] for each in frame["params"]["prompt"]] == [
        "You are one of three.",
        "do it",
    ]
    end(wire)
    (frame,) = frames(wire.turn("t2", "more"))
    assert [each["text"] for each in frame["params"]["prompt"]] == ["more"]


@pytest.mark.parametrize(("command", "texts"), [("/clear", 2), ("/compact", 1)])
def test_a_conversation_that_was_cleared_gets_the_primer_again(command: str, texts: int) -> None:
    wire = ready(primer="You are one of three.")
    wire.update("available_commands_update", availableCommands=[{"name": command[1:]}])
    wire.turn("t1", "do it")
    end(wire)
    wire.note(wire.machine.send("t2", f"> from human\n{command}", command))
    end(wire)
    (frame,) = frames(wire.turn("t3", "more"))
    assert len(frame["params"]["prompt"]) == texts


def test_a_conversation_that_has_had_no_primer_gets_it() -> None:
    primer = "You are one of three."
    wire = opened("kimi", primer=primer, conversation="ses", is_unprimed=True)
    wire.reply("session/resume", session("kimi"))
    (frame,) = frames(wire.turn("t1", "do it"))
    assert [each["text"] for each in frame["params"]["prompt"]] == [primer, "do it"]


def test_a_continued_conversation_has_its_primer_already() -> None:
    wire = opened("kimi", primer="You are one of three.", conversation="ses")
    wire.reply("session/resume", session("kimi"))
    (frame,) = frames(wire.turn("t1", "do it"))
    assert len(frame["params"]["prompt"]) == 1


# Interruptions.


def test_an_interruption_cancels_and_then_answers_what_is_open() -> None:
    wire = ready()
    wire.turn()
    first = wire.ask(0)
    outputs = wire.receive(id="e", method="elicitation/create", params=FORM)
    written = frames(wire.machine.interrupt())
    assert [each.get("method", each.get("id")) for each in written] == ["session/cancel", 0, "e"]
    assert written[1]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert written[2]["result"] == {"action": "cancel"}
    assert len(events(outputs)) == 1
    assert refusals(wire.machine.answer(first.id, PermissionAnswer(kind="allow_once")))
    assert end(wire, "cancelled").reason == "cancelled"


def test_a_request_after_the_interruption_is_cancelled_and_not_shown() -> None:
    wire = ready()
    wire.turn()
    wire.machine.interrupt()
    outputs = wire.receive(
        id=0, method="session/request_permission", params={"toolCall": {}, "options": []}
    )
    assert frames(outputs)[0]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert events(outputs) == []
    end(wire, "cancelled")
    wire.turn("t2")
    assert wire.ask(0).kind == "permission"


def test_an_interruption_without_a_turn_does_nothing() -> None:
    wire = ready()
    assert wire.machine.interrupt() == []
    wire.turn()
    end(wire)
    assert wire.machine.interrupt() == []


def test_a_turn_that_ends_in_spite_of_an_interruption_is_as_it_says() -> None:
    wire = ready()
    wire.turn()
    wire.machine.interrupt()
    assert end(wire).ok


# Requests of the agent.


@pytest.mark.parametrize("id_", [0, 1, -1, "", "a", "0", 2**70])
def test_a_request_is_answered_with_its_own_id(id_: int | str) -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(id_)
    (frame,) = frames(wire.machine.answer(request.id, PermissionAnswer(kind="allow_once")))
    assert frame["id"] == id_
    assert type(frame["id"]) is type(id_)


def test_a_number_and_its_text_are_two_ids() -> None:
    wire = ready()
    wire.turn()
    first, second = wire.ask(1), wire.ask("1")
    outputs = wire.receive(method="$/cancel_request", params={"requestId": "1"})
    assert [each.id for each in events(outputs) if isinstance(each, RequestWithdrawn)] == [
        second.id
    ]
    assert frames(wire.machine.answer(first.id, PermissionAnswer(kind="deny")))[0]["id"] == 1


@pytest.mark.parametrize("id_", [None, True, 1.5, [], {}])
def test_a_request_without_a_usable_id_is_not_answered(id_: object) -> None:
    wire = ready()
    wire.turn()
    for method in ("session/request_permission", "fs/read_text_file", "nothing/known"):
        outputs = wire.receive(id=id_, method=method, params={})
        assert [each.tag for each in events(outputs)] == ["unknown"]
        assert frames(outputs) == []


def test_a_repeated_id_is_not_answered_while_the_first_is_open() -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    for method in ("session/request_permission", "fs/read_text_file", "nothing/known"):
        outputs = wire.receive(id=0, method=method, params={"toolCall": {}, "options": []})
        assert frames(outputs) == []
        assert isinstance(events(outputs)[0], Unknown)
    assert frames(wire.machine.answer(request.id, PermissionAnswer(kind="deny")))
    again = wire.ask(0)  # an id may be used again afterwards
    assert again.id != request.id
    assert refusals(wire.machine.answer(request.id, PermissionAnswer(kind="allow_once")))


def test_an_answer_is_given_once() -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    assert frames(wire.machine.answer(request.id, PermissionAnswer(kind="allow_once")))
    outputs = wire.machine.answer(request.id, PermissionAnswer(kind="deny"))
    assert refusals(outputs) == [
        f"request '{request.id}' is not open: it was answered or withdrawn"
    ]


def test_a_withdrawn_request_is_answered_by_the_withdrawal_only() -> None:
    wire = ready("codex")
    wire.turn()
    request = wire.ask(3)
    outputs = wire.receive(method="$/cancel_request", params={"requestId": 3})
    assert frames(outputs)[0] == {
        "jsonrpc": "2.0",
        "id": 3,
        "result": {"outcome": {"outcome": "cancelled"}},
    }
    assert [each.tag for each in events(outputs)] == ["request_withdrawn"]
    assert refusals(wire.machine.answer(request.id, PermissionAnswer(kind="allow_once")))
    again = wire.receive(method="$/cancel_request", params={"requestId": 3})
    assert [each.tag for each in events(again)] == ["unknown"]


def test_a_wait_for_a_command_is_cancelled_and_other_services_are_finished() -> None:
    wire = ready()
    wire.turn()
    cancel = {"method": "$/cancel_request", "params": {"requestId": 3}}
    for method in METHODS:
        (serve,) = wire.receive(id=3, method=method, params={"sessionId": "ses"})
        assert isinstance(serve, Serve)
        outputs = wire.receive(**cancel)
        if method == "terminal/wait_for_exit":
            (answer,) = frames(outputs)
            assert (answer["id"], answer["error"]["code"]) == (3, -32800)
            assert outputs[1:] == [StopServing(serve.id)]
            assert refusals(wire.machine.served(serve.id, {}, "")) != []
        else:
            assert outputs == []
            assert frames(wire.machine.served(serve.id, {}, ""))[0]["id"] == 3


@pytest.mark.parametrize("params", [{}, {"requestId": None}, {"requestId": []}, {"requestId": 9}])
def test_a_cancellation_of_nothing_withdraws_nothing(params: dict[str, Any]) -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    wire.receive(method="$/cancel_request", params=params)
    assert frames(wire.machine.answer(request.id, PermissionAnswer(kind="deny")))


def test_the_end_of_the_turn_withdraws_what_is_open() -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    outputs = wire.reply("session/prompt", {"stopReason": "end_turn"})
    assert frames(outputs)[0]["result"] == {"outcome": {"outcome": "cancelled"}}
    tags = [each.tag for each in events(outputs)]
    assert tags == ["request_withdrawn", "tool_result", "result"]
    assert refusals(wire.machine.answer(request.id, PermissionAnswer(kind="allow_once")))


def test_the_end_of_the_process_withdraws_without_an_answer() -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    wire.receive(id=1, method="terminal/output", params={"sessionId": "ses"})
    assert wire.machine.ended() == [
        Emit(RequestWithdrawn(id=request.id, reason="the agent's process ended"))
    ]
    assert wire.machine.ended() == []
    assert refusals(wire.machine.answer(request.id, PermissionAnswer(kind="allow_once")))
    assert wire.receive(id=2, method="terminal/create", params={}) == []
    assert refusals(wire.machine.set_model("m"))
    assert refusals(wire.machine.set_permission("ask"))


def test_open_requests_are_limited_and_each_is_answered() -> None:
    wire = ready()
    wire.turn()
    for i in range(MAX_OPEN):
        wire.ask(i)
    params: dict[str, Any] = {"toolCall": {}, "options": []}
    full = [
        ("session/request_permission", params, {"outcome": {"outcome": "cancelled"}}),
        ("elicitation/create", FORM, {"action": "cancel"}),
    ]
    for method, given, result in full:
        (frame,) = frames(wire.receive(id="more", method=method, params=given))
        assert frame["result"] == result
    (frame,) = frames(wire.receive(id="more", method="terminal/output", params={}))
    assert "too many" in frame["error"]["message"]


# Served methods.

METHODS = ["fs/read_text_file"] + [
    f"terminal/{each}" for each in ("output", "wait_for_exit", "kill", "release")
]


@pytest.mark.parametrize("method", METHODS)
def test_a_client_method_is_served_once(method: str) -> None:
    wire = ready()
    wire.turn()
    params = {"sessionId": "ses", "path": "/w/a"}
    outputs = wire.receive(id=0, method=method, params=params)
    (serve,) = outputs
    assert isinstance(serve, Serve)
    assert (serve.method, serve.params) == (method, params)
    (frame,) = frames(wire.machine.served(serve.id, {"content": "x"}, ""))
    assert frame == {"jsonrpc": "2.0", "id": 0, "result": {"content": "x"}}
    assert refusals(wire.machine.served(serve.id, {"content": "x"}, ""))


def test_an_error_of_a_client_method_is_reported() -> None:
    wire = ready()
    (serve,) = wire.receive(id=0, method="fs/read_text_file", params={"sessionId": "ses"})
    assert isinstance(serve, Serve)
    (frame,) = frames(wire.machine.served(serve.id, None, "'/etc' is outside"))
    assert frame["error"] == {"code": -32603, "message": "'/etc' is outside"}


@pytest.mark.parametrize(
    "method", [*METHODS, "terminal/create", "session/request_permission", "elicitation/create"]
)
@pytest.mark.parametrize("params", [None, [], "x", 3])
def test_parameters_of_a_wrong_type_are_refused(method: str, params: object) -> None:
    wire = ready()
    wire.turn()
    (frame,) = frames(wire.receive(id=0, method=method, params=params))
    assert frame["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["", "_kimi/x", "mcp/connect", "initialize", "session/update"])
def test_an_unknown_method_is_refused(method: str) -> None:
    wire = ready()
    outputs = wire.receive(id=0, method=method, params={})
    (frame,) = frames(outputs)
    assert frame["error"] == {"code": -32601, "message": "Method not found"}
    assert [each.tag for each in events(outputs)] == ["unknown"]


def test_a_request_is_no_serve_and_a_serve_is_no_request() -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    (serve,) = wire.receive(id=1, method="terminal/output", params={"sessionId": "ses"})
    assert isinstance(serve, Serve)
    assert refusals(wire.machine.served(request.id, {}, ""))
    assert refusals(wire.machine.answer(serve.id, ElicitationAnswer(action="cancel")))


# Held turns, models and usage.


def test_a_turn_waits_for_our_server_where_it_starts_beside_the_turn() -> None:
    wire = ready("codex", AcpOptions(waits_for_mcp=True))
    assert frames(wire.turn()) == []
    assert frames(wire.update("usage_update", used=1, size=2)) == []
    outputs = wire.note(wire.machine.mcp_connected())
    assert [each["method"] for each in frames(outputs)] == ["session/prompt"]
    described = [each for each in events(outputs) if isinstance(each, SystemInit)]
    assert [each.mcp_servers for each in described] == [{"aegis": "connected"}]
    assert end(wire).messages == ["t1"]


def test_nothing_waits_for_a_server_that_was_not_passed() -> None:
    wire = ready("codex", AcpOptions(waits_for_mcp=True), mcp_url="")
    assert frames(wire.turn())


@pytest.mark.parametrize(("status", "shown"), [("completed", "connected"), ("failed", "failed")])
def test_a_turn_waits_while_the_agent_reports_that_our_server_starts(
    status: str, shown: str
) -> None:
    wire = ready("codex")
    call = {"toolCallId": "mcp_startup.aegis.1", "title": "mcp"}
    wire.update("tool_call", status="in_progress", **call)
    assert frames(wire.turn()) == []
    outputs = wire.update("tool_call_update", status=status, **call)
    assert [each["method"] for each in frames(outputs)] == ["session/prompt"]
    described = [each for each in events(outputs) if isinstance(each, SystemInit)]
    assert [each.mcp_servers for each in described] == [{"aegis": shown}]


@pytest.mark.parametrize("is_reported", [False, True])
def test_a_turn_does_not_wait_for_ever_for_a_server_that_is_never_connected(
    is_reported: bool,
) -> None:
    wire = ready("codex", AcpOptions(waits_for_mcp=True))
    call = {"toolCallId": "mcp_startup.aegis.1", "title": "mcp"}
    if is_reported:
        wire.update("tool_call", status="in_progress", **call)
    assert frames(wire.turn()) == []
    outputs = wire.note(wire.machine.mcp_is_late())
    assert [each["method"] for each in frames(outputs)] == ["session/prompt"]
    described = [each for each in events(outputs) if isinstance(each, SystemInit)]
    assert [each.mcp_servers for each in described] == [{"aegis": "not connected"}]
    end(wire)
    wire.update("tool_call", status="in_progress", **call)
    assert frames(wire.turn("t2"))


def test_a_server_that_connects_late_is_shown_as_connected() -> None:
    wire = ready("kimi")
    wire.machine.mcp_is_late()
    assert only(wire.machine.mcp_connected(), SystemInit).mcp_servers == {"aegis": "connected"}


def test_an_agent_that_is_connected_in_time_is_not_late() -> None:
    wire = ready("codex", AcpOptions(waits_for_mcp=True))
    wire.machine.mcp_connected()
    assert wire.machine.mcp_is_late() == []
    without = ready("codex", mcp_url="")
    assert without.machine.mcp_is_late() == []


def test_a_turn_that_waits_can_be_interrupted() -> None:
    wire = ready("codex", AcpOptions(waits_for_mcp=True))
    wire.turn()
    outputs = wire.machine.interrupt()
    assert frames(outputs) == []
    result = only(outputs, Result)
    assert (result.messages, result.ok, result.reason) == (["t1"], False, "cancelled")
    assert frames(wire.machine.mcp_connected()) == []
    assert frames(wire.turn("t2"))


def test_a_model_is_set_after_the_turn_and_before_the_next() -> None:
    wire = ready("gemini")
    wire.turn()
    assert wire.machine.set_model("gemini-2.5-pro") == [SettingChanged("model")]
    outputs = wire.reply("session/prompt", {"stopReason": "end_turn"})
    assert [each["method"] for each in frames(outputs)] == ["session/set_model"]
    assert frames(wire.turn("t2")) == []
    outputs = wire.reply("session/set_model")
    assert [each["method"] for each in frames(outputs)] == ["session/prompt"]
    assert [each.model for each in events(outputs) if isinstance(each, SystemInit)] == [
        "gemini-2.5-pro"
    ]


def test_a_model_that_is_not_offered_or_not_set_is_refused() -> None:
    wire = ready("gemini")
    assert "has no model 'x'" in refusals(wire.machine.set_model("x"))[0]
    wire.note(wire.machine.set_model("gemini-2.5-pro"))
    outputs = wire.fail("session/set_model", message="no")
    sentence = (
        "Gemini CLI did not set its model to 'gemini-2.5-pro': no; update the agent or the profile"
    )
    assert outputs == [SettingChanged("model", sentence)]
    assert frames(wire.turn())


def test_an_effort_that_is_not_offered_is_refused() -> None:
    assert "has no effort 'silly'" in (ready("gemini").machine.refuse_effort("silly") or "")


def test_a_model_that_is_not_offered_is_refused_in_a_turn_too() -> None:
    wire = ready("gemini")
    wire.turn()
    assert "has no model 'x'" in refusals(wire.machine.set_model("x"))[0]


def test_a_model_that_is_set_already_is_not_set_again() -> None:
    wire = ready("gemini", model="gemini-2.5-pro")
    assert wire.machine.set_model("gemini-2.5-pro") == [SettingChanged("model")]


def test_a_prompt_that_needs_a_login_ends_its_turn_and_the_agent() -> None:
    wire = ready("claude")
    wire.turn()
    outputs = wire.fail("session/prompt", code=-32000, message="Authentication required")
    assert only(outputs, Result).reason == "auth_required"
    failed = failure(outputs)
    assert failed.kind == "login"
    assert "Authentication required" in failed.reason


def test_calls_without_a_result_end_with_the_turn() -> None:
    wire = ready("gemini")
    wire.turn()
    wire.update("tool_call", toolCallId="c1", title="a")
    wire.update("tool_call_update", toolCallId="c2", title="b", status="completed")
    outputs = wire.reply("session/prompt", {"stopReason": "cancelled"})
    results = [each for each in events(outputs) if isinstance(each, ToolResult)]
    assert [(each.id, each.is_error) for each in results] == [("c1", True)]


def test_the_cost_of_a_turn_is_its_part_of_the_cost_of_the_process() -> None:
    wire = ready("claude")
    costs = []
    for i, total in enumerate([0.5, 0.75, 0.25]):  # the last one counts from zero again
        wire.turn(f"t{i}")
        wire.update("usage_update", used=5, size=9, cost={"amount": total, "currency": "USD"})
        outputs = wire.reply("session/prompt", {"stopReason": "end_turn"})
        (usage,) = [each for each in events(outputs) if isinstance(each, Usage)]
        costs.append((usage.process_cost_usd, usage.turn_cost_usd))
    assert costs == [(0.5, 0.5), (0.75, 0.25), (0.25, 0.25)]


@pytest.mark.parametrize("params", [{}, {"sessionId": "ses"}, {"sessionId": "ses", "update": 3}])
def test_an_update_without_a_kind_is_kept(params: dict[str, Any]) -> None:
    outputs = ready().receive(method="session/update", params=params)
    assert [each.tag for each in events(outputs)] == ["unknown"]


def test_an_update_of_another_session_is_no_event_of_this_one() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    for other in ("sub", None, ""):
        params = {"sessionId": other, "update": update}
        outputs = ready().receive(method="session/update", params=params)
        assert [each.tag for each in events(outputs)] == ["unknown"]


@pytest.mark.parametrize("method", ["_auth/status_update", "elicitation/complete", "x", ""])
def test_a_notification_of_another_kind_is_kept(method: str) -> None:
    (event,) = events(ready().receive(method=method, params={"a": 1}))
    assert event == Unknown(kind=method, raw={"a": 1})


def test_the_machine_is_a_harness() -> None:
    harness: Harness = machine()  # the type checker compares all methods
    assert harness.interrupt() == []

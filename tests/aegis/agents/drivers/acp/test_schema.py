"""The frames that are sent, checked against the schema package of the protocol's authors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aegis.agents.drivers.acp.elicitation import CANCELLED, elicitation_request, elicitation_result
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import OrderRefused
from aegis.agents.drivers.terminals.rules import ExitStatus
from aegis.protocol.agent_events import ElicitationAnswer, PermissionAnswer
from tests.aegis.agents.drivers.acp.player import Player, names
from tests.aegis.agents.drivers.acp.summary import options_of
from tests.aegis.agents.drivers.acp.wire import frames, machine, opened, ready, session
from tests.aegis.agents.drivers.terminals.stage import Step, played

schema: Any = pytest.importorskip("acp.schema", reason="agent-client-protocol is not installed")

MODELS = {
    "initialize": "InitializeRequest",
    "authenticate": "AuthenticateRequest",
    "session/new": "NewSessionRequest",
    "session/load": "LoadSessionRequest",
    "session/resume": "ResumeSessionRequest",
    "session/fork": "ForkSessionRequest",
    "session/prompt": "PromptRequest",
    "session/cancel": "CancelNotification",
    "session/set_mode": "SetSessionModeRequest",
}


def model_of(method: str, params: Mapping[str, Any]) -> str | None:
    if method == "session/set_config_option":
        kind = "Boolean" if isinstance(params["value"], bool) else "Select"
        return f"SetSessionConfigOption{kind}Request"
    return MODELS.get(method)  # session/set_model is not in the schema any more


def assert_fits(value: Mapping[str, Any], model: str) -> None:
    """Fail if a value lacks a field, or has one that the schema does not know."""
    found = getattr(schema, model).model_validate(value, strict=False)
    assert found.model_dump(by_alias=True, exclude_unset=True, mode="json") == value


def assert_call_fits(frame: Mapping[str, Any]) -> None:
    model = model_of(frame["method"], frame["params"])
    if model is not None:
        assert_fits(frame["params"], model)


@pytest.mark.parametrize("name", names())
def test_the_requests_of_a_played_recording_fit(name: str) -> None:
    calls = [each for each in Player(name, options_of(name)).play().frames if "method" in each]
    for each in calls:
        assert_call_fits(each)
    assert len(calls) >= 2


def test_requests_that_no_recording_has_fit() -> None:
    (hello,) = frames(machine(mcp_url="").begin())
    assert_call_fits(hello)
    fork = opened("claude", conversation="old", fork=True).pending[0]
    assert fork["method"] == "session/fork"
    assert_call_fits(fork)
    wire = ready("claude", AcpOptions(extra={"fast": True}), model="opus", effort="low")
    for each in frames(wire.outputs):
        assert_call_fits(each)
    wire = opened("gemini")
    wire.reply("session/new", {**session("gemini"), "modes": other_mode()})
    assert wire.pending[0]["method"] == "session/set_mode"
    assert_call_fits(wire.pending[0])


def other_mode() -> dict[str, Any]:
    return {"currentModeId": "yolo", "availableModes": [{"id": "default"}, {"id": "yolo"}]}


@pytest.mark.parametrize("kind", ["allow_once", "allow_session", "deny", "deny_session"])
def test_answers_to_permissions_fit(kind: Any) -> None:
    wire = ready()
    wire.turn()
    request = wire.ask(0)
    (frame,) = frames(wire.machine.answer(request.id, PermissionAnswer(kind=kind)))
    assert_fits(frame["result"], "RequestPermissionResponse")
    wire.ask(1)
    cancelled = frames(wire.machine.interrupt())[-1]
    assert_fits(cancelled["result"], "RequestPermissionResponse")


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_answers_to_elicitations_fit(action: Any) -> None:
    form = {"type": "object", "properties": {"x": {"type": "string"}}}
    opened_ = elicitation_request("1", {"mode": "form", "message": "m", "requestedSchema": form})
    assert opened_ is not None
    answer = ElicitationAnswer(action=action, content={"x": "a"})
    result = elicitation_result(opened_, answer)
    assert not isinstance(result, OrderRefused)
    assert_fits(result, f"{action.capitalize()}ElicitationResponse")
    assert_fits(CANCELLED, "CancelElicitationResponse")


def test_a_misspelled_field_does_not_fit() -> None:
    with pytest.raises(AssertionError):
        assert_fits({"sessionId": "s", "modeID": "x", "modeId": "x"}, "SetSessionModeRequest")
    with pytest.raises(ValueError, match="modeId"):
        assert_fits({"sessionId": "s"}, "SetSessionModeRequest")


@pytest.mark.parametrize(
    ("steps", "model"),
    [
        ([("ask", 1, "output")], "TerminalOutputResponse"),
        (
            [("exit", ExitStatus(exit_code=3)), ("ask", 1, "output")],
            "TerminalOutputResponse",
        ),
        (
            [("exit", ExitStatus(signal="SIGTERM")), ("ask", 1, "output")],
            "TerminalOutputResponse",
        ),
        (
            [("exit", ExitStatus(exit_code=255)), ("ask", 1, "wait")],
            "WaitForTerminalExitResponse",
        ),
        ([("ask", 1, "wait"), ("ask", 2, "release")], "WaitForTerminalExitResponse"),
        ([("exit", ExitStatus(exit_code=0)), ("ask", 1, "kill")], "KillTerminalResponse"),
        ([("ask", 1, "release"), ("gone",)], "ReleaseTerminalResponse"),
    ],
)
def test_the_answers_about_a_terminal_fit(steps: list[Step], model: str) -> None:
    effects = [each for effects in played(*steps) for each in effects]
    result = next(each[2] for each in effects if each[:2] == ("answer", 1))
    assert_fits(result, model)


def test_the_answer_to_a_created_terminal_fits() -> None:
    assert_fits({"terminalId": "term_1_1"}, "CreateTerminalResponse")

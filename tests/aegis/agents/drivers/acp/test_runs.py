"""Commands in terminals: who approves them, and what the agent is answered."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.acp.runs import MAX_APPROVED, ApprovedCommands
from aegis.agents.drivers.harness import Output, Serve
from aegis.agents.profiles.policy import decide
from aegis.protocol.agent_events import (
    OptionKind,
    PermissionAnswer,
    RequestOpened,
    RequestWithdrawn,
)
from tests.aegis.agents.drivers.acp.wire import Wire, frames, only, ready

LINE = "echo a; exit 3"


def create(wire: Wire, id_: int = 0, command: object = LINE, **params: Any) -> list[Output]:
    given = {"sessionId": "ses", "command": command, "outputByteLimit": 50000, **params}
    return wire.receive(id=id_, method="terminal/create", params=given)


def approve_call(
    wire: Wire, kind: OptionKind = "allow_once", *, name: str = "", **given: Any
) -> None:
    call = {"toolCallId": "c1", "title": "Shell", "rawInput": {"command": LINE, **given}}
    request = wire.ask(9, toolCall=call | ({"name": name} if name else {}))
    assert frames(wire.machine.answer(request.id, PermissionAnswer(kind=kind)))


def is_served(outputs: list[Output]) -> bool:
    return [type(each) for each in outputs] == [Serve]


def playing() -> Wire:
    wire = ready()
    wire.turn()
    return wire


def test_a_command_is_a_request_that_shows_all_of_it() -> None:
    params: dict[str, Any] = {
        "args": ["-n", "x"],
        "cwd": "/w/a",
        "env": [{"name": "A", "value": "1"}],
    }
    request = only(create(playing(), command="echo", **params), RequestOpened)
    assert (request.kind, request.tool, request.tool_kind) == (
        "permission",
        "terminal/create",
        "execute",
    )
    shown = {"command": "echo", "args": ["-n", "x"], "cwd": "/w/a", "env": {"A": "1"}}
    assert (request.input, request.title) == (shown, "run echo -n x")
    assert [each.kind for each in request.options] == ["allow_once", "allow_session", "deny"]


@pytest.mark.parametrize(
    ("permission", "decision"),
    [("read", "deny"), ("ask", "ask"), ("write", "ask"), ("full", "allow")],
)
def test_the_policy_of_the_profile_decides_first(permission: Any, decision: str) -> None:
    request = only(create(playing()), RequestOpened)
    assert decide(request, permission).kind == decision


def test_an_approved_command_is_run_and_the_id_of_its_terminal_is_the_answer() -> None:
    wire = playing()
    request = only(create(wire), RequestOpened)
    (serve,) = wire.machine.answer(request.id, PermissionAnswer(kind="allow_once"))
    assert isinstance(serve, Serve)
    assert (serve.method, serve.params["command"]) == ("terminal/create", LINE)
    (frame,) = frames(wire.machine.served(serve.id, {"terminalId": "term_1_1"}, ""))
    assert frame == {"jsonrpc": "2.0", "id": 0, "result": {"terminalId": "term_1_1"}}
    assert not is_served(create(wire))


def test_a_refused_command_is_an_error_with_the_sentence() -> None:
    wire = playing()
    request = only(create(wire), RequestOpened)
    answer = PermissionAnswer(kind="deny", message="the profile may only read")
    (frame,) = frames(wire.machine.answer(request.id, answer))
    assert frame["error"] == {"code": -32603, "message": "the profile may only read"}


def test_an_approval_for_the_session_is_for_that_command_until_the_permission_changes() -> None:
    wire = playing()
    request = only(create(wire, command="make"), RequestOpened)
    [lasting] = [each for each in request.options if each.kind == "allow_session"]
    assert lasting.name == "Run exactly this command, whenever it comes in this session"
    wire.machine.answer(request.id, PermissionAnswer(kind="allow_session"))
    assert is_served(create(wire, 1, "make"))
    assert is_served(create(wire, 2, "make", cwd="/w", outputByteLimit=1))
    assert not is_served(create(wire, 3, "make install"))
    assert not is_served(create(wire, 4, "make", args=["install"]))
    assert not is_served(create(wire, 5, "make", cwd="/w/other"))
    assert not is_served(create(wire, 6, "make", env=[{"name": "LD_PRELOAD", "value": "/x.so"}]))
    wire.machine.interrupt()
    wire.reply("session/prompt", {"stopReason": "cancelled"})
    wire.turn("u2")
    assert is_served(create(wire, 7, "make"))
    wire.machine.set_permission("ask")
    assert not is_served(create(wire, 8, "make"))


@pytest.mark.parametrize("kind", ["allow_once", "allow_session"])
def test_a_command_that_was_approved_as_a_call_is_run_once_without_asking_again(
    kind: OptionKind,
) -> None:
    wire = playing()
    approve_call(wire, kind)
    assert is_served(create(wire))
    assert not is_served(create(wire, 1))


@pytest.mark.parametrize("approved", [LINE, ["echo", "a b"]])
def test_words_and_line_of_one_command_are_the_same(approved: object) -> None:
    wire = playing()
    approve_call(wire, command=approved)
    words: dict[str, Any] = {"command": "echo", "args": ["a b"]} if approved != LINE else {}
    assert is_served(create(wire, **words))


@pytest.mark.parametrize(
    "other",
    [
        {"command": "echo b"},
        {"args": ["x"]},
        {"cwd": "/w/sub"},
        {"env": [{"name": "LD_PRELOAD", "value": "/w/evil.so"}]},
    ],
)
def test_another_command_than_the_approved_one_is_asked_for(other: dict[str, Any]) -> None:
    wire = playing()
    approve_call(wire, description="echo it", timeout=60)
    assert not is_served(create(wire, **other))
    assert is_served(create(wire, 1, cwd="/w"))


@pytest.mark.parametrize("given", [{"cwd": "/other"}, {"env": {"A": "1"}}, {"host": "prod"}])
def test_a_call_that_says_more_than_a_command_approves_no_other_meaning(
    given: dict[str, Any],
) -> None:
    wire = playing()
    approve_call(wire, **given)
    assert not is_served(create(wire))


def test_the_approval_of_another_servers_tool_approves_no_command() -> None:
    wire = playing()
    approve_call(wire, name="mcp__docs__find")
    assert not is_served(create(wire))


NAMED = ["read", "search", "think", "edit", "delete", "move", "fetch"]


@pytest.mark.parametrize("kind", NAMED)
def test_a_call_with_a_command_is_one_that_runs_it_as_the_agent_may_name_it(kind: str) -> None:
    for given in ({}, {"content": "x"}, {"path": "README"}):
        wire = playing()
        call = {"toolCallId": "c1", "kind": kind, "title": "Read README"}
        request = wire.ask(9, toolCall={**call, "rawInput": {"command": LINE, **given}})
        assert (request.tool_kind, request.input["command"]) == ("execute", LINE)
        found = [decide(request, each).kind for each in ("read", "ask", "write", "full")]
        assert found == ["deny", "ask", "ask", "allow"]
        wire.machine.answer(request.id, PermissionAnswer(kind="allow_once"))
        assert is_served(create(wire)) == (not given)
    wire = playing()
    described = {"toolCallId": "c1", "title": "ls", "kind": kind, "rawInput": {"command": LINE}}
    wire.update("tool_call", **described)
    assert wire.ask(9, toolCall={"toolCallId": "c1"}).tool_kind == "execute"


@pytest.mark.parametrize("permission", ["read", "ask", "write", "full"])
def test_a_command_of_an_unknown_kind_is_left_to_a_person(permission: Any) -> None:
    for kind in ("other", None, "unheard_of"):
        wire = playing()
        call = {"toolCallId": "c1", "kind": kind, "rawInput": {"command": LINE}}
        assert decide(wire.ask(9, toolCall=call), permission).kind == "ask"


@pytest.mark.parametrize("tool", ["mcp__aegis__aegis_list_sessions", "mcp__aegis__aegis_term_list"])
def test_the_approval_of_a_tool_of_ours_approves_no_command(tool: str) -> None:
    for kind in ("execute", "other", "read"):
        wire = playing()
        call = {"toolCallId": "c1", "name": tool, "kind": kind, "rawInput": {"command": LINE}}
        request = wire.ask(9, toolCall=call)
        wire.machine.answer(request.id, PermissionAnswer(kind="allow_once"))
        assert not is_served(create(wire))


def test_an_approved_command_is_not_run_after_the_interrupt() -> None:
    wire = playing()
    approve_call(wire)
    lasting = only(create(wire, 1, "make"), RequestOpened)
    wire.machine.answer(lasting.id, PermissionAnswer(kind="allow_session"))
    wire.machine.interrupt()
    for id_, command in enumerate([LINE, "make"], 2):
        outputs = create(wire, id_, command)
        (late,) = frames(outputs)
        assert late["error"]["message"].startswith("not run")
        assert len(outputs) == 1
    wire.reply("session/prompt", {"stopReason": "cancelled"})
    wire.turn("t2")
    assert is_served(create(wire, 4, "make"))
    assert not is_served(create(wire, 5))


def test_a_refused_call_approves_nothing() -> None:
    wire = playing()
    approve_call(wire, "deny")
    assert not is_served(create(wire))


def test_the_approval_of_a_call_ends_with_the_turn() -> None:
    wire = playing()
    approve_call(wire)
    wire.reply("session/prompt", {"stopReason": "end_turn"})
    wire.turn("t2")
    assert not is_served(create(wire))


def test_the_end_of_the_turn_withdraws_an_open_command() -> None:
    wire = playing()
    request = only(create(wire), RequestOpened)
    outputs = wire.machine.interrupt()
    assert only(outputs, RequestWithdrawn).id == request.id
    assert frames(outputs)[-1]["error"]["message"].startswith("not run")
    (late,) = frames(create(wire, 1))
    assert late["error"]["message"].startswith("not run")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"command": None}, "command must be a text"),
        ({"command": ""}, "command must not be empty"),
        ({"command": "a\0b"}, "command has a NUL"),
        ({"command": "\ud800"}, "surrogate"),
        ({"command": "x" * 200_000}, "200000 bytes"),
        ({"args": "x"}, "args must be a list"),
        ({"args": ["x", 1]}, "an item of args must be a text"),
        ({"args": ["x"] * 20_000}, "20000 items"),
        ({"args": ["x" * 90_000] * 20}, "bytes, more than"),
        ({"env": {"A": "1"}}, "env must be a list"),
        ({"env": ["A=1"]}, "an object of name and value"),
        ({"env": [{"name": "A=B", "value": "1"}]}, "cannot be the name"),
        ({"env": [{"name": "", "value": "1"}]}, "cannot be the name"),
        ({"env": [{"name": "A", "value": "1\0"}]}, "the value of a variable in env has a NUL"),
        ({"env": [{"name": "A"}]}, "the value of a variable in env must be a text"),
        ({"cwd": "w"}, "cwd must be an absolute path"),
        ({"cwd": 1}, "cwd must be a text"),
        ({"outputByteLimit": -1}, "whole number"),
        ({"outputByteLimit": True}, "whole number"),
        ({"outputByteLimit": 1.5}, "whole number"),
        ({"sessionId": "other"}, "sessionId is unknown"),
        ({"sessionId": None}, "sessionId is unknown"),
    ],
)
def test_a_malformed_command_is_refused_and_nobody_is_asked(
    params: dict[str, Any], words: str
) -> None:
    wire = playing()
    outputs = create(wire, **{"command": LINE, **params})
    (frame,) = frames(outputs)
    assert frame["error"]["code"] == -32602
    assert words in frame["error"]["message"]
    assert not any(isinstance(each, Serve) for each in outputs)


@pytest.mark.parametrize(
    ("code", "number"), [("not_found", -32002), ("invalid_request", -32602), ("busy", -32603)]
)
def test_an_error_of_a_terminal_has_the_code_of_its_kind(code: str, number: int) -> None:
    wire = playing()
    (serve,) = wire.receive(id=0, method="terminal/output", params={"sessionId": "ses"})
    assert isinstance(serve, Serve)
    (frame,) = frames(wire.machine.served(serve.id, None, "no", code))
    assert frame["error"] == {"code": number, "message": "no"}


def test_the_approvals_are_bounded() -> None:
    runs = ApprovedCommands("/w")
    for number in range(MAX_APPROVED + 1):
        runs.approve({"command": f"echo {number}"})
    assert not runs.take({"command": "echo 0"})
    assert runs.take({"command": "echo 1"})

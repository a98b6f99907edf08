"""Writes of files: who approves them, and what the agent is answered."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.acp.runs import MAX_APPROVED, Writes
from aegis.agents.drivers.harness import Output, Permission, Serve
from aegis.agents.profiles.policy import decide
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    OptionKind,
    PermissionAnswer,
    RequestOpened,
    RequestWithdrawn,
)
from tests.aegis.agents.drivers.acp.wire import Wire, frames, only, ready, refusals

PATH = "/w/a.txt"


def write(wire: Wire, id_: int = 0, path: str = PATH, content: str = "new\n") -> list[Output]:
    params = {"sessionId": "ses", "path": path, "content": content}
    return wire.receive(id=id_, method="fs/write_text_file", params=params)


def approve_diff(wire: Wire, kind: OptionKind = "allow_once", text: str = "new\n") -> None:
    diff = {"type": "diff", "path": PATH, "oldText": "", "newText": text}
    call = {"toolCallId": "c1", "title": "edit", "kind": "edit", "content": [diff]}
    request = wire.ask(9, toolCall=call)
    assert frames(wire.machine.answer(request.id, PermissionAnswer(kind=kind)))


def is_served(outputs: list[Output]) -> bool:
    return [type(each) for each in outputs] == [Serve]


def playing() -> Wire:
    wire = ready()
    wire.turn()
    return wire


def test_a_write_is_a_request_that_shows_the_whole_text() -> None:
    request = only(write(playing()), RequestOpened)
    assert (request.kind, request.tool_kind) == ("permission", "edit")
    assert request.input == {"path": PATH, "content": "new\n"}
    assert [each.kind for each in request.options] == ["allow_once", "allow_session", "deny"]


def test_an_approved_write_is_made_and_then_answered() -> None:
    wire = playing()
    request = only(write(wire), RequestOpened)
    (serve,) = wire.machine.answer(request.id, PermissionAnswer(kind="allow_once"))
    assert isinstance(serve, Serve)
    assert (serve.method, serve.params["path"]) == ("fs/write_text_file", PATH)
    (frame,) = frames(wire.machine.served(serve.id, {}, ""))
    assert frame == {"jsonrpc": "2.0", "id": 0, "result": {}}
    assert not is_served(write(wire))


def test_a_refused_write_is_an_error_with_the_sentence() -> None:
    wire = playing()
    request = only(write(wire), RequestOpened)
    answer = PermissionAnswer(kind="deny", message="the profile may only read")
    (frame,) = frames(wire.machine.answer(request.id, answer))
    assert frame["error"] == {"code": -32603, "message": "the profile may only read"}
    assert refusals(wire.machine.answer(request.id, PermissionAnswer(kind="allow_once")))


def test_a_refusal_that_interrupts_ends_the_turn_too() -> None:
    wire = playing()
    request = only(write(wire), RequestOpened)
    answer = PermissionAnswer(kind="deny", interrupt=True)
    error, cancel = frames(wire.machine.answer(request.id, answer))
    assert "error" in error
    assert cancel["method"] == "session/cancel"


def test_an_answer_of_another_kind_is_refused() -> None:
    wire = playing()
    request = only(write(wire), RequestOpened)
    assert refusals(wire.machine.answer(request.id, ElicitationAnswer(action="accept")))
    assert wire.machine.answer(request.id, PermissionAnswer(kind="allow_once"))


def test_an_approval_for_the_session_holds_until_the_permission_changes() -> None:
    wire = playing()
    request = only(write(wire), RequestOpened)
    wire.machine.answer(request.id, PermissionAnswer(kind="allow_session"))
    assert is_served(write(wire, 1, "/w/b", "x"))
    wire.machine.set_permission("ask")
    assert not is_served(write(wire, 2, "/w/b", "x"))


def test_a_text_that_was_approved_as_a_change_is_written_once_without_asking_again() -> None:
    wire = playing()
    approve_diff(wire)
    assert is_served(write(wire))
    assert not is_served(write(wire, 1))


@pytest.mark.parametrize(
    "written",
    [(PATH, "other"), ("/w/b", "new\n"), ("/w/./a.txt", "new\n"), (PATH, "new\n\n")],
)
def test_another_text_or_file_than_the_approved_one_is_asked_for(written: tuple[str, str]) -> None:
    wire = playing()
    approve_diff(wire)
    assert not is_served(write(wire, 0, *written))


@pytest.mark.parametrize("text", ["new", "new\n"])
def test_the_last_end_of_line_need_not_be_shown(text: str) -> None:
    wire = playing()
    approve_diff(wire, text=text)
    assert is_served(write(wire))


DIFF = {"type": "diff", "path": PATH, "newText": "new\n"}


def approve(wire: Wire, permission: Permission, **call: Any) -> RequestOpened:
    """Answer as the policy does, or as a person who allows it."""
    request = wire.ask(9, toolCall={"toolCallId": "c1", "title": "Read README", **call})
    answer = decide(request, permission).answer or PermissionAnswer(kind="allow_once")
    wire.machine.answer(request.id, answer)
    return request


@pytest.mark.parametrize("kind", ["read", "search", "think"])
@pytest.mark.parametrize("is_in_input", [True, False])
def test_a_call_with_a_change_is_an_edit_as_the_agent_may_name_it(
    kind: str, is_in_input: bool
) -> None:
    raw: dict[str, Any] = {"path": "README"}
    call: dict[str, Any] = {"kind": kind, "rawInput": raw}
    (raw if is_in_input else call)["content"] = [DIFF]
    wire = playing()
    request = approve(wire, "read", **call)
    assert (request.tool_kind, request.input) == ("edit", {"path": "README", "content": [DIFF]})
    assert decide(request, "ask").kind == "ask"
    assert not is_served(write(wire))


@pytest.mark.parametrize("kind", ["fetch", "execute", "delete", "move"])
def test_a_call_of_another_kind_approves_no_change(kind: str) -> None:
    wire = playing()
    assert approve(wire, "full", kind=kind, content=[DIFF]).tool_kind == kind
    assert not is_served(write(wire))


@pytest.mark.parametrize("tool", ["mcp__aegis__aegis_list_sessions", "mcp__docs__find"])
def test_the_approval_of_a_tool_of_a_server_approves_no_change(tool: str) -> None:
    for kind in ("edit", "other"):
        wire = playing()
        approve(wire, "ask", name=tool, kind=kind, content=[DIFF])
        assert not is_served(write(wire))


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ({"path": PATH}, {"path": PATH, "content": [DIFF]}),
        ({"path": PATH, "content": "new"}, None),
        ({"path": PATH, "content": [DIFF]}, None),
        ({"path": PATH, "content": "new", "note": "x"}, None),
        ({"path": PATH, "text": "new"}, {"path": PATH, "text": "new", "content": [DIFF]}),
        ({"path": PATH, "content": "x"}, {"value": ..., "content": [DIFF]}),
        ({"content": [{**DIFF, "newText": "x"}]}, {"value": ..., "content": [DIFF]}),
    ],
)
@pytest.mark.parametrize("is_before", [True, False])
def test_a_request_shows_the_change_that_its_input_lacks(
    raw: dict[str, Any], shown: dict[str, Any] | None, is_before: bool
) -> None:
    wire = playing()
    call: dict[str, Any] = {"toolCallId": "c1", "kind": "edit", "rawInput": raw}
    if is_before:
        wire.update("tool_call", **call, title="edit")
        call = {"kind": "edit"}
    request = approve(wire, "ask", **call, content=[DIFF])
    expected = raw if shown is None else {k: raw if v is ... else v for k, v in shown.items()}
    assert request.input == expected
    assert is_served(write(wire))
    assert not is_served(write(wire, 1, content="x"))


def test_an_approved_change_of_a_part_is_shown_once_and_is_no_approval_of_a_whole_text() -> None:
    wire = playing()
    raw = {"file_path": PATH, "old_string": "old", "new_string": "new\n"}
    assert approve(wire, "ask", kind="edit", rawInput=raw, content=[DIFF]).input == raw
    assert not is_served(write(wire))


def test_an_approved_change_is_not_written_after_the_interrupt() -> None:
    wire = playing()
    approve_diff(wire)
    lasting = only(write(wire, 1, "/w/b"), RequestOpened)
    wire.machine.answer(lasting.id, PermissionAnswer(kind="allow_session"))
    wire.machine.interrupt()
    (late,) = frames(write(wire, 2))
    assert late["error"]["message"].startswith("not written")
    wire.reply("session/prompt", {"stopReason": "cancelled"})
    wire.turn("t2")
    assert is_served(write(wire, 3))


def test_a_refused_change_approves_nothing() -> None:
    wire = playing()
    approve_diff(wire, "deny")
    assert not is_served(write(wire))


def test_the_approval_of_a_change_ends_with_the_turn() -> None:
    wire = playing()
    approve_diff(wire)
    wire.reply("session/prompt", {"stopReason": "end_turn"})
    wire.turn("t2")
    assert not is_served(write(wire))


def test_the_end_of_the_turn_withdraws_an_open_write() -> None:
    wire = playing()
    request = only(write(wire), RequestOpened)
    outputs = wire.machine.interrupt()
    assert only(outputs, RequestWithdrawn).id == request.id
    assert frames(outputs)[-1]["error"]["message"].startswith("not written")
    (late,) = frames(write(wire, 1))
    assert late["error"]["message"].startswith("not written")


@pytest.mark.parametrize(
    "params",
    [
        {"path": PATH},
        {"content": "x"},
        {"path": "", "content": "x"},
        {"path": PATH, "content": 3},
        {"path": [PATH], "content": "x"},
        {"path": PATH, "content": "x", "sessionId": "other"},
    ],
)
def test_a_malformed_write_is_refused_and_nobody_is_asked(params: dict[str, Any]) -> None:
    wire = playing()
    outputs = wire.receive(id=0, method="fs/write_text_file", params={"sessionId": "ses", **params})
    (frame,) = frames(outputs)
    assert frame["error"]["code"] == -32602
    assert not any(isinstance(each, Serve) for each in outputs)


def test_the_approvals_are_bounded() -> None:
    writes = Writes()
    writes.approve({f"/w/{number}": "x" for number in range(MAX_APPROVED + 1)})
    assert not writes.take({"path": "/w/0", "content": "x"})
    assert writes.take({"path": "/w/1", "content": "x"})

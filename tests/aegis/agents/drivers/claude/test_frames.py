"""The events of each type of frame, with right, missing and wrong fields."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.claude.frames import MAX_BLOCKS, events, result_text
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    BackgroundTask,
    MessageChanged,
    RateLimit,
    Result,
    Retrying,
    StateChanged,
    SystemInit,
    TasksChanged,
    ToolProgress,
    ToolResult,
    ToolUse,
    Unknown,
    UserMessage,
)
from tests.aegis.agents.drivers.claude.wire import assistant, init, result

Json = dict[str, Any]

BASH = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
HUGE = 10**400


def user(*content: Any, **fields: Any) -> Json:
    return {"type": "user", "message": {"role": "user", "content": list(content)}, **fields}


def text(written: Any) -> Json:
    return {"type": "text", "text": written}


def tool_result(content: Any, **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content, **fields}


def system(subtype: str, **fields: Any) -> Json:
    return {"type": "system", "subtype": subtype, **fields}


def limit(**info: Any) -> Json:
    return {"type": "rate_limit_event", "rate_limit_info": info}


def lifecycle(uuid: Any, state: Any) -> Json:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (assistant(text("hi")), [AssistantText(text="hi", message="msg_1")]),
        (
            assistant(text("par"), aborted=True),
            [AssistantText(text="par", message="msg_1", aborted=True)],
        ),
        (assistant(text("")), []),
        (assistant({"type": "thinking", "thinking": "hm"}), [AssistantThinking(text="hm")]),
        (
            assistant(BASH),
            [ToolUse(id="t1", name="Bash", title="Bash", kind="execute", input={"command": "ls"})],
        ),
        (
            assistant(
                {"type": "tool_use", "id": "t2", "name": "mcp__aegis__x", "input": {}},
                tool_use_meta=[{"id": "t2", "display_name": "Term list"}, 7],
            ),
            [ToolUse(id="t2", name="mcp__aegis__x", title="Term list")],
        ),
        (assistant(text("deep"), parent_tool_use_id="t9"), [ToolProgress(id="t9", text="deep")]),
        (user(text("note")), [UserMessage(text="note")]),
        (user(text("note"), isReplay=True), [UserMessage(text="note", origin="replay")]),
        (user(text("x"), origin={"kind": "hook"}), [UserMessage(text="x", origin="hook")]),
        (user(tool_result("out")), [ToolResult(id="t1", text="out")]),
        (
            user(tool_result([text("a"), {"type": "image"}, 7, text("b")], is_error=True)),
            [ToolResult(id="t1", text="a[image][unknown]b", is_error=True)],
        ),
        ({"type": "user", "message": {"content": "plain"}}, [UserMessage(text="plain")]),
        (
            init(),
            [
                SystemInit(
                    conversation="s1", model="m", mode="default", mcp_servers={"aegis": "connected"}
                )
            ],
        ),
        (system("session_state_changed", state="idle"), [StateChanged(state="idle")]),
        (lifecycle("u1", "queued"), [MessageChanged(uuid="u1", state="queued")]),
        (limit(status="allowed"), [RateLimit(status="allowed")]),
        (limit(status="allowed_warning"), [RateLimit(status="warning")]),
        (
            limit(status="rejected", rateLimitType="five_hour", resetsAt=7),
            [RateLimit(status="rejected", kind="five_hour", resets_at=7.0)],
        ),
        (limit(status="rejected", resetsAt=HUGE), [RateLimit(status="rejected")]),
        (
            system("api_retry", attempt=1, max_retries=10, retry_delay_ms=512, error_status=529),
            [Retrying(attempt=1, attempts=10, delay_s=0.512, status=529)],
        ),
        (
            system("background_tasks_changed", tasks=[{"task_id": "b", "description": "x"}, 7]),
            [TasksChanged(tasks=["x", "task"], running=[BackgroundTask(id="b", title="x")])],
        ),
        (
            system("task_notification", tool_use_id="t1", summary="ended"),
            [ToolProgress(id="t1", text="ended")],
        ),
        ({"type": "tool_progress", "tool_use_id": "t1"}, [ToolProgress(id="t1")]),
    ],
)
def test_the_events_of_a_frame(frame: Json, expected: list[AgentEvent]) -> None:
    assert events(frame) == expected


def test_every_block_of_a_message_counts_and_one_that_cannot_be_read_is_kept() -> None:
    odd = {"type": "tool_use", "id": 0, "name": "Bash", "input": {}}
    kinds = [
        type(each) for each in events(assistant(text("a"), odd, BASH, {"type": "new"}, text("b")))
    ]
    assert kinds == [AssistantText, Unknown, ToolUse, Unknown, AssistantText]
    assert events(assistant(odd)) == [Unknown(kind="assistant/tool_use", raw=odd)]
    assert events(user(7)) == [Unknown(kind="user/", raw={"block": 7})]


def test_blocks_over_the_limit_are_kept_in_one_event() -> None:
    found = events(assistant(*[text(str(number)) for number in range(MAX_BLOCKS + 5)]))
    assert len(found) == MAX_BLOCKS + 1
    assert isinstance(found[-1], Unknown)
    assert found[-1].raw["blocks"][0] == text(str(MAX_BLOCKS))


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"type": None},
        {"type": ["assistant"]},
        {"type": "something_new"},
        {"type": "assistant"},
        {"type": "assistant", "message": []},
        {"type": "user", "message": {"content": 7}},
        {"type": "stream_event", "event": {}},
        {"type": "system"},
        {"type": "system", "subtype": {"a": 1}},
        {"type": "conversation_reset", "new_conversation_id": "x"},
        init(session_id=0),
        init(session_id="s" * 501),
        system("session_state_changed", state=["idle"]),
        system("session_state_changed"),
        system("api_retry", attempt=True),
        system("api_retry", attempt=-1),
        system("background_tasks_changed", tasks="x"),
        system("task_notification", tool_use_id=7),
        lifecycle("", "queued"),
        lifecycle("u1", "lost"),
        lifecycle(0, 0),
        limit(status=7),
        {"type": "rate_limit_event"},
        {"type": "tool_progress"},
    ],
)
def test_a_frame_that_nothing_describes_is_kept_whole(frame: Json) -> None:
    [event] = events(frame)
    assert isinstance(event, Unknown)
    assert event.raw == frame


@pytest.mark.parametrize(
    ("fields", "ok", "reason"),
    [
        ({}, True, "completed"),
        ({"is_error": True, "terminal_reason": "api_error"}, False, "api_error"),
        ({"is_error": True}, False, "completed"),
        ({"is_error": None}, False, "completed"),
        ({"is_error": 0}, False, "completed"),
        ({"terminal_reason": "aborted_tools"}, False, "aborted_tools"),
        ({"terminal_reason": None}, False, "success"),
        ({"terminal_reason": None, "num_turns": 0}, False, "success"),
        (
            {"subtype": "error_max_budget_usd", "terminal_reason": None},
            False,
            "error_max_budget_usd",
        ),
        ({"subtype": "error_during_execution"}, False, "completed"),
        ({"subtype": None, "terminal_reason": 7}, False, "unknown"),
    ],
)
def test_a_turn_succeeds_only_if_all_three_fields_say_so(
    fields: Json, ok: bool, reason: str
) -> None:
    [event] = events(result("u1", **fields))
    assert isinstance(event, Result)
    assert (event.ok, event.reason) == (ok, reason)


@pytest.mark.parametrize(
    ("fields", "ok"),
    [
        ({"num_turns": 0}, True),
        ({"num_turns": 0, "is_error": True}, False),
        ({"num_turns": 1}, False),
        ({}, False),
    ],
)
def test_a_command_that_asked_no_model_needs_no_reason_to_succeed(fields: Json, ok: bool) -> None:
    frame = result("u1", **fields)
    del frame["terminal_reason"]
    [event] = events(frame)
    assert isinstance(event, Result)
    assert event.ok is ok


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"user_message_uuids": ["u1", "u2"], "user_message_uuid": "u2"}, ["u1", "u2"]),
        ({"user_message_uuids": [], "user_message_uuid": "u2"}, ["u2"]),
        ({"user_message_uuids": None}, []),
        ({"user_message_uuids": ["", 0, None, "u1"]}, ["u1"]),
        ({"user_message_uuids": "u1"}, []),
    ],
)
def test_a_result_answers_the_messages_that_it_names(fields: Json, messages: list[str]) -> None:
    [event] = events({**result(), **fields})
    assert isinstance(event, Result)
    assert event.messages == messages


def test_a_turn_of_the_agents_own_has_an_origin_and_a_failed_one_its_errors() -> None:
    own = {"origin": {"kind": "task-notification"}, "result": None, "errors": ["a", 7, "b"]}
    [event] = events(result(**own))
    assert isinstance(event, Result)
    assert (event.origin, event.messages, event.text) == ("task-notification", [], "a; ; b")


@pytest.mark.parametrize("content", [None, 7, {}, [], [None], {"text": "x"}])
def test_a_tool_result_without_text_is_empty_or_named(content: object) -> None:
    assert result_text(content) in ("", "[unknown]")

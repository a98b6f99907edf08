"""Each kind of update as typed events, and what agents do differently."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aegis.agents.drivers.acp.updates import (
    MAX_CALLS,
    MAX_REMEMBERED_CHARS,
    MAX_TERMINALS,
    Accounting,
    Updates,
    turn_tokens,
)
from aegis.agents.drivers.providers import BY_NAME
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    Plan,
    PlanStep,
    StateChanged,
    ToolProgress,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
    UserMessage,
)


def take(kind: str, /, **fields: Any) -> list[AgentEvent]:
    return Updates().take({"sessionUpdate": kind, **fields})


def content(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("kind", "fields", "event"),
    [
        (
            "agent_message_chunk",
            {"content": TEXT, "messageId": "m1"},
            AssistantText(text="hi", message="m1"),
        ),
        ("agent_message_chunk", {"content": TEXT}, AssistantText(text="hi", message="text-0")),
        ("agent_thought_chunk", {"content": TEXT}, AssistantThinking(text="hi")),
        ("user_message_chunk", {"content": TEXT}, UserMessage(text="hi")),
        (
            "agent_message_chunk",
            {"content": {"type": "resource_link", "uri": "file:///a", "name": "a"}},
            AssistantText(text="file:///a", message="text-0"),
        ),
        (
            "plan",
            {
                "entries": [
                    {"content": "a", "status": "completed", "priority": "high"},
                    {"content": "b", "status": "in_progress"},
                    {"content": "c", "status": "pending"},
                    {"content": "d", "status": "unheard_of"},
                    None,
                ]
            },
            Plan(
                steps=[
                    PlanStep(text="a", status="completed"),
                    PlanStep(text="b", status="in_progress"),
                    *(PlanStep(text="c"), PlanStep(text="d"), PlanStep(text="")),
                ]
            ),
        ),
        ("plan", {"entries": 3}, Plan(steps=[])),
        (
            "session_info_update",
            {"_meta": {"codex": {"threadStatus": {"type": "active", "activeFlags": []}}}},
            StateChanged(state="running"),
        ),
        (
            "session_info_update",
            {"_meta": {"codex": {"threadStatus": {"type": "active", "activeFlags": ["x"]}}}},
            StateChanged(state="requires_action"),
        ),
        (
            "session_info_update",
            {"_meta": {"codex": {"threadStatus": {"type": "idle"}}}},
            StateChanged(state="idle"),
        ),
    ],
)
def test_an_update_is_one_event(kind: str, fields: dict[str, Any], event: AgentEvent) -> None:
    assert take(kind, **fields) == [event]


def test_the_list_of_opencode_is_a_plan_each_time_that_it_is_written() -> None:
    updates, call = Updates(), {"toolCallId": "c1", "title": "todowrite", "kind": "other"}
    assert Plan(steps=[]) not in updates.take({"sessionUpdate": "tool_call", **call})
    written = {"todos": [{"content": "Test", "status": "in_progress", "id": "1"}]}
    update = {"sessionUpdate": "tool_call_update", **call, "rawInput": written}
    assert updates.take(update)[-1] == Plan(steps=[PlanStep(text="Test", status="in_progress")])
    assert not any(
        isinstance(each, Plan) for each in updates.take({**update, "status": "completed"})
    )
    other = {**update, "toolCallId": "c2", "title": "another"}
    assert not any(isinstance(each, Plan) for each in updates.take(other))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("agent_message_chunk", {"content": {"type": "image", "data": "…"}}),
        ("agent_message_chunk", {"content": "hi"}),
        ("agent_message_chunk", {}),
        ("available_commands_update", {"availableCommands": []}),
        ("session_info_update", {"title": "x"}),
        ("compaction_update", {}),
        ("tool_call", {"title": "no id"}),
        ("tool_call_update", {"toolCallId": 3}),
        ("tool_call_update", {"toolCallId": ""}),
    ],
)
def test_an_update_that_no_event_describes_is_kept(kind: str, fields: dict[str, Any]) -> None:
    raw = {"sessionUpdate": kind, **fields}
    assert take(kind, **fields) == [Unknown(kind=kind, raw=raw)]


def chunks(*updates: tuple[str, dict[str, Any]]) -> list[str]:
    """Return the texts of the messages that the updates are chunks of, a turn of them."""
    parser, texts = Updates(), dict[str, str]()
    for kind, fields in updates:
        for event in parser.take({"sessionUpdate": kind, **fields}):
            if isinstance(event, AssistantText):
                texts[event.message] = texts.get(event.message, "") + event.text
    return [*texts.values()]


def said(text: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "agent_message_chunk", {"content": {"type": "text", "text": text}, **fields}


NOTICE = {"_meta": {"claudeCode": {"kind": "informational"}}}
CALL = ("tool_call", {"toolCallId": "c1", "title": "touch a", "kind": "execute"})
DONE = ("tool_call_update", {"toolCallId": "c1", "status": "completed"})


def test_chunks_without_an_id_are_one_message_until_something_else_comes() -> None:
    thought = ("agent_thought_chunk", {"content": TEXT})
    person = ("user_message_chunk", {"content": TEXT})
    assert chunks(said("a "), said("b "), thought, said("c")) == ["a b c"]
    assert chunks(said("a"), CALL, said("b"), DONE, said("c")) == ["a", "b", "c"]
    assert chunks(said("a"), person, said("b")) == ["a", "b"]
    named = {"messageId": "m1"}
    assert chunks(said("a"), said("b", **named), said("c"), said("d")) == ["a", "b", "cd"]
    assert chunks(said("a", **named), said("b", **named)) == ["ab"]
    assert chunks(said("a", **NOTICE), said("b", **NOTICE), said("c")) == ["a", "b", "c"]


def test_a_message_without_an_id_ends_with_its_turn() -> None:
    updates = Updates()
    kind, fields = said("a")
    (first,) = updates.take({"sessionUpdate": kind, **fields})
    updates.end_turn()
    (second,) = updates.take({"sessionUpdate": kind, **fields})
    assert isinstance(first, AssistantText)
    assert isinstance(second, AssistantText)
    assert first.message != second.message


# Tool calls.


def test_a_call_is_replaced_when_more_is_known_of_it() -> None:
    updates = Updates()
    call = {"sessionUpdate": "tool_call", "toolCallId": "c1", "name": "Bash", "title": "Terminal"}
    more = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "touch a"}
    given = {"command": "touch a"}
    (first,) = updates.take({**call, "kind": "execute", "rawInput": {}})
    (second,) = updates.take({**more, "rawInput": given})
    assert first == ToolUse(id="c1", name="Bash", title="Terminal", kind="execute")
    assert second == ToolUse(id="c1", name="Bash", title="touch a", kind="execute", input=given)
    again = {**more, "rawInput": given, "content": content("…")}
    assert updates.take(again) == [ToolProgress(id="c1", text="…")]


def test_a_result_can_be_the_first_that_is_known_of_a_call() -> None:
    events = take(
        "tool_call_update",
        toolCallId="c1",
        status="completed",
        title="touch a",
        kind="execute",
        content=content("done"),
    )
    assert events == [
        ToolUse(id="c1", name="", title="touch a", kind="execute"),
        ToolResult(id="c1", text="done"),
    ]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"rawOutput": "plain", "content": content("```\nplain\n```")}, "plain"),
        ({"content": content("a") + content("b")}, "a\nb"),
        ({"content": [{"type": "diff", "path": "/w/a", "newText": "x"}]}, "changed /w/a"),
        ({"rawOutput": {"output": "(no output)", "metadata": {"exit": 0}}}, "(no output)"),
        ({"rawOutput": {"error": "no"}}, "no"),
        ({"rawOutput": [{"type": "text", "text": "x"}]}, "x"),
        (
            {"rawOutput": {"result": {"content": [{"type": "text", "text": "x"}]}, "error": None}},
            "x",
        ),
        ({"rawOutput": {"unheard": "of"}}, ""),
        ({"rawOutput": 3, "content": "x"}, ""),
        ({}, ""),
    ],
)
def test_the_text_of_a_result_is_found(fields: dict[str, Any], text: str) -> None:
    result = take("tool_call_update", toolCallId="c1", status="failed", **fields)[-1]
    assert result == ToolResult(id="c1", text=text, is_error=True)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"name": "Bash"}, "Bash"),
        ({"_meta": {"claudeCode": {"toolName": "Bash"}}}, "Bash"),
        (
            {
                "_meta": {"is_mcp_tool_call": True},
                "rawInput": {"server": "aegis", "tool": "aegis_term_run"},
            },
            "mcp__aegis__aegis_term_run",
        ),
        ({"_meta": {"is_mcp_tool_call": True}, "rawInput": {"server": "aegis"}}, ""),
        ({"rawInput": {"server": "aegis", "tool": "aegis_term_run"}}, ""),
        ({"title": "Shell: ls"}, ""),
        ({"name": ["x"], "_meta": "x"}, ""),
    ],
)
def test_a_name_is_what_the_agent_names_and_never_its_title(
    fields: dict[str, Any], name: str
) -> None:
    (use,) = take("tool_call", toolCallId="c1", **fields)
    assert isinstance(use, ToolUse)
    assert use.name == name


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ({"rawInput": {"a": 1}}, {"a": 1}),
        ({"rawInput": [1]}, {"value": [1]}),
        ({"content": content('{"command": "ls"}')}, {"command": "ls"}),
        ({"content": content("[1]")}, {}),
        ({"content": content("{broken")}, {}),
        ({"content": content("{" * 100_000)}, {}),
        ({"content": content('{"a":' * 5000)}, {}),
        ({"content": content('{"a": 1}') * 2}, {}),
        ({"rawInput": None, "content": None}, {}),
    ],
)
def test_the_input_of_a_call(fields: dict[str, Any], given: dict[str, Any]) -> None:
    (use,) = take("tool_call", toolCallId="c1", **fields)
    assert isinstance(use, ToolUse)
    assert use.input == given


def test_only_our_terminals_are_shown() -> None:
    updates = Updates()
    updates.own_terminal("term_1")
    shown = [{"type": "terminal", "terminalId": each} for each in ("c1", "term_1", "", 3)]
    update = {"sessionUpdate": "tool_call", "toolCallId": "c1", "content": shown}
    assert updates.take(update)[1:] == [ToolProgress(id="c1", terminal="term_1")]


def test_what_is_remembered_is_limited() -> None:
    updates = Updates()
    for i in range(MAX_CALLS + 1):
        updates.take({"sessionUpdate": "tool_call", "toolCallId": str(i), "title": "x"})
    assert updates.known("0") is None
    assert updates.known("1") is not None
    assert len(updates.end_turn()) == MAX_CALLS
    assert updates.known("1") is None
    long = {"command": ["x" * 1000] * (MAX_REMEMBERED_CHARS // 1000 + 1)}
    (use,) = updates.take({"sessionUpdate": "tool_call", "toolCallId": "c", "rawInput": long})
    assert isinstance(use, ToolUse)
    assert use.input == long
    known = updates.known("c")
    assert known is not None
    assert known.input == {}
    for i in range(MAX_TERMINALS + 1):
        updates.own_terminal(str(i))
    first = [{"type": "terminal", "terminalId": "0"}]
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": first}
    assert updates.take(update) == [ToolProgress(id="c")]


# Usage.


@pytest.mark.parametrize(
    ("result", "usage"),
    [
        (  # codex: the input includes what was cached
            {
                "usage": {
                    "inputTokens": 20,
                    "outputTokens": 10,
                    "totalTokens": 30,
                    "cachedReadTokens": 15,
                    "cachedWriteTokens": 0,
                    "thoughtTokens": 4,
                }
            },
            Usage(input_tokens=20, cached_tokens=15, output_tokens=10),
        ),
        (  # claude: cached tokens are counted beside it
            {
                "usage": {
                    "inputTokens": 20,
                    "outputTokens": 10,
                    "totalTokens": 130,
                    "cachedReadTokens": 90,
                    "cachedWriteTokens": 10,
                }
            },
            Usage(input_tokens=120, cached_tokens=100, output_tokens=10),
        ),
        (  # opencode
            {"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, "_meta": {}},
            Usage(input_tokens=10, output_tokens=5),
        ),
        (  # gemini
            {"_meta": {"quota": {"token_count": {"input_tokens": 20, "output_tokens": 10}}}},
            Usage(input_tokens=20, output_tokens=10),
        ),
        ({}, None),  # kimi
        ({"usage": [], "_meta": "x"}, None),
        (
            {"usage": {"inputTokens": -1, "outputTokens": True, "totalTokens": 1.5}},
            Usage(),
        ),
    ],
)
def test_the_tokens_of_a_turn(result: dict[str, Any], usage: Usage | None) -> None:
    assert turn_tokens(result) == usage


@pytest.mark.parametrize(
    ("update", "usage"),
    [
        ({"used": 15, "size": 1000}, Usage(context_tokens=15, context_limit=1000)),
        (
            {"used": 15, "cost": {"amount": 0.5, "currency": "USD"}},
            Usage(context_tokens=15, process_cost_usd=0.5),
        ),
        ({"cost": {"amount": 1, "currency": "USD"}}, Usage(process_cost_usd=1.0)),
        ({"cost": {"amount": 0.5, "currency": "EUR"}}, Usage()),
        ({"cost": {"amount": -1, "currency": "USD"}}, Usage()),
        ({"cost": {"amount": float("nan"), "currency": "USD"}}, Usage()),
        ({"cost": {"amount": 10**400, "currency": "USD"}}, Usage()),
        ({"used": 10**400, "size": "x", "cost": 3}, Usage()),
    ],
)
def test_a_usage_update(update: dict[str, Any], usage: Usage) -> None:
    assert Accounting().update(update) == usage


def test_events_of_updates_are_plain_json() -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "c1", "rawInput": {"a": ["\udc80"]}}
    (use,) = Updates().take(update)
    assert isinstance(use, ToolUse)
    assert json.loads(json.dumps(use.input)) == {"a": ["\udc80"]}


SHELL_TITLE = "aegis_term_read (aegis MCP Server)"


@pytest.mark.parametrize(
    ("agent", "fields", "tool"),
    [
        ("gemini", {"title": SHELL_TITLE, "kind": "other"}, "mcp__aegis__aegis_term_read"),
        # The title of a shell command is the command.
        ("gemini", {"title": SHELL_TITLE, "kind": "execute"}, ""),
        ("gemini", {"title": "aegis_term_read (other MCP Server)", "kind": "other"}, ""),
        ("gemini", {"title": f"{SHELL_TITLE}; rm -r /", "kind": "other"}, ""),
        ("gemini", {"title": f"x {SHELL_TITLE}", "kind": "other"}, ""),
        ("kimi", {"title": 'aegis_term_read: {"name": \n"x"}'}, "mcp__aegis__aegis_term_read"),
        ("kimi", {"title": "aegis_term_list"}, "mcp__aegis__aegis_term_list"),
        ("kimi", {"title": "Shell: aegis_term_list"}, ""),
        ("kimi", {"title": "aegis_term_list && rm -r /"}, ""),
        ("codex", {"title": SHELL_TITLE, "kind": "other"}, ""),
    ],
)
def test_a_tool_of_ours_is_named_by_its_title_only_where_no_other_call_can_have_it(
    agent: str, fields: dict[str, Any], tool: str
) -> None:
    updates = Updates(BY_NAME[agent].own_title)
    (use,) = updates.describe({"toolCallId": "a", "content": content('{"name": "x"}'), **fields})
    assert isinstance(use, ToolUse)
    assert (use.name, use.input) == (tool, {"name": "x"} if tool else {})

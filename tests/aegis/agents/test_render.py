"""Events shown to people: every class, escaped and bounded."""

from __future__ import annotations

import unicodedata
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aegis.agents.render import MAX_CHARS, segments_of
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    CommandsChanged,
    CommandSent,
    ConversationChanged,
    MessageChanged,
    ModelsOffered,
    OfferedModel,
    Plan,
    PlanStep,
    RateLimit,
    RequestOpened,
    RequestWithdrawn,
    Result,
    Retrying,
    SlashCommand,
    StartNotice,
    StateChanged,
    SystemInit,
    TasksChanged,
    TerminalEnded,
    TerminalOutput,
    TerminalStarted,
    TooLarge,
    ToolProgress,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
    UserMessage,
)

LINES = "\n".join(str(number) for number in range(30))

SHOWN: list[tuple[AgentEvent, str]] = [
    (
        SystemInit(conversation="c", version="2.1.330", model="opus", mcp_servers={"aegis": "ok?"}),
        "started: 2.1.330, opus\nMCP server aegis: ok?",
    ),
    (
        SystemInit(conversation="c", mcp_servers={"aegis": "connected"}),
        "started: no details",
    ),
    (AssistantText(text="Hello\n  you"), "Hello\n  you"),
    (AssistantText(text="Hel", aborted=True), "Hel [interrupted]"),
    (AssistantThinking(text="Hm."), "Hm."),
    (
        ToolUse(id="1", name="Bash", title="touch é", input={"command": "touch é"}),
        '● touch é (Bash)\n{"command": "touch é"}',
    ),
    (ToolUse(id="1", name="Bash"), "● Bash"),
    (ToolUse(id="1", name="Bash", title="Bash"), "● Bash"),
    (ToolUse(id="1", name=""), "● a tool"),
    (ToolProgress(id="1", text=LINES), "\n".join(LINES.split("\n")[-20:])),
    (ToolResult(id="1", text="done\n"), "done"),
    (ToolResult(id="1", text=""), "(no output)"),
    (ToolResult(id="1", text=LINES), "\n".join([*LINES.split("\n")[:20], "[10 lines more]"])),
    (
        TerminalEnded(terminal="term_1_1", command="make", output="a\nb\n", exit_code=2),
        "$ make\na\nb\n[exit 2]",
    ),
    (
        TerminalEnded(terminal="t", command="yes", output="y\n", truncated=True, signal="SIGTERM"),
        "$ yes\n…\ny\n[SIGTERM]",
    ),
    (TerminalStarted(terminal="t", command="make\n"), "$ make<U+000A>"),
    (TerminalOutput(terminal="t", output=LINES), "\n".join(LINES.split("\n")[-20:])),
    (TerminalEnded(terminal="t", command="true", output="", exit_code=0), "$ true\n[exit 0]"),
    (
        Plan(
            steps=[
                PlanStep(text="a", status="completed"),
                PlanStep(text="b", status="in_progress"),
                PlanStep(text="c"),
            ]
        ),
        "☑ a\n▶ b\n☐ c",
    ),
    (
        RateLimit(status="rejected", kind="five_hour", resets_at=1_800_000_000),
        "usage limit reached (five_hour) until 2027-01-15 08:00 UTC",
    ),
    (RateLimit(status="warning"), "usage limit is near"),
    (RateLimit(status="rejected", resets_at=1e30), "usage limit reached until an unknown time"),
    (
        Retrying(attempt=2, attempts=10, delay_s=4.6, status=529),
        "a request to the model failed with 529: attempt 2 of 10 in 5 s",
    ),
    (
        Result(messages=[], ok=False, reason="api_error", text="Overloaded"),
        "the turn ended with api_error: Overloaded",
    ),
    (Result(messages=[], ok=False, reason=""), "the turn ended with an error"),
    (UserMessage(text="Do it", origin="turn"), "→ Do it"),
    (UserMessage(text="Done", origin="task"), "→ (task) Done"),
    (TasksChanged(tasks=["a", "b"]), "in the background: a, b"),
    (
        TasksChanged(tasks=[str(number) for number in range(12)]),
        "in the background: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
    ),
    (
        RequestOpened(id="0", kind="permission", tool="Bash", reason="new", input={"a": [1]}),
        'permission asked: Bash\nnew\n{"a": [1]}',
    ),
    (RequestOpened(id="", kind="login", title="Log in"), "login asked: Log in"),
    (RequestWithdrawn(id="0", reason="interrupted"), "a request was withdrawn: interrupted"),
    (
        ConversationChanged(how="cleared", conversation="c2"),
        "the conversation was cleared: c2",
    ),
    (
        ConversationChanged(
            how="compacted", conversation="c1", by_agent=True, before=900, after=100
        ),
        "the conversation was compacted by the agent itself, 900 → 100 tokens: c1",
    ),
    (StartNotice(text="no\x1b tools"), "no<U+001B> tools"),
    (CommandSent(name="compact"), "/compact: its own command"),
    (CommandSent(name="x", as_text=True), "/x: it has no such command: sent as text"),
    (
        TooLarge(kind="user", size=20 * 2**20),
        "user is too large, 20.0 MiB: only a part of it is kept",
    ),
    (Unknown(kind="news", raw={"a": 1}), "an event of an unknown type, news"),
]

HIDDEN: list[AgentEvent] = [
    AssistantText(text=""),
    AssistantThinking(text=""),
    ToolProgress(id="1"),
    Plan(steps=[]),
    RateLimit(status="allowed"),
    Result(messages=["u"], ok=True, reason="completed"),
    TasksChanged(tasks=[]),
    Usage(input_tokens=5),
    StateChanged(state="idle"),
    MessageChanged(uuid="u", state="queued"),
    CommandsChanged(commands=[SlashCommand(name="compact")]),
    ModelsOffered(models=[OfferedModel(name="opus")]),
]


def shown(event: AgentEvent) -> str:
    return "".join(segment.text for segment in segments_of(event))


@pytest.mark.parametrize(("event", "text"), SHOWN)
def test_an_event_is_shown_as_text(event: AgentEvent, text: str) -> None:
    assert shown(event) == text


@pytest.mark.parametrize("event", HIDDEN, ids=lambda event: type(event).__name__)
def test_an_event_with_nothing_to_say_is_not_shown(event: AgentEvent) -> None:
    assert segments_of(event) == []


def test_every_class_of_events_was_tried() -> None:
    tried = {type(event) for event in (*(event for event, _ in SHOWN), *HIDDEN)}
    assert tried == set(get_args(AgentEvent))


HOSTILE = "[red]x[/red] [link=file:///etc/passwd]y[/link] \x1b[31m\x9b1m\u202eevil\x07\r :smile:"


def with_text(text: str) -> list[AgentEvent]:
    return [
        SystemInit(conversation=text, version=text, mcp_servers={text: text}),
        AssistantText(text=text),
        AssistantThinking(text=text),
        ToolUse(id=text, name=text, title=text + "!", input={text: [text]}),
        ToolProgress(id=text, text=text),
        ToolResult(id=text, text=text),
        TerminalStarted(terminal=text, command=text),
        TerminalOutput(terminal=text, output=text),
        TerminalEnded(terminal=text, command=text, output=text, signal=text),
        Plan(steps=[PlanStep(text=text)]),
        RateLimit(status="rejected", kind=text),
        Result(messages=[], ok=False, reason=text, text=text),
        UserMessage(text=text, origin=text),
        TasksChanged(tasks=[text]),
        RequestOpened(id=text, kind="permission", title=text, reason=text, input={"a": text}),
        RequestWithdrawn(id=text, reason=text),
        Unknown(kind=text, raw={"a": text}),
    ]


@pytest.mark.parametrize("event", with_text(HOSTILE), ids=lambda event: type(event).__name__)
def test_text_of_an_agent_is_escaped_and_otherwise_kept(event: AgentEvent) -> None:
    out = shown(event)
    assert "[red]x[/red] [link=file:///etc/passwd]y[/link]" in out
    assert ":smile:" in out
    assert not {"\x1b", "\x9b", "\u202e", "\x07", "\r"} & set(out)
    assert "<U+202E>" in out or r"\u202e" in out


HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""The categories of characters that act, or that nobody sees. Python calls others unprintable too:
the wide space of Chinese, and emoji that are newer than its tables.
"""

OF_EMOJI = {"\u200d", *map(chr, range(0xE0020, 0xE0080))}


@given(st.text(st.characters(exclude_categories=[])))
@example("\u3000\U0001f02c")
def test_any_text_is_shown_without_controls(text: str) -> None:
    for event in with_text(text):
        text_shown = shown(event)
        hidden = {each for each in text_shown if unicodedata.category(each) in HIDDEN_CATEGORIES}
        assert hidden <= {"\n", "\t", *OF_EMOJI}
        text_shown.encode()


@pytest.mark.long
def test_a_huge_text_is_shown_by_its_beginning_and_its_length() -> None:
    text = "x" * (MAX_CHARS + 5)
    assert segments_of(AssistantText(text=text))[0].text == text[:-5] + "… [5 characters more]"
    for event in with_text("\u202e" * 1_000_000):
        assert sum(len(segment.text) for segment in segments_of(event)) < 20 * MAX_CHARS


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"x"])
def test_an_input_of_any_kind_harms_nothing(value: Any) -> None:
    assert segments_of(ToolUse(id="1", name="t", input={"a": value}))
    loop: dict[str, Any] = {}
    loop["a"] = loop
    assert "no JSON" in segments_of(ToolUse(id="1", name="t", input=loop))[-1].text

"""Entries of transcripts as updates of an editor, and requests as its dialogs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aegis.acp.choices import call_of, dialogs_of
from aegis.acp.updates import TranscriptUpdates, sent_texts
from aegis.client.agent_kinds import SessionEvent
from aegis.protocol import agent_events as ev
from aegis.protocol.requests import Choice, RequestInfo
from aegis.requests.records import MAX_WHOLE_BYTES
from tests.aegis.agents.drivers.acp.test_schema import assert_fits


def updates_of(*events: ev.AgentEvent) -> list[dict[str, Any]]:
    """The updates of events, each of which has the form of the schema."""
    updates = TranscriptUpdates()
    found = []
    for seq, event in enumerate(events, 1):
        entry = SessionEvent(seq=seq, kind="event", at="", fields={}, event=event)
        found += updates.of(entry)
    for each in found:
        assert_fits({"sessionId": "s", "update": each}, "SessionNotification")
    return found


def text_of(update: dict[str, Any]) -> str:
    return str(update["content"]["text"])


def test_chunks_of_a_message_are_joined_and_messages_are_apart() -> None:
    found = updates_of(
        ev.AssistantText(text="a", message="1"),
        ev.AssistantText(text="b", message="1"),
        ev.AssistantText(text="c", message="2"),
        ev.AssistantText(text="", message="2"),
        ev.ToolUse(id="t", name="Bash"),
        ev.AssistantText(text="d", message="3"),
        ev.AssistantText(text="e"),
        ev.AssistantText(text="f"),
    )
    texts = [text_of(each) for each in found if each["sessionUpdate"] == "agent_message_chunk"]
    assert texts == ["a", "b", "\n\nc", "d", "\n\ne", "f"]


EDIT = {"file_path": "/w/a.py", "old_string": "x", "new_string": "y"}
WRITE = {"file_path": "/w/b.py", "content": "all"}


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        (EDIT, [{"type": "diff", "path": "/w/a.py", "oldText": "x", "newText": "y"}]),
        (WRITE, [{"type": "diff", "path": "/w/b.py", "newText": "all"}]),
        (
            {"file_path": "/w/a.py", "edits": [{"old_string": "x", "new_string": "y"}]},
            [{"type": "diff", "path": "/w/a.py", "oldText": "x", "newText": "y"}],
        ),
        ({"command": "ls"}, []),
        ({"file_path": 5, "new_string": "y"}, []),
    ],
)
def test_changes_of_files_are_shown_and_stay_beside_the_result(
    given: dict[str, Any], changes: list[dict[str, Any]]
) -> None:
    call, done = updates_of(
        ev.ToolUse(id="t", name="Edit", kind="edit", input=given), ev.ToolResult(id="t", text="ok")
    )
    assert (call["sessionUpdate"], call["status"]) == ("tool_call", "in_progress")
    assert call.get("content", []) == changes
    assert call.get("locations", []) == [{"path": each["path"]} for each in changes]
    said = {"type": "content", "content": {"type": "text", "text": "ok"}}
    assert (done["status"], done["content"]) == ("completed", [*changes, said])


def test_a_terminal_is_shown_in_the_call_that_names_it() -> None:
    found = updates_of(
        ev.ToolUse(id="t", name="Bash"),
        ev.TerminalOutput(terminal="other", output="no"),
        ev.ToolProgress(id="t", terminal="term_1"),
        ev.TerminalOutput(terminal="term_1", output="a\n"),
        ev.TerminalEnded(terminal="term_1", command="x", output="a\nb\n", exit_code=1),
        ev.ToolUse(id="t", name="Bash", title="again"),
        ev.ToolResult(id="t", text="bad", is_error=True),
    )
    assert [each.get("status") for each in found] == ["in_progress", None, None, None, "failed"]
    assert {each["toolCallId"] for each in found} == {"t"}
    assert [text_of(each["content"][0]) for each in found if "content" in each] == [
        "a\n",
        "a\nb\n",
        "bad",
    ]


def test_other_events_have_their_updates() -> None:
    plan = ev.Plan(steps=[ev.PlanStep(text="one", status="completed"), ev.PlanStep(text="two")])
    command = ev.SlashCommand(name="compact", hint="[text]")
    kinds = [
        each["sessionUpdate"]
        for each in updates_of(
            plan,
            ev.Usage(context_tokens=5, context_limit=10),
            ev.Usage(input_tokens=5),
            ev.CommandsChanged(commands=[command, ev.SlashCommand(name="x", description="y")]),
            ev.AssistantThinking(text="hm"),
            ev.UserMessage(text="by hand", origin="takeover"),
            ev.UserMessage(text="shown already", origin="turn"),
            ev.ConversationChanged(how="cleared", conversation="c"),
            ev.RateLimit(status="allowed"),
            ev.Unknown(kind="x"),
            ev.Result(messages=[], ok=True, reason=""),
        )
    ]
    assert kinds == [
        "plan",
        "usage_update",
        "available_commands_update",
        "agent_thought_chunk",
        "user_message_chunk",
        "agent_thought_chunk",
    ]


def test_messages_of_a_turn_have_their_senders_but_not_the_persons() -> None:
    text = "> from human · now\nfirst\n\n> from agent:ann · now\nsecond"
    senders = [{"id": "1", "sender": "human"}, {"id": "2", "sender": "agent:ann"}]
    assert sent_texts({"text": text, "messages": senders}) == ["first", "[agent:ann] second"]
    command = {"text": "/compact x", "messages": senders[:1]}
    assert sent_texts(command) == ["/compact x"]
    assert sent_texts({}) == []


def request(**fields: Any) -> RequestInfo:
    given: dict[str, Any] = {
        "id": "a" * 12,
        "digest": "0" * 64,
        "handle": "pm",
        "session": "s",
        "turn": "1",
        "workflow": None,
        "kind": "permission",
        "tool": "Bash",
        "tool_kind": "execute",
        "title": "Run it",
        "reason": "",
        "input": {"command": "ls"},
        "excerpt": "",
        "input_bytes": 0,
        "options": [],
        "created": "",
        "state": "open",
        "answer": None,
        "scope": None,
        "by": None,
        "answered": None,
        "applied": None,
        "withdrawn": None,
    }
    return RequestInfo(**{**given, **fields})


ONCE = Choice(id="yes", name="Yes", kind="allow_once")
ALWAYS = Choice(id="yes", name="Always", kind="allow_session")
NO = Choice(id="no", name="No", kind="deny")


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({}, ["allow_once", "reject_once"]),
        ({"options": [ONCE]}, ["allow_once", "reject_once"]),
        ({"options": [ONCE, ALWAYS, NO]}, ["allow_once", "allow_always", "reject_once"]),
        (
            {"options": [ONCE, ALWAYS, NO], "no_session_scope": True},
            ["allow_once", "reject_once"],
        ),
        ({"options": [ONCE, NO], "default_to_no": True}, ["reject_once", "allow_once"]),
        ({"options": [ONCE, ALWAYS, NO], "input": None, "excerpt": "x"}, ["reject_once"]),
        ({"kind": "elicitation", "input": {"mode": "form"}}, ["reject_once"]),
        ({"kind": "login"}, ["reject_once"]),
        ({"kind": "question", "input": {"questions": [{"question": "q"}]}}, ["reject_once"]),
        ({"kind": "question", "input": {}}, ["reject_once"]),
    ],
)
def test_a_dialog_offers_what_may_be_answered(fields: dict[str, Any], kinds: list[str]) -> None:
    asked = request(**fields)
    [dialog] = dialogs_of(asked)
    assert [each.kind for each in dialog.options] == kinds
    assert len({each.id for each in dialog.options}) == len(kinds)
    shown = {
        "sessionId": "s",
        "toolCall": call_of(asked, dialog, ""),
        "options": [each.document for each in dialog.options],
    }
    assert_fits(shown, "RequestPermissionRequest")


def test_of_several_options_of_one_kind_the_chosen_one_is_named() -> None:
    other = Choice(id="other", name="Other", kind="allow_once")
    [dialog] = dialogs_of(request(options=[ONCE, other, ALWAYS, NO]))
    assert [(each.answer, each.scope, each.option) for each in dialog.options] == [
        ("allow", "once", "yes"),
        ("allow", "once", "other"),
        ("allow", "session", ""),
        ("deny", "once", ""),
    ]


def test_the_title_of_a_dialog_says_what_would_be_done() -> None:
    def title(**fields: Any) -> str:
        [dialog] = dialogs_of(request(**fields))
        return dialog.title

    assert title() == "Run it: ls"
    assert title(title="Bash", input={"command": "ls\nrm -r x"}) == "Bash: ls<U+000A>rm -r x"
    assert title(title="", tool="Write", input={"file_path": "/a", "content": "x"}) == "Write: /a"
    assert title(title="`ls`") == "`ls`"
    assert title(title="Glob", input={"pattern": 5}) == "Glob"
    assert title(title="Bash", input=None, excerpt="x") == "Bash"


def test_a_plan_is_shown_as_its_text() -> None:
    plan = request(tool_kind="plan", input={"plan": "# Do it"}, needs_person=True)
    [dialog] = dialogs_of(plan)
    shown = call_of(plan, dialog, "t")
    assert (shown["kind"], text_of(shown["content"][0])) == ("switch_mode", "# Do it")


def test_an_option_without_a_usable_label_is_left_out_of_a_question() -> None:
    odd: list[Any] = [{"description": "no label"}, {"label": 3, "description": "x"}, "a", None]
    odd += [{"label": "", "description": "x"}, {"label": "b", "description": 4}]
    questions = [{"question": "Which?", "options": [{"label": "a"}, *odd]}]
    [dialog] = dialogs_of(request(kind="question", input={"questions": questions}))
    assert [each.name for each in dialog.options] == ["a", "b", "Decline"]
    assert dialog.text == "Which?\n- b: 4"


def test_an_input_is_shown_to_its_end() -> None:
    parts = [{"a": "b"} for _ in range(4_000)]
    large = {"command": parts, "last": "rm -rf /"}
    assert len(json.dumps(large)) <= MAX_WHOLE_BYTES
    [dialog] = dialogs_of(request(input=large, reason="why"))
    reason, shown = dialog.text.split("\n")  # on one line: with breaks it would be too long
    assert (reason, json.loads(shown)) == ("why", large)
    [dialog] = dialogs_of(request(input={"command": "x" * 90_000, "last": "y"}))
    assert json.loads(dialog.text)["last"] == "y"


def test_each_question_is_a_dialog_with_its_labels() -> None:
    def asked(text: str, **more: object) -> dict[str, object]:
        labels = [{"label": "Red", "description": "warm"}, {"label": "Blue"}]
        return {"question": text, "options": labels, **more}

    both = request(kind="question", input={"questions": [asked("One?"), asked("Two?")]})
    dialogs = dialogs_of(both)
    assert [each.question for each in dialogs] == ["One?", "Two?"]
    assert [each.value for each in dialogs[0].options] == ["Red", "Blue", ""]
    assert dialogs[0].text == "One?\n- Red: warm"
    several = request(kind="question", input={"questions": [asked("One?", multiSelect=True)]})
    assert [each.answer for each in dialogs_of(several)[0].options] == ["deny"]

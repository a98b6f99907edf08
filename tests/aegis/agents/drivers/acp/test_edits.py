"""The changes of files that agents show: in the events of a session, and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.drivers.acp.updates import (
    MAX_EDIT_CHARS,
    MAX_EDITS,
    MAX_REMEMBERED_CHARS,
    Updates,
    edits_in,
    with_edits,
)
from aegis.protocol.agent_events import AgentEvent, ToolResult, ToolUse
from tests.aegis.agents.drivers.acp.player import RECORDINGS

PATH = "/home/user/project/a.txt"


def diff(old: str | None, new: str, path: str = PATH) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def edit(old: str, new: str, path: str = PATH) -> dict[str, Any]:
    return {"file_path": path, "old_string": old, "new_string": new}


def recorded(agent: str) -> list[AgentEvent]:
    """The events of one agent's recorded calls."""
    updates = Updates()
    lines = (RECORDINGS / "edits.jsonl").read_text(encoding="utf-8").splitlines()
    calls = [each["call"] for each in map(json.loads, lines) if each["agent"] == agent]
    assert len(calls) == 4
    return [event for call in calls for event in updates.call(call)]


def inputs(events: list[AgentEvent]) -> list[dict[str, Any]]:
    return [each.input for each in events if isinstance(each, ToolUse)]


def test_gemini_shows_its_changes_with_its_request_and_they_are_not_repeated() -> None:
    events = recorded("gemini")
    assert inputs(events) == [edit("", "made\n"), edit("made\n", "changed\n")]
    assert [type(each) for each in events] == [ToolUse, ToolResult] * 2


def test_kimi_shows_a_change_with_its_result_and_its_input_stays() -> None:
    written, before, after = inputs(recorded("kimi"))
    assert written == {"path": PATH, "content": "made\n"}  # the change is its content
    assert before == {"path": PATH, "edit": {"old": "made", "new": "changed"}}
    assert after == before | edit("made", "changed")


def test_a_later_input_keeps_the_change_and_a_permission_shows_what_the_agent_gave() -> None:
    updates = Updates()
    updates.call({"toolCallId": "c1", "title": "edit", "content": [diff("a", "b")]})
    (use, *_) = updates.call({"toolCallId": "c1", "rawInput": {"filePath": "a"}})
    assert isinstance(use, ToolUse)
    assert use.input == {"filePath": "a"} | edit("a", "b")
    known = updates.known("c1")
    assert known is not None
    assert known.input == {"filePath": "a"}


def test_a_change_of_several_files_is_a_list() -> None:
    parts = [diff(None, "new", "/a"), {"type": "content"}, diff("x", "y", "/b")]
    edits = edits_in(parts)
    assert edits == [edit("", "new", "/a"), edit("x", "y", "/b")]
    assert with_edits({"changes": 2}, edits) == {"changes": 2, "edits": edits}


@pytest.mark.parametrize("own", ["old_string", "new_string", "edits", "diff", "content"])
def test_an_input_that_shows_its_change_is_left_alone(own: str) -> None:
    assert with_edits({own: "x"}, [edit("a", "b")]) == {own: "x"}


def test_a_whole_file_is_shown_as_its_change_with_some_lines_around_it() -> None:
    lines = [f"{number}\n" for number in range(100)]
    changed = [*lines[:50], "fifty\n", *lines[51:]]
    (shown,) = edits_in([diff("".join(lines), "".join(changed))])
    assert shown["old_string"] == "".join(lines[47:54])
    assert shown["new_string"] == "".join([*lines[47:50], "fifty\n", *lines[51:54]])
    assert "truncated" not in shown


texts = st.text("ab\n", max_size=40)


@given(texts, texts)
def test_only_lines_that_both_texts_have_are_omitted(old: str, new: str) -> None:
    (shown,) = edits_in([diff(old, new)])
    before, after = shown["old_string"], shown["new_string"]
    missing = len(old) - len(before)
    assert missing == len(new) - len(after)
    assert any(
        old == head + before + tail and new == head + after + tail
        for at in range(missing + 1)
        for head, tail in [(old[:at], old[len(old) - (missing - at) :])]
    )


def test_the_texts_of_all_changes_are_bounded_together() -> None:
    edits = edits_in([diff(f"{number}" * MAX_EDIT_CHARS, "x") for number in range(2 * MAX_EDITS)])
    assert len(edits) == MAX_EDITS
    assert all(each["truncated"] for each in edits)
    sizes = [len(each["old_string"]) + len(each["new_string"]) for each in edits]
    assert sum(sizes) <= MAX_EDIT_CHARS
    assert sizes[0] >= MAX_EDIT_CHARS // 2


def test_a_call_with_a_long_input_is_not_remembered_with_its_change() -> None:
    updates = Updates()
    given_ = {"patch": "x" * (MAX_REMEMBERED_CHARS + 1)}
    updates.call({"toolCallId": "c1", "rawInput": given_, "content": [diff("a", "b")]})
    assert updates.call({"toolCallId": "c1", "status": "completed"}) == [
        ToolResult(id="c1", text="")
    ]


@pytest.mark.parametrize(
    "content",
    [None, "x", [None], [{"type": "diff"}], [{"type": "diff", "path": 3, "newText": ["x"]}]],
)
def test_a_change_of_another_form_breaks_nothing(content: object) -> None:
    assert edits_in(content) in ([], [edit("", "", "")])

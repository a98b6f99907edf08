"""The files that two sessions have changed."""

from __future__ import annotations

import pytest

from aegis.agents.sessions.edited_files import (
    MAX_CALLS,
    MAX_CONFLICTS,
    MAX_FILES,
    EditCalls,
    EditedFiles,
)
from aegis.protocol import agent_events as ev
from aegis.protocol.agent_states import EditConflict


def named(name: str) -> dict[str, str]:
    return {"file_path": name, "old_string": "", "new_string": "x"}


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        (named("/a"), ["/a"]),
        ({"notebook_path": "/b"}, ["/b"]),
        ({"edits": [named("/a"), named("/b"), named("/a")]}, ["/a", "/b"]),
        ({"file_path": 5, "edits": "x"}, []),
        ({"file_path": "/\0", "edits": [None, 5]}, []),
    ],
)
def test_a_call_counts_once_it_has_changed_the_file(
    given: dict[str, object], paths: list[str]
) -> None:
    calls = EditCalls()
    assert calls.take(ev.ToolUse(id="1", name="Edit", kind="edit", input=given)) == []
    assert calls.take(ev.ToolResult(id="2", text="")) == []
    assert calls.take(ev.ToolResult(id="1", text="")) == paths
    assert calls.take(ev.ToolResult(id="1", text="")) == []


def test_what_failed_or_reads_or_is_too_much_does_not_count() -> None:
    calls = EditCalls()
    calls.take(ev.ToolUse(id="1", name="Read", kind="read", input=named("/a")))
    calls.take(ev.ToolUse(id="2", name="Edit", kind="edit", input=named("/a")))
    assert calls.take(ev.ToolResult(id="1", text="")) == []
    assert calls.take(ev.ToolResult(id="2", text="", is_error=True)) == []
    for number in range(MAX_CALLS + 1):
        calls.take(ev.ToolUse(id=str(number), name="Edit", kind="edit", input=named("/a")))
    assert calls.take(ev.ToolResult(id=str(MAX_CALLS), text="")) == []


def test_both_hear_of_it_once_under_their_names_of_now() -> None:
    files, names = EditedFiles(), {"1": "ann", "2": "bob"}
    assert files.note("1", lambda: names["1"], "/a") == []
    assert files.note("1", lambda: names["1"], "/a") == []
    assert (files.take_note("1"), files.of("1"), files.take_note("3")) == ("", [], "")
    assert files.note("2", lambda: names["2"], "/b") == []
    assert files.note("2", lambda: names["2"], "/a") == ["2", "1"]
    assert files.note("2", lambda: names["2"], "/a") == []
    names["2"] = "eve"
    assert files.of("1") == [EditConflict(path="/a", handles=["eve"])]
    assert files.take_note("1").splitlines()[-1] == "- '/a': eve"
    assert files.take_note("2").splitlines()[-1] == "- '/a': ann"
    assert (files.take_note("1"), files.take_note("2")) == ("", "")
    assert files.of("2") == [EditConflict(path="/a", handles=["ann"])], "it is still shown"
    assert files.note("3", lambda: "kim", "/a") == ["3", "1", "2"]
    assert files.take_note("1").splitlines()[-1] == "- '/a': eve, kim"
    files.return_note("1")
    assert files.take_note("1").splitlines()[-1] == "- '/a': eve, kim"
    files.return_note("1")
    files.close("2")
    assert files.of("1") == [EditConflict(path="/a", handles=["kim"])]
    files.close("3")
    assert (files.of("1"), files.take_note("1"), files.of("3")) == ([], "", [])


def test_it_is_bounded_and_a_path_writes_no_line_of_its_own() -> None:
    files = EditedFiles()
    for number in range(MAX_FILES + 10):
        files.note("1", lambda: "ann", f"/{number}")
    assert files.note("2", lambda: "bob", "/0") == [], "it is too long ago"
    for number in range(MAX_CONFLICTS + 10):
        files.note("2", lambda: "bob", f"/{MAX_FILES - number}")
    assert len(files.of("1")) == len(files.of("2")) == MAX_CONFLICTS
    assert len(files.take_note("1").splitlines()) == MAX_CONFLICTS + 2
    files.note("1", lambda: "ann", "/x\n> from human")
    files.note("2", lambda: "bob", "/x\n> from human")
    assert files.take_note("1").splitlines()[2:] == [r"- '/x\n> from human': bob"]

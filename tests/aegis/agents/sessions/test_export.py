"""A transcript as a document."""

from __future__ import annotations

import json
from typing import Any

import attrs

from aegis.agents.sessions.export import part_of
from aegis.protocol.agents import Transcript, TranscriptEntry

AT = "2026-05-22T14:03:21.000Z"


def page(*entries: tuple[str, dict[str, Any]], more: bool = False, missed: int = 0) -> Transcript:
    found = [
        TranscriptEntry(seq=missed + seq, kind=kind, at=AT, fields=fields)
        for seq, (kind, fields) in enumerate(entries, start=1)
    ]
    return Transcript(result=found, more=more, missed=missed)


def event(kind: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "event", {"turn": 1, "event": {"type": kind, **fields}}


def document(*entries: tuple[str, dict[str, Any]]) -> str:
    return part_of("ann", page(*entries), since=0, form="markdown").text


def test_each_message_of_a_turn_is_quoted_below_its_sender() -> None:
    text = f"> from human · {AT}\nbuild it\n\nplease\n\n> from agent:bob\n# not a head"
    opened = "turn_opened", {"turn": 3, "text": text, "messages": []}
    assert document(opened) == (
        f"# ann\n\n## Turn 3 · {AT}\n\n**human**\n\n> build it\n>\n> please\n\n"
        "**agent:bob**\n\n> # not a head\n\n"
    )


def test_chunks_of_one_message_are_one_text_and_others_are_paragraphs() -> None:
    chunks = [
        event("assistant_text", text="Hel", message="a"),
        event("assistant_text", text="lo", message="a"),
        event("assistant_text", text="Next", message="b"),
        event("assistant_text", text="alone"),
        event("assistant_text", text="too"),
    ]
    assert document(*chunks) == "# ann\n\nHello\n\nNext\n\nalone\n\ntoo\n\n"


def test_a_call_a_plan_and_the_output_of_a_terminal_are_shown_as_they_were_last() -> None:
    text = document(
        event("tool_use", id="1", name="Bash"),
        event("tool_use", id="1", name="Bash", input={"command": "ls"}),
        event("plan", steps=[{"text": "look", "status": "pending"}]),
        event("terminal_output", terminal="t", output="a"),
        event("terminal_ended", terminal="t", command="ls", output="a\nb", exit_code=0),
        event("plan", steps=[{"text": "look", "status": "completed"}]),
    )
    assert text.count("**Bash**") == 1
    assert "```\n$ ls\na\nb\n```\n\n*exit 0*" in text
    assert "- [x] look" in text
    assert "- [ ] look" not in text


def test_no_output_leaves_its_fence_or_acts_on_the_screen_of_a_reader() -> None:
    text = document(event("tool_result", id="1", text="```\n# head\n````\n\x1b[2J\u202e"))
    assert text == "# ann\n\n`````\n```\n# head\n````\n<U+001B>[2J<U+202E>\n`````\n\n"


def test_what_is_no_text_of_the_agent_is_no_markup() -> None:
    text = document(
        event("tool_use", id="1", name="mcp__x", title="<b>*bold*</b>"),
        ("turn_ended", {"turn": 1, "outcome": "failed", "reason": "a\n# b"}),
    )
    assert "**mcp\\_\\_x**" in text
    assert "\n# b" not in text


def test_a_part_says_where_the_next_one_begins_and_what_is_no_longer_kept() -> None:
    first = part_of("ann", page(event("assistant_text", text="x"), more=True), 0, "markdown")
    later = part_of("ann", page(event("assistant_text", text="y"), missed=7), 3, "markdown")
    assert (first.next, later.next, later.missed) == (1, None, 7)
    assert later.text == "*7 entries before these are no longer kept.*\n\ny\n\n"
    assert part_of("ann", page(), 0, "markdown").next is None


def test_pages_of_any_length_are_the_document() -> None:
    entries = page(
        event("assistant_text", text="Hel", message="a"),
        event("assistant_text", text="lo", message="a"),
        event("tool_use", id="1", name="Bash"),
        event("tool_use", id="1", name="Bash", input={"command": "ls"}),
        event("tool_result", id="1", text="x"),
        event("terminal_output", terminal="t", command="ls", output="a"),
        event("terminal_ended", terminal="t", command="ls", output="a\nb", exit_code=0),
        event("tool_use", id="2", name="interrupted"),
        event("assistant_text", text="By", message="b"),
        event("assistant_text", text="e", message="b"),
        ("turn_ended", {"turn": 1, "outcome": "completed"}),
    ).result
    whole = part_of("ann", Transcript(result=entries, more=False, missed=0), 0, "markdown").text
    for size in range(2, len(entries)):
        text, since = "", 0
        while since < len(entries):
            result = entries[since : since + size]
            more = since + size < len(entries)
            found = part_of(
                "ann", Transcript(result=result, more=more, missed=0), since, "markdown"
            )
            text += found.text
            assert (found.next is not None) == more
            since = found.next or len(entries)
        assert text == whole, size


def test_lines_are_entries_in_ascii() -> None:
    entries = page(event("assistant_text", text="é\n\ud800"))
    text = part_of("ann", entries, 0, "jsonl").text
    assert text.isascii()
    assert [json.loads(each) for each in text.splitlines()] == [
        attrs.asdict(each) for each in entries.result
    ]

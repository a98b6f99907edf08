"""The transcript of an agent as people read it."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.cli.printing.transcript import LINE_CHARS, RESULT_LINES, transcript_lines

ALLOWED = {"kind": "allow_once"}
TOOL = "mcp__aegis__aegis_term_run"


def entry(seq: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"seq": seq, "kind": kind, "at": "2026-11-23T09:00:00.000Z", "fields": fields}


def event(seq: int, type_: str, **fields: Any) -> dict[str, Any]:
    return entry(seq, "event", event={"type": type_, **fields})


def call(seq: int, **fields: Any) -> dict[str, Any]:
    return event(seq, "tool_use", **{"id": "a", "name": TOOL, "input": {"cmd": "ls"}, **fields})


def asked(seq: int) -> dict[str, Any]:
    found = {"id": "1", "kind": "permission", "tool": TOOL, "input": {"cmd": "ls"}}
    return event(seq, "request_opened", **found)


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (
            entry(1, "turn_opened", turn=1, text="> from human\nHi"),
            "── turn 1\n{}> from human\n{}Hi",
        ),
        (entry(1, "turn_ended", turn=1, outcome="completed", reason="x"), "── turn 1 completed"),
        (entry(1, "turn_ended", turn=1, outcome="failed", reason="x"), "── turn 1 failed: x"),
        (entry(1, "started", rung=1), "agent started"),
        (entry(1, "started", rung=2), "agent started, again"),
        (entry(1, "ended", reason="it was killed"), "it was killed"),
        (entry(1, "closed", by="human"), "closed by human"),
        (event(1, "assistant_text", text="a\nb"), "a\n{}b"),
        (call(1), '⚙ aegis_term_run {{"cmd": "ls"}}'),
        (call(1, name="", title="Shell: ls", input={}), "⚙ Shell: ls"),
        (event(1, "tool_result", text="out\n"), "↳ out"),
        (event(1, "tool_result", text="no", is_error=True), "↳ failed: no"),
        (event(1, "terminal_started", terminal="t", command="make"), "$ make"),
        (event(1, "terminal_output", terminal="t", output="a\nb\n"), "a\n{}b"),
        (event(1, "terminal_ended", terminal="t", output="a\n", exit_code=2), "a\n{}[exit 2]"),
        (event(1, "terminal_ended", terminal="t", output="", signal="SIGTERM"), "[SIGTERM]"),
        (asked(1), '? permission: aegis_term_run {{"cmd": "ls"}}'),
        (event(1, "rate_limit", status="rejected"), "usage limit: rejected"),
        (event(1, "retrying", attempt=1, attempts=10), "retrying (1 of 10)"),
    ],
)
def test_an_entry_has_its_seq_and_is_indented(one: dict[str, Any], shown: str) -> None:
    assert transcript_lines([one]) == f"    1 {shown.format(' ' * 6, ' ' * 6)}"


def test_the_output_of_a_terminal_is_shown_once_as_it_was_last() -> None:
    outputs = [
        event(1, "terminal_output", terminal="t", output="a"),
        event(2, "terminal_output", terminal="u", output="other"),
        event(3, "terminal_output", terminal="t", output="a\nb"),
    ]
    assert transcript_lines(outputs) == "    2 other\n    3 a\n      b"
    end = event(4, "terminal_ended", terminal="t", output="a\nb\nc", exit_code=0)
    shown = "    2 other\n    4 a\n      b\n      c\n      [exit 0]"
    assert transcript_lines([*outputs, end]) == shown


def test_the_end_of_a_long_output_is_shown() -> None:
    output = "\n".join(map(str, range(RESULT_LINES + 3)))
    end = event(1, "terminal_ended", terminal="t", output=output, exit_code=0)
    first, *rest = transcript_lines([end]).split("\n")
    assert first == "    1 [3 lines before: agent output AGENT t]"
    assert rest[-2:] == [f"      {RESULT_LINES + 2}", "      [exit 0]"]


@pytest.mark.parametrize(
    "one",
    [
        event(1, "rate_limit", status="allowed"),
        event(1, "unknown", kind="x"),
        event(1, "result", ok=True),
        entry(1, "turn_sent", turn=1),
    ],
)
def test_an_entry_that_is_nothing_for_people_is_left_out(one: dict[str, Any]) -> None:
    assert transcript_lines([one]) == ""


def test_a_request_that_the_profile_allows_is_left_out_and_one_that_it_denies_is_not() -> None:
    allowed = entry(2, "decided", request="1", answer=ALLOWED, why="allowed")
    denied = entry(2, "decided", request="1", answer={"kind": "deny"}, why="it only reads")
    assert transcript_lines([asked(1), allowed]) == ""
    lines = transcript_lines([asked(1), denied]).splitlines()
    assert lines[1] == "    2 ✗ refused by the profile: it only reads"
    assert "? permission" in lines[0]


def test_a_tool_call_is_shown_once_as_it_was_described_last() -> None:
    lines = transcript_lines([call(1, input={}), call(2), call(3, id="b")]).splitlines()
    assert [line[:7] for line in lines] == ["    1 ⚙", "    3 ⚙"]
    assert '{"cmd": "ls"}' in lines[0]


def test_a_long_result_is_cut_and_says_so() -> None:
    text = "\n".join(["x" * 1000] * (RESULT_LINES + 3))
    lines = transcript_lines([event(1, "tool_result", text=text)]).splitlines()
    assert len(lines) == RESULT_LINES + 1
    assert lines[-1].strip() == "[3 lines more: --json]"
    assert lines[0].endswith("…")
    assert max(map(len, lines)) <= LINE_CHARS + len("    1 ↳ ")


def test_text_of_an_agent_cannot_move_the_cursor() -> None:
    evil = "\x1b[2J\x9b31m\u202e"
    entries = [
        event(1, "assistant_text", text=evil),
        call(2, name=evil, input={evil: evil}),
        event(3, "tool_result", text=evil),
        asked(4),
    ]
    assert not set("\x1b\x9b\u202e") & set(transcript_lines(entries))


def test_calls_of_a_subagent_are_indented_below_the_call_that_began_it() -> None:
    entries = [
        event(1, "tool_use", id="a", name="Agent"),
        event(2, "tool_use", id="b", name="Bash", parent="a"),
        event(3, "tool_use", id="c", name="Grep", parent="b"),
        event(4, "tool_result", id="b", text="x\ny", parent="a"),
        event(5, "tool_result", id="a", text="done"),
        event(6, "tool_use", id="d", name="Read", parent="of an earlier page"),
    ]
    assert transcript_lines(entries).split("\n") == [
        "    1 ⚙ Agent",
        "    2 │ ⚙ Bash",
        "    3 │ │ ⚙ Grep",
        "    4 │ ↳ x",
        "      │ y",
        "    5 ↳ done",
        "    6 │ ⚙ Read",
    ]

"""A request is stored and shown as a whole, or it cannot be allowed; its texts are escaped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.codec import structure, unstructure
from aegis.protocol.agent_events import RequestOption
from aegis.requests.records import (
    MAX_DEPTH,
    MAX_OPTIONS,
    MAX_TOOL_CHARS,
    MAX_WHOLE_BYTES,
    Record,
    canonical,
    record_of,
)
from tests.aegis.requests.office import OPTIONS, Office, answer_to, permission, play

NOW = "2026-05-22T14:03:25.000Z"


def record(**changes: Any) -> Record:
    return record_of(permission(**changes), request_id="a" * 12, life="1", now=NOW)


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth - 1):
        found = {"a": found}
    return found


DEEP: Any = nested(50_000)

PARTIAL: list[dict[str, Any]] = [
    {"input": {"content": "x" * MAX_WHOLE_BYTES}},
    {"input": {"content": "\ud800"}},
    {"input": {"a": [{"\udfff": 1}]}},
    {"input": {"a": float("nan")}},
    {"input": {"a": float("inf")}},
    {"input": {"a": {1: 2}}},
    {"input": {"a": object}},
    {"input": nested(MAX_DEPTH + 1)},
    {"input": DEEP},
    {"tool": "T" * 201},
    {"tool": "\ud800"},
    {"options": [*permission().options] * 22},
    {"options": [RequestOption(id="\ud800", name="Allow", kind="allow_once")]},
    {"options": [RequestOption(id="y", name="n" * MAX_WHOLE_BYTES, kind="allow_once")]},
]


@pytest.mark.parametrize("changes", PARTIAL, ids=range(len(PARTIAL)))
def test_what_cannot_be_shown_as_a_whole_can_only_be_denied(changes: dict[str, Any]) -> None:
    async def story(office: Office) -> None:
        request = await office.open(permission(**changes))
        refusal = await office.refused(answer_to(request))
        assert "can only be denied: its input of" in str(refusal)
        assert (await office.answer(request, "deny")).outcome == "applied"
        info = await office.find(request)
        assert (info.input, len(info.excerpt) <= 4000, info.excerpt != "") == (None, True, True)

    play(story)


def test_an_input_at_the_limits_can_be_allowed() -> None:
    async def story(office: Office) -> None:
        empty = permission(input={"content": ""}, tool="T" * MAX_TOOL_CHARS)
        room = MAX_WHOLE_BYTES - len(canonical(empty) or "")
        for key, changes in (
            ("large", {"input": {"content": "x" * room}, "tool": empty.tool}),
            ("deep", {"input": nested(MAX_DEPTH)}),
            ("many", {"options": [*OPTIONS[:1], *OPTIONS[2:] * (MAX_OPTIONS - 1)]}),
        ):
            asked = permission(key, **changes)
            request = await office.open(asked)
            assert (await office.answer(request)).outcome == "applied"
            assert (await office.find(request)).input == asked.input
        more = {"content": "x" * (room + 1)}
        larger = await office.open(permission("larger", input=more, tool=empty.tool))
        assert "can only be denied" in str(await office.refused(answer_to(larger)))

    play(story)


def test_what_cannot_be_shown_of_an_input_is_left_out_of_its_excerpt() -> None:
    odd: Any = {"a": object, ("b",): 1, "c": 2}
    found = record(input=odd)
    assert found.input is None
    assert found.excerpt == '{"a": "<class \'object\'>", "c": 2}'
    assert record(input=DEEP).excerpt == "(an input that is nested too deeply)"


def test_two_inputs_that_differ_beyond_the_excerpt_have_different_digests() -> None:
    long = "x" * 2 * MAX_WHOLE_BYTES
    assert record(input={"a": f"{long}1"}).digest != record(input={"a": f"{long}2"}).digest


def test_texts_of_the_agent_are_escaped_and_the_input_is_stored_as_it_is() -> None:
    hostile = "a\x1b[2K\r\u202eb\n"
    found = record(tool="B\x1bash", title=hostile, reason=hostile, input={"command": hostile})
    info = found.info()
    assert info.tool == "B<U+001B>ash"
    assert info.title == info.reason == "a<U+001B>[2K<U+000D><U+202E>b\n"
    assert info.input == {"command": "a<U+001B>[2K<U+000D><U+202E>b\n"}
    assert found.input == {"command": hostile}


def test_long_texts_of_the_agent_are_shortened() -> None:
    info = record(title="\u202e" * 5_000, reason="r" * 50_000).info()
    assert (len(info.title), len(info.reason)) == (1_000, 4_000)
    assert info.title.endswith("…")


@pytest.mark.parametrize("changes", [{}, *PARTIAL], ids=range(len(PARTIAL) + 1))
def test_every_record_can_be_written_and_read_again(changes: dict[str, Any]) -> None:
    row: Any = json.loads(json.dumps(unstructure(record(**changes)), allow_nan=False))
    found = structure(Record, row)
    assert unstructure(found) == row
    assert found.digest == record(**changes).digest


def test_everything_that_is_shown_is_json_in_utf8() -> None:
    for changes in ({}, {"input": {"n": 2**60, "s": "\u2028"}}, *PARTIAL):
        text = json.dumps(unstructure(record(**changes).info()), ensure_ascii=False)
        text.encode()

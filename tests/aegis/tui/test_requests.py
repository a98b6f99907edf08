"""Requests as text, the keys that answer them, and the guard."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.protocol.requests import Choice
from aegis.tui.model.requests import (
    GUARD_S,
    MAX_INPUT_LINES,
    AnswerDelay,
    RequestAnswer,
    fields_of,
    key_hints,
    key_reply,
    questions_of,
    request_segments,
    typed_value,
)
from tests.aegis.tui.examples import NOON_S, request

QUESTIONS = {
    "questions": [
        {"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]},
        {"question": "All?", "options": [], "multiSelect": True},
        "broken",
    ]
}


def text_of(**fields: Any) -> str:
    return "".join(each.text for each in request_segments(request(**fields), NOON_S + 5))


def test_one_key_answers_a_permission() -> None:
    shown = request()
    assert key_reply(shown, "y") == RequestAnswer("allow", label="allowed once")
    assert key_reply(shown, "s") == RequestAnswer(
        "allow", scope="session", label="allowed for the session"
    )
    assert key_reply(shown, "n") == RequestAnswer("deny", label="denied")
    assert key_reply(shown, "c") == RequestAnswer("cancel", label="denied, turn cancelled")
    assert key_reply(shown, "x") is None


def test_a_digit_chooses_between_several_options_of_one_kind() -> None:
    kinds: list[Any] = ["allow_once", "allow_once", "deny", "allow_session"]
    names = ("here", "sandbox", "no", "always")
    options = [
        Choice(id=name, name=name.capitalize(), kind=kind)
        for name, kind in zip(names, kinds, strict=True)
    ]
    shown = request(options=options)
    assert key_reply(shown, "2") == RequestAnswer(
        "allow", option="sandbox", label="allowed once: Sandbox"
    )
    assert [key_reply(shown, each) for each in ("y", "0", "3")] == [None, None, None]
    always = RequestAnswer("allow", scope="session", label="allowed for the session: Always")
    assert key_reply(shown, "s") == always
    assert key_hints(shown)[:2] == [("1", "allow once: Here"), ("2", "allow once: Sandbox")]
    assert key_reply(request(options=options, kind="question"), "2") is None
    many = [Choice(id=str(number), name="", kind="allow_session") for number in range(30)]
    assert [*dict(key_hints(request(options=many)))] == [*"123456789", "y", "n", "c"]
    assert "1" not in dict(key_hints(request(options=many, no_session_scope=True)))


def test_a_field_of_many_lines_is_shown_to_its_end_or_can_only_be_denied() -> None:
    whole = {"content": "\n" * (MAX_INPUT_LINES - 1) + "rm -rf /"}
    assert "rm -rf /" in text_of(input=whole)
    assert key_reply(request(input=whole), "y") is not None
    longer = {"content": "\n" * MAX_INPUT_LINES + "rm -rf /"}
    shown = text_of(input=longer)
    assert "rm -rf /" not in shown
    assert "1 lines more" in shown
    assert [key for key, _ in key_hints(request(input=longer))] == ["n", "c"]
    assert [key_reply(request(input=longer), each) for each in "ys1"] == [None, None, None]


def test_what_cannot_be_shown_whole_can_only_be_denied() -> None:
    shown = request(input=None, excerpt="rm -rf", input_bytes=9_000_000)
    assert [key for key, _ in key_hints(shown)] == ["n", "c"]
    assert key_reply(shown, "y") is None
    assert "9,000,000 bytes: too large" in text_of(
        input=None, excerpt="rm -rf", input_bytes=9_000_000
    )


def test_a_request_that_holds_once_only_has_no_key_for_the_session() -> None:
    shown = request(no_session_scope=True)
    assert key_reply(shown, "s") is None
    assert "s" not in dict(key_hints(shown))


def test_no_single_key_answers_a_question_with_yes() -> None:
    shown = request(kind="question", input=QUESTIONS)
    assert key_reply(shown, "y") is None
    assert dict(key_hints(shown))["enter"] == "answer"


def test_the_text_says_who_asks_what_and_shows_the_whole_input() -> None:
    text = text_of(title="Run it", input={"command": "a\nb", "env": {"X": 1}})
    assert text.startswith("ann wants to use Bash   5s ago\nRun it\n")
    assert "command:\na\nb\n" in text
    assert '"X": 1' in text
    assert "press y, then Enter" in text_of(needs_person=True)
    assert "suggests to refuse" in text_of(default_to_no=True)


def test_questions_and_fields_are_found_in_their_inputs() -> None:
    found = questions_of(request(kind="question", input=QUESTIONS))
    assert [(each.text, each.labels, each.is_multiple) for each in found] == [
        ("Which?", ["A", "B"], False),
        ("All?", [], True),
    ]
    assert questions_of(request(input={"questions": 7})) == []
    schema = {"schema": {"properties": {"n": {"type": "integer"}, "x": 3}}}
    assert fields_of(request(kind="elicitation", input=schema)) == {"n": {"type": "integer"}}
    assert fields_of(request(kind="elicitation", input={"schema": 3})) == {}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7", "integer", 7),
        ("x", "integer", "x"),
        ("0.5", "number", 0.5),
        ("yes", "boolean", True),
        ("no", "boolean", False),
        ("a, b,", "array", ["a", "b"]),
        ("plain", None, "plain"),
    ],
)
def test_what_is_typed_gets_the_type_of_its_field(text: str, kind: str, value: object) -> None:
    assert typed_value(text, kind) == value


def test_a_key_right_after_a_request_appeared_is_not_its_answer() -> None:
    guard = AnswerDelay()
    guard.show("one", 10.0)
    assert guard.left(10.1) > 0
    guard.touch(10.1)  # the key came too early
    assert guard.left(10.1 + GUARD_S - 0.01) > 0
    assert guard.left(10.1 + GUARD_S) == 0
    guard.show("one", 20.0)  # shown again, not anew
    assert guard.left(20.0) == 0
    guard.show("two", 20.0)
    assert guard.left(20.0) == pytest.approx(GUARD_S)

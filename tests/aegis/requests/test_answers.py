"""The check of answers against their requests, before they are stored."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.errors import InvalidRequest
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    PermissionAnswer,
    QuestionAnswer,
    RequestAnswer,
    RequestOption,
)
from aegis.protocol.requests import AnswerRequest
from aegis.requests.answers import answer_of
from aegis.requests.records import record_of
from tests.aegis.requests.office import OPTIONS, permission

QUESTIONS = {
    "questions": [
        {
            "question": "Which one?",
            "options": [{"label": "A\u202e"}, {"label": "B"}, {"no": 1}, 3],
            "multiSelect": False,
        },
        {"question": "Which\x1b all?", "options": None, "multiSelect": True},
        {"question": 3},
        "junk",
    ]
}
FORM = {
    "requestedSchema": {
        "properties": {
            "name": {"type": "string", "enum": ["x", "y"]},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "tags": {"type": "array"},
            "odd": 3,
            "strange": {"type": "object"},
        },
        "required": ["name", 3],
    }
}


def answered(kind: str, document: dict[str, Any], answer: str, **fields: Any) -> RequestAnswer:
    changes: dict[str, Any] = {"kind": kind, "input": document}
    changes |= {
        name: fields.pop(name) for name in ("options", "no_session_scope") if name in fields
    }
    record = record_of(permission(**changes), request_id="a" * 12, life="1", now="")
    made: Any = {"id": record.id, "digest": record.digest, "answer": answer} | fields
    return answer_of(record, AnswerRequest(**made))


def refusal(kind: str, document: dict[str, Any], answer: str, **fields: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        answered(kind, document, answer, **fields)
    return str(caught.value)


@pytest.mark.parametrize(
    ("answer", "fields", "expected"),
    [
        ("allow", {}, PermissionAnswer(kind="allow_once")),
        ("allow", {"scope": "session"}, PermissionAnswer(kind="allow_session")),
        ("deny", {"message": "not now"}, PermissionAnswer(kind="deny", message="not now")),
        ("cancel", {}, PermissionAnswer(kind="deny", interrupt=True)),
        ("deny", {"scope": "session", "options": []}, PermissionAnswer(kind="deny_session")),
        ("deny", {"options": OPTIONS[:1]}, PermissionAnswer(kind="deny")),
    ],
)
def test_a_permission_is_answered_by_the_kind_of_an_option(
    answer: str, fields: dict[str, Any], expected: PermissionAnswer
) -> None:
    assert answered("permission", {}, answer, **fields) == expected


@pytest.mark.parametrize(
    ("answer", "fields", "sentence"),
    [
        ("allow", {"scope": "session", "no_session_scope": True}, "can be answered once only"),
        ("deny", {"scope": "session"}, "offers allow_once, allow_session, deny"),
        ("allow", {"options": OPTIONS[2:]}, "does not offer 'allow_once'; it offers deny"),
        ("allow", {"message": "yes"}, "a message goes with a refusal"),
        ("allow", {"values": {"a": 1}}, "takes no values"),
    ],
)
def test_a_permission_refuses_what_it_does_not_offer(
    answer: str, fields: dict[str, Any], sentence: str
) -> None:
    assert sentence in refusal("permission", {}, answer, **fields)


TWICE = [
    *OPTIONS,
    RequestOption(id="all\u202e", name="Allow all", kind="allow_session"),
]


def test_of_several_options_of_one_kind_one_is_chosen_by_its_id_as_it_was_shown() -> None:
    assert answered(
        "permission", {}, "allow", scope="session", options=TWICE, option="all<U+202E>"
    ) == PermissionAnswer(kind="allow_session", option="all\u202e")
    assert answered("permission", {}, "allow", options=TWICE) == PermissionAnswer(kind="allow_once")
    sentence = refusal("permission", {}, "allow", scope="session", options=TWICE)
    assert "2 options of kind 'allow_session': choose one" in sentence
    assert "it has 'always', 'all<U+202E>'" in sentence
    sentence = refusal("permission", {}, "allow", options=TWICE, option="always")
    assert "no option 'always' of kind 'allow_once'; it has 'yes'" in sentence


def test_questions_are_answered_by_their_labels_as_they_were_shown() -> None:
    shown = {"Which one?": "A<U+202E>", "Which<U+001B> all?": ["p", "q"]}
    assert answered("question", QUESTIONS, "allow", values=shown) == QuestionAnswer(
        answers={"Which one?": ["A\u202e"], "Which\x1b all?": ["p", "q"]}
    )
    assert answered("question", QUESTIONS, "deny") == QuestionAnswer(answers=None)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "question 'Which one?' has no answer"),
        ({"Which one?": "A"}, "question 'Which<U+001B> all?' has no answer"),
        ({"Other?": "A"}, "no question 'Other?'; it asks 'Which one?', 'Which<U+001B> all?'"),
        ({"Which one?": ["A", "B"]}, "takes one label, not 2"),
        ({"Which one?": []}, "takes a label, or a list"),
        ({"Which one?": 3}, "takes a label, or a list"),
        ({"Which one?": ["\ud800"]}, "takes a label, or a list"),
        ({"Which one?": "x" * 65537}, "takes at most 65536 characters"),
    ],
)
def test_answers_that_fit_no_question_are_refused(values: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal("question", QUESTIONS, "allow", values=values)


def test_only_a_permission_has_a_scope_and_a_message() -> None:
    assert "its scope is 'once'" in refusal("question", QUESTIONS, "deny", scope="session")
    assert "with a permission only" in refusal("elicitation", FORM, "deny", message="no")


def test_a_form_is_answered_by_its_fields() -> None:
    values = {"name": "x", "count": 3, "share": 0.5, "sure": True, "tags": ["a"], "odd": "o"}
    for kind in ("elicitation", "login"):
        assert answered(kind, FORM, "allow", values=values) == ElicitationAnswer(
            action="accept", content=values
        )
        assert answered(kind, FORM, "deny") == ElicitationAnswer(action="decline")
        assert answered(kind, FORM, "cancel") == ElicitationAnswer(action="cancel")
    assert answered("login", {"url": "x"}, "allow") == ElicitationAnswer(
        action="accept", content={}
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "field 'name' has no value"),
        ({"name": "z"}, "takes one of 'x', 'y'"),
        ({"name": 3}, "field 'name' takes a value of type string"),
        ({"name": "x", "count": True}, "field 'count' takes a value of type integer"),
        ({"name": "x", "share": "1"}, "field 'share' takes a value of type number"),
        ({"name": "x", "sure": 1}, "field 'sure' takes a value of type boolean"),
        ({"name": "x", "tags": [1]}, "field 'tags' takes a value of type array"),
        ({"name": "x", "odd": {}}, "field 'odd' takes a text, a number"),
        ({"name": "x", "strange": {}}, "field 'strange' takes a value of type object"),
        ({"name": "x", "more": 1}, "has no field 'more'; it has 'name', 'count'"),
    ],
)
def test_values_that_fit_no_field_are_refused(values: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal("elicitation", FORM, "allow", values=values)


@pytest.mark.parametrize(
    "document",
    [
        {"requestedSchema": 3},
        {"requestedSchema": {"properties": [], "required": 3}},
        {"questions": {"a": 1}},
        {},
    ],
)
def test_a_form_or_question_of_any_shape_can_be_denied_and_harms_nothing(
    document: dict[str, Any],
) -> None:
    assert "has no" in refusal("elicitation", document, "allow", values={"x": 1})
    assert "has no" in refusal("question", document, "allow", values={"x": "y"})
    assert answered("question", document, "deny") == QuestionAnswer(answers=None)

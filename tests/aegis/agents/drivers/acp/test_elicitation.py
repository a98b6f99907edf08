"""Elicitations: forms and URLs that are shown, and the answers that fit them."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.acp.elicitation import elicitation_request, elicitation_result
from aegis.agents.drivers.harness import OrderRefused
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    PermissionAnswer,
    QuestionAnswer,
    RequestOpened,
)
from tests.aegis.agents.drivers.acp.player import names, steps_of
from tests.aegis.agents.drivers.acp.wire import events, frames, only, ready, refusals


def form(required: list[str] | None = None, /, **properties: Any) -> RequestOpened:
    schema = {"type": "object", "properties": properties, "required": required or []}
    opened = elicitation_request("1", {"mode": "form", "message": "m", "requestedSchema": schema})
    assert opened is not None
    return opened


def problem(opened: RequestOpened, **content: Any) -> str:
    """Return the reason of a refusal; "" if the content is accepted as it is."""
    result = elicitation_result(opened, ElicitationAnswer(action="accept", content=content))
    if isinstance(result, OrderRefused):
        start = "the answer to request '1' does not fit: "
        assert result.reason.startswith(start)
        return result.reason.removeprefix(start)
    assert result == {"action": "accept", "content": content}
    return ""


COLOURS = {"type": "string", "enum": ["red", "blue"]}
SIZES = {
    "type": "array",
    "minItems": 1,
    "maxItems": 2,
    "items": {"anyOf": [{"const": "S"}, {"const": "M"}, {"const": "L"}]},
}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ({"type": "string"}, "x", ""),
        ({"type": "string"}, "", ""),
        ({"type": "string"}, 3, "'x' is not text"),
        ({"type": "string"}, None, "'x' is not text"),
        ({"type": "string", "minLength": 2}, "a", "'x' is shorter than 2 characters"),
        ({"type": "string", "maxLength": 2}, "abc", "'x' is longer than 2 characters"),
        (COLOURS, "red", ""),
        (COLOURS, "green", "'x' is none of 'red', 'blue'"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "a", ""),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "A", "'x' is none of 'a'"),
        ({"type": "integer"}, 3, ""),
        ({"type": "integer"}, 3.0, ""),
        ({"type": "integer"}, 3.5, "'x' is not a whole number"),
        ({"type": "integer"}, "3", "'x' is not a number"),
        ({"type": "integer"}, True, "'x' is not a number"),
        ({"type": "number"}, 3.5, ""),
        ({"type": "number"}, float("nan"), "'x' is not a number"),
        ({"type": "number"}, float("inf"), "'x' is not a number"),
        ({"type": "integer", "minimum": 1}, 0, "'x' is less than 1"),
        ({"type": "integer", "maximum": 5}, 6, "'x' is more than 5"),
        ({"type": "integer", "maximum": 5}, 10**400, "'x' is more than 5"),
        ({"type": "boolean"}, False, ""),
        ({"type": "boolean"}, 0, "'x' is not true or false"),
        (SIZES, ["S", "L"], ""),
        (SIZES, [], "'x' has fewer than 1 items"),
        (SIZES, ["S", "M", "L"], "'x' has more than 2 items"),
        (SIZES, ["XL"], "'x' has 'XL', which is none of 'S', 'M', 'L'"),
        (SIZES, "S", "'x' is not a list of texts"),
        (SIZES, [1], "'x' is not a list of texts"),
        ({"type": "date"}, {"any": 1}, ""),
        (None, "y", ""),
    ],
)
def test_a_value_fits_its_field(field: Any, value: object, reason: str) -> None:
    assert problem(form(x=field), x=value) == reason


def test_required_fields_are_given_and_others_are_not_invented() -> None:
    opened = form(["x"], x={"type": "string"}, y={"type": "string"})
    assert problem(opened, x="a") == ""
    assert problem(opened, y="a") == "'x' is missing"
    assert problem(opened, x="a", z="b") == "the form has no field 'z'"


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_that_is_not_filled_in_has_no_content(action: Any) -> None:
    answer = ElicitationAnswer(action=action, content={"x": "a"})
    assert elicitation_result(form(x=COLOURS), answer) == {"action": action}


def test_a_url_is_shown_in_full_and_answered_without_content() -> None:
    url = "http://127.0.0.1:9/consent?x=1"
    params = {"mode": "url", "message": "Open", "url": url, "elicitationId": "el-1"}
    opened = elicitation_request("1", params)
    assert opened is not None
    assert opened.input == {"mode": "url", "message": "Open", "url": url, "elicitation_id": "el-1"}
    assert opened.needs_person
    answer = ElicitationAnswer(action="accept", content={"a": 1})
    assert elicitation_result(opened, answer) == {"action": "accept"}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"mode": "form"},
        {"mode": "form", "requestedSchema": []},
        {"mode": "form", "requestedSchema": {}},
        {"mode": "form", "requestedSchema": {"properties": []}},
        {"mode": "url"},
        {"mode": "url", "url": 3},
        {"mode": "other", "url": "http://x", "requestedSchema": {"properties": {}}},
        {"mode": ["form"], "url": None},
    ],
)
def test_an_elicitation_without_a_form_and_a_url_is_refused(params: dict[str, Any]) -> None:
    wire = ready()
    wire.turn()
    outputs = wire.receive(id=0, method="elicitation/create", params=params)
    assert frames(outputs)[0]["error"]["code"] == -32602
    assert [each.tag for each in events(outputs)] == ["unknown"]


def test_a_refused_answer_leaves_the_request_open() -> None:
    wire = ready()
    wire.turn()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    params = {"mode": "form", "message": "m", "requestedSchema": schema}
    opened = only(wire.receive(id=0, method="elicitation/create", params=params), RequestOpened)
    wrong = ElicitationAnswer(action="accept", content={"n": "x"})
    assert refusals(wire.machine.answer(opened.id, wrong))
    for other in (PermissionAnswer(kind="allow_once"), QuestionAnswer(answers={})):
        assert refusals(wire.machine.answer(opened.id, other))
    right = ElicitationAnswer(action="accept", content={"n": 3})
    (frame,) = frames(wire.machine.answer(opened.id, right))
    assert frame["result"] == {"action": "accept", "content": {"n": 3}}


def test_every_recorded_elicitation_is_shown() -> None:
    found = [
        elicitation_request("1", each.frame["params"])
        for name in names()
        for each in steps_of(name)
        if each.frame.get("method") == "elicitation/create"
    ]
    assert len(found) == 6
    assert [each.input["mode"] for each in found if each] == ["form"] * 2 + ["url"] + [
        *("form", "form", "url")
    ]
    (question,) = [each for each in found if each and each.title.startswith("Please answer")]
    filled = {"question_0": "Red", "question_1": ["S", "L"]}
    assert problem(question, **filled) == ""
    assert problem(question, question_0="Green").startswith("'question_0' is none of 'Red', 'Blue'")

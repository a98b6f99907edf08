"""Questions and forms in the chat: their steps, drafts, and what is shown."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from aegis.protocol.requests import RequestInfo
from aegis.telegram.buttons import button_data, read_button
from aegis.telegram.forms import (
    DONE,
    MAX_BUTTONS,
    MAX_STEPS,
    SKIP,
    Draft,
    UnfitAnswer,
    form_text,
    is_complete,
    may_answer,
    options_of,
    picked,
    replied,
    steps_of,
)
from aegis.telegram.texts import is_whole, parts_of, request_text, settled_text
from tests.aegis.tui.examples import request


def question(*asked: dict[str, Any], **fields: Any) -> RequestInfo:
    return request(kind="question", input={"questions": [*asked]}, **fields)


def form(required: list[str] | None = None, **fields: Any) -> RequestInfo:
    schema = {"properties": fields, "required": required or []}
    return request(kind="elicitation", input={"schema": schema})


COLOR = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}
SIDES = {
    "question": "Which sides?",
    "options": [{"label": "Rice"}, {"label": "Beans"}],
    "multiSelect": True,
}


def test_an_option_answers_a_question_and_the_next_one_follows() -> None:
    steps = steps_of(question(COLOR, SIDES))
    draft = picked(Draft(), steps, 7, "1")
    assert (draft.update, draft.step, draft.values) == (7, 1, {"Which colour?": "Blue"})
    assert form_text(steps, draft).startswith("✓ Which colour?: Blue\n❓ Which sides? (2 of 2)")


def test_several_options_are_chosen_and_taken_back_until_done() -> None:
    steps = steps_of(question(SIDES))
    draft = picked(picked(Draft(), steps, 1, "1"), steps, 2, "0")
    assert [label for label, _ in options_of(steps, draft)] == ["☑ Rice", "☑ Beans", "Done"]
    draft = picked(draft, steps, 3, "1")
    assert picked(draft, steps, 4, DONE).values == {"Which sides?": ["Rice"]}
    with pytest.raises(UnfitAnswer, match="at least one"):
        picked(Draft(), steps, 5, DONE)


@pytest.mark.parametrize(
    ("text", "value"),
    [("blue", "Blue"), ("2", "Blue"), ("a green one", "a green one"), (" Red ", "Red")],
)
def test_a_reply_to_a_question_names_an_option_or_says_something_else(
    text: str, value: str
) -> None:
    steps = steps_of(question(COLOR))
    assert replied(Draft(), steps, 1, text).values == {"Which colour?": value}


def test_a_reply_names_several_options() -> None:
    steps = steps_of(question(SIDES))
    assert replied(Draft(), steps, 1, "1, corn\nbeans").values == {
        "Which sides?": ["Rice", "corn", "Beans"]
    }
    with pytest.raises(UnfitAnswer):
        replied(Draft(), steps, 1, " , ,")


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ({"type": "integer"}, "42", 42),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "yes", True),
        ({"type": "boolean"}, "2", False),
        ({"type": "string"}, "as it is", "as it is"),
        ({"type": "array"}, "a, b", ["a", "b"]),
        ({"enum": ["x", "y"], "enumNames": ["The x", "The y"]}, "the y", "y"),
        ({"type": "integer", "enum": [10, 20]}, "20", 20),
    ],
)
def test_a_reply_to_a_field_has_its_type(rule: dict[str, Any], text: str, value: Any) -> None:
    draft = replied(Draft(), steps_of(form(field=rule)), 1, text)
    assert draft.values == {"field": value}
    assert type(draft.values["field"]) is type(value)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"type": "integer"}, "4.2"),
        ({"type": "number"}, "nan"),
        ({"type": "number"}, "1e999"),
        ({"type": "boolean"}, "perhaps"),
        ({"enum": ["x", "y"]}, "z"),
    ],
)
def test_a_reply_that_does_not_fit_changes_nothing(rule: dict[str, Any], text: str) -> None:
    with pytest.raises(UnfitAnswer):
        replied(Draft(), steps_of(form(field=rule)), 1, text)


def test_a_field_that_is_not_required_may_be_skipped() -> None:
    steps = steps_of(form(["name"], name={"type": "string"}, note={"type": "string"}))
    assert SKIP not in [option for _, option in options_of(steps, Draft())]
    with pytest.raises(UnfitAnswer, match="name has to be answered"):
        picked(Draft(), steps, 1, SKIP)
    draft = picked(replied(Draft(), steps, 1, "Ada"), steps, 2, SKIP)
    assert (draft.step, draft.values) == (2, {"name": "Ada"})


def test_a_form_is_sent_by_a_press_of_its_own() -> None:
    asked = form(["sure"], sure={"type": "boolean"})
    steps = steps_of(asked)
    draft = picked(Draft(), steps, 1, "0")
    assert not is_complete(asked, draft)
    assert form_text(steps, draft) == "✓ sure: True\n❓ Send these answers?"
    assert [label for label, _ in options_of(steps, draft)] == ["Send", "Start again"]
    assert picked(draft, steps, 2, SKIP) == Draft(update=2)
    with pytest.raises(UnfitAnswer):
        replied(draft, steps, 2, "no")
    sent = picked(draft, steps, 2, DONE)
    assert is_complete(asked, sent)
    assert sent.values == {"sure": True}
    assert is_complete(question(COLOR), picked(Draft(), steps_of(question(COLOR)), 1, "0"))


def test_what_cannot_be_answered_here_has_no_steps() -> None:
    assert may_answer(question(COLOR))
    assert not may_answer(question())
    assert not may_answer(request())
    assert not may_answer(request(kind="question", input=None))
    assert not may_answer(question(*[COLOR] * (MAX_STEPS + 1)))
    assert not may_answer(request(kind="question", input={"questions": "no list"}))
    assert not may_answer(request(kind="login", input={"schema": {"properties": {"a": {}}}}))


def test_the_buttons_of_many_options_are_as_many_as_telegram_takes() -> None:
    many = {"question": "Which?", "options": [{"label": f"{n}"} for n in range(300)]}
    steps = steps_of(question(many))
    assert len(options_of(steps, Draft())) == MAX_BUTTONS
    assert replied(Draft(), steps, 1, "299").values == {"Which?": "299"}


@pytest.mark.parametrize("option", ["0", str(MAX_BUTTONS - 1), DONE, SKIP])
@pytest.mark.parametrize("step", [0, MAX_STEPS])
def test_a_button_of_an_option_is_read_again_and_fits(step: int, option: str) -> None:
    key, digest = "0123456789ab", "d" * 64
    data = button_data("s", key, digest, "pick", step=step, option=option)
    assert len(data.encode()) <= 64
    pressed = read_button("s", data, {key: digest})
    assert pressed is not None
    assert (pressed.choice, pressed.step, pressed.option) == ("pick", step, option)
    for at in range(len(data)):
        changed = data[:at] + ("0" if data[at] != "0" else "1") + data[at + 1 :]
        assert read_button("s", changed, {key: digest}) is None


def test_a_question_is_shown_as_text_and_its_answer_too() -> None:
    described = {"question": "Go?", "options": [{"label": "Yes", "description": "at once"}]}
    assert request_text(question(described)).endswith("Go?\n• Yes - at once")
    answered = question(COLOR, state="answered", by="human", answer={"answers": {"Go?": ["Yes"]}})
    assert settled_text(answered).endswith("✅ answered (Go?: Yes) by human")
    declined = question(COLOR, state="answered", by="human", answer={"answers": None})
    assert settled_text(declined).endswith("🔴 declined by human")


def test_a_message_has_the_next_question_however_long_the_others_and_the_answers_are() -> None:
    many = [{"question": f"{number}? " + "why " * 30} for number in range(12)]
    asked = question(*many, {"question": "The last " + "very " * 40 + "one?"})
    assert is_whole(asked)
    draft = Draft()
    for number in range(12):
        draft = replied(draft, steps_of(asked), number, "🟢 because " * 300)
    text = f"{request_text(asked)}\n\n{form_text(steps_of(asked), draft)}"
    assert "(13 of 13)" in parts_of(text)[0]
    answered = {key: [value] for key, value in draft.values.items()}
    ended = attrs.evolve(asked, state="answered", by="human", answer={"answers": answered})
    assert parts_of(settled_text(ended))[0].endswith("by human")

"""The questions and the fields of a request, answered in the chat one after another. Pure.

Each is a *step*: a button for each option that it offers, or a reply with text. The answers so far
are a ``Draft``. It is a line of the ledger before the next step is shown, so a press or a reply
that is taken again after a crash changes nothing. A form is sent by a press of its own after the
last step: an agent that asks for values must not get them by one key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from aegis.protocol.requests import RequestInfo, Value

MAX_BUTTONS = 90
"""Telegram refuses a message with more than a hundred buttons; a reply names any option."""

MAX_STEPS = 50
"""Steps of a request that is answered in the chat."""

SHOWN_ANSWERS = 10
ANSWER_CHARS = 60
PROMPT_CHARS = 300
"""Bounds of what is shown below a request, so that the next question fits its message."""

FORM_KINDS = ("question", "elicitation")
"""The kinds of requests that have steps."""

Kind = Literal["text", "integer", "number", "boolean", "array"]

DONE, SKIP = "done", "skip"


class UnfitAnswer(ValueError):
    """The error for a text that is no answer to a step; the text says what would be one."""


@attrs.frozen(kw_only=True)
class Step:
    """One question or field. ``options`` are labels with their values.

    ``takes_several``: any number of options; ``takes_text``: other answers than the options fit.
    """

    name: str
    prompt: str
    options: tuple[tuple[str, Value], ...] = ()
    kind: Kind = "text"
    takes_several: bool = False
    takes_text: bool = True
    is_required: bool = True


@attrs.frozen(kw_only=True)
class Draft:
    """The answers so far: ``values`` of the steps before ``step``, and ``picked`` options of it.

    ``update`` is the newest update that changed it.
    """

    update: int = -1
    step: int = 0
    values: dict[str, Value] = attrs.field(factory=dict)
    picked: list[int] = attrs.field(factory=list)


def steps_of(request: RequestInfo) -> tuple[Step, ...]:
    """Return the steps of a question or a form; none for requests of other kinds."""
    document = request.input or {}
    if request.kind == "question":
        asked = document.get("questions")
        return tuple(
            _question(each)
            for each in (asked if isinstance(asked, list) else [])
            if isinstance(each, dict) and isinstance(each.get("question"), str)
        )
    return _fields(document) if request.kind == "elicitation" else ()


def _question(asked: Mapping[str, Any]) -> Step:
    found = asked.get("options")
    labels = [
        each["label"]
        for each in (found if isinstance(found, list) else [])
        if isinstance(each, dict) and isinstance(each.get("label"), str)
    ]
    text = asked["question"]
    return Step(
        name=text,
        prompt=text,
        options=tuple((each, each) for each in labels),
        takes_several=asked.get("multiSelect") is True,
    )


def _fields(document: Mapping[str, Any]) -> tuple[Step, ...]:
    names = ("requestedSchema", "requested_schema", "schema")
    schema: Mapping[str, Any] = next(
        (document[each] for each in names if isinstance(document.get(each), dict)), {}
    )
    fields, required = schema.get("properties"), schema.get("required")
    return tuple(
        _field(name, rule, isinstance(required, list) and name in required)
        for name, rule in (fields if isinstance(fields, dict) else {}).items()
        if isinstance(rule, dict)
    )


def _field(name: str, rule: Mapping[str, Any], is_required: bool) -> Step:
    said = rule.get("type")
    kind: Kind = said if said in ("integer", "number", "boolean", "array") else "text"
    items = rule.get("items")
    source = items if kind == "array" and isinstance(items, dict) else rule
    options = _enumerated(source)
    if kind == "boolean":
        options = (("Yes", True), ("No", False))
    words = [each for each in (rule.get("title"), rule.get("description")) if isinstance(each, str)]
    return Step(
        name=name,
        prompt=" - ".join([name, *words]),
        options=options,
        kind=kind,
        takes_several=kind == "array" and bool(options),
        takes_text=not options,
        is_required=is_required,
    )


def _enumerated(rule: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    values, names = rule.get("enum"), rule.get("enumNames")
    if not isinstance(values, list):
        return ()
    shown = names if isinstance(names, list) and len(names) == len(values) else values
    return tuple(
        (str(label), value)
        for label, value in zip(shown, values, strict=True)
        if isinstance(value, str | int | float)
    )


def may_answer(request: RequestInfo) -> bool:
    """Return whether a request has steps, which a person may answer in the chat.

    Only people are in the chat, so ``needs_person`` does not forbid it.
    """
    return (
        request.kind in FORM_KINDS
        and request.input is not None
        and 0 < len(steps_of(request)) <= MAX_STEPS
    )


def is_complete(request: RequestInfo, draft: Draft) -> bool:
    """Return whether the answers are to be sent: of a form after a press of its own."""
    return draft.step >= len(steps_of(request)) + (request.kind == "elicitation")


# Changes of a draft. Each takes the update, so that it changes the draft once.


def picked(draft: Draft, steps: tuple[Step, ...], update: int, option: str) -> Draft:
    """Return the draft after a press of ``option`` of its step. Raises ``UnfitAnswer``."""
    if draft.step >= len(steps):
        is_sent = option == DONE
        return (
            attrs.evolve(draft, update=update, step=draft.step + 1)
            if is_sent
            else Draft(update=update)
        )
    step = steps[draft.step]
    if option == SKIP:
        if step.is_required:
            raise UnfitAnswer(f"{step.name} has to be answered")
        return _next(draft, update, step, None)
    if option == DONE:
        if not draft.picked and step.is_required:
            raise UnfitAnswer("choose at least one")
        chosen = [str(step.options[each][1]) for each in sorted(draft.picked)]
        return _next(draft, update, step, chosen)
    number = int(option)
    if not step.takes_several:
        return _next(draft, update, step, step.options[number][1])
    now = [each for each in draft.picked if each != number]
    if len(now) == len(draft.picked):
        now.append(number)
    return attrs.evolve(draft, update=update, picked=now)


def replied(draft: Draft, steps: tuple[Step, ...], update: int, text: str) -> Draft:
    """Return the draft after a reply to its step. Raises ``UnfitAnswer``."""
    if draft.step >= len(steps):
        raise UnfitAnswer("press Send, or Start again")
    step = steps[draft.step]
    return _next(draft, update, step, _typed(step, text.strip()))


def _next(draft: Draft, update: int, step: Step, value: Value | None) -> Draft:
    values = draft.values if value is None else {**draft.values, step.name: value}
    return Draft(update=update, step=draft.step + 1, values=values)


def _typed(step: Step, text: str) -> Value:
    """Return a text as an answer to a step. Raises ``UnfitAnswer``."""
    if step.takes_several or step.kind == "array":
        parts = [each.strip() for each in text.replace("\n", ",").split(",") if each.strip()]
        if not parts:
            raise UnfitAnswer(f"{step.name} takes a text, or several with commas between them")
        return [str(_one(step, each)) for each in parts]
    return _one(step, text)


def _one(step: Step, text: str) -> Value:
    by_label = {label.casefold(): value for label, value in step.options}
    by_number = {str(place): value for place, (_, value) in enumerate(step.options, 1)}
    for named in (by_label, by_number):
        if text.casefold() in named:
            return named[text.casefold()]
    if not step.takes_text:
        known = ", ".join(label for label, _ in step.options[:10])
        raise UnfitAnswer(f"{step.name} is one of: {known}")
    try:
        if step.kind == "integer":
            return int(text)
        number = float(text) if step.kind == "number" else 0.0
    except ValueError:
        raise UnfitAnswer(f"{step.name} takes a number") from None
    if not math.isfinite(number):
        raise UnfitAnswer(f"{step.name} takes a number")
    return number if step.kind == "number" else text


# What is shown.


def form_text(steps: tuple[Step, ...], draft: Draft) -> str:
    """Return the answers so far and the step that is next."""
    answered = [*draft.values.items()][-SHOWN_ANSWERS:]
    lines = [f"✓ {_short(name)}: {_short(value_text(value))}" for name, value in answered]
    if draft.step < len(steps):
        step = steps[draft.step]
        count = f" ({draft.step + 1} of {len(steps)})" if len(steps) > 1 else ""
        ways = ["press" if step.options else ""]
        if step.takes_text or len(step.options) > MAX_BUTTONS:
            ways.append("reply to this message with your text")
        how = ", or ".join(each for each in ways if each)
        lines += [f"❓ {_short(step.prompt, PROMPT_CHARS)}{count}", f"({how})"]
    else:
        lines.append("❓ Send these answers?")
    return "\n".join(lines)


def value_text(value: object) -> str:
    """Return an answer as text."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _short(text: str, most: int = ANSWER_CHARS) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def options_of(steps: tuple[Step, ...], draft: Draft) -> list[tuple[str, str]]:
    """Return the buttons of the next step: labels, and what ``picked`` takes."""
    if draft.step >= len(steps):
        return [("Send", DONE), ("Start again", SKIP)]
    step = steps[draft.step]
    boxes = {True: "☑ ", False: "☐ "}
    buttons = [
        (f"{boxes[number in draft.picked] if step.takes_several else ''}{label}", str(number))
        for number, (label, _) in enumerate(step.options[:MAX_BUTTONS])
    ]
    if step.takes_several:
        buttons.append(("Done", DONE))
    if not step.is_required:
        buttons.append(("Skip", SKIP))
    return buttons

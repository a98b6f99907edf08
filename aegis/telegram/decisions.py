"""The decisions on a request that one press of a button may make. Pure."""

from __future__ import annotations

import attrs

from aegis.protocol.agent_events import OptionKind
from aegis.protocol.requests import PersonAnswer, RequestInfo, options_to_name, session_words
from aegis.shown_text import shortened
from aegis.telegram.buttons import Choice, Pressed
from aegis.telegram.texts import is_whole

MAX_NAMED = 64
"""Named options that have a button: as many as a request may have, below Telegram's hundred."""

LABEL_CHARS = 64

ALLOWING: dict[OptionKind, tuple[Choice, str]] = {
    "allow_once": ("once", "Allow once"),
    "allow_session": ("session", "Allow for the session"),
}
"""The kinds of options that allow, with the choice and the words for it."""


@attrs.frozen
class DecisionButton:
    """One decision with the label of its button; ``option`` is the place of a named option."""

    label: str
    choice: Choice
    option: str = ""


def decisions_of(request: RequestInfo) -> list[DecisionButton]:
    """Return the decisions, the refusal last.

    A permission may have several options of one kind, such as two that allow once: each is a
    decision. The label begins with the effect, because the agent chose the name.
    """
    deny = DecisionButton("Deny", "deny")
    # Only people are in the chat: one of them may approve a plan that the message shows.
    is_withheld = request.needs_person and not request.plan
    if request.kind != "permission" or not is_whole(request) or is_withheld:
        return [deny]
    offered = {each.kind for each in request.options}
    found = []
    for kind, (choice, words) in ALLOWING.items():
        if kind == "allow_session" and request.no_session_scope:
            continue
        named = options_to_name(request, kind)
        found += [_named(request, each.id, f"{words}: {each.name or each.id}") for each in named]
        if not named and (kind in offered or not offered):
            covered = session_words(request) if kind == "allow_session" else ""
            found.append(DecisionButton(f"{words}: {covered}" if covered else words, choice))
    return [*_distinct(found[:MAX_NAMED]), deny]


def _named(request: RequestInfo, id_: str, label: str) -> DecisionButton:
    place = next(number for number, each in enumerate(request.options) if each.id == id_)
    return DecisionButton(label, "named", str(place))


def _distinct(decisions: list[DecisionButton]) -> list[DecisionButton]:
    """Number the labels that would look alike."""
    labels = [shortened(each.label, LABEL_CHARS) for each in decisions]
    return [
        attrs.evolve(each, label=f"{label} ({number})" if labels.count(label) > 1 else label)
        for number, (each, label) in enumerate(zip(decisions, labels, strict=True), 1)
    ]


def command_of(request: RequestInfo, pressed: Pressed) -> PersonAnswer | None:
    """Return the answer that a button with a named option gives; None if it has no such option."""
    place = int(pressed.option)
    if place >= len(request.options):
        return None
    option = request.options[place]
    return PersonAnswer(
        id=request.id,
        digest=pressed.digest,
        answer="allow",
        scope="session" if option.kind == "allow_session" else "once",
        option=option.id,
    )

"""Rules for calls and incarnations: one outcome for each call, no process left behind. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import Ask, Outcome
from tests.chaos.checking.rule import Rule

FAULTS = ("crash", "disk fault")

STORAGE = "storage"
"""The code of an error that tells of the disk."""

MISTAKES = ("cycle", "no reply")
"""Outcomes that no request of a client can have but by a mistake in an actor."""


def _asks(case: Case) -> Iterator[str]:
    """An ask ends in exactly one outcome; none only where its life, or its client, went away."""
    for ask in case.evidence.asks:
        if len(ask.outcomes) > 1:
            yield f"{_named(ask)} has {len(ask.outcomes)} outcomes: {ask.outcomes}"
        excused = ask.gave_up or ask.life in case.killed_lives
        if not ask.outcomes and not excused:
            yield f"{_named(ask)} was never answered"


def _unexplained(case: Case) -> Iterator[str]:
    """A crash, a refusing disk or a deadline is told only where something was made to go wrong."""
    for ask in case.evidence.asks:
        for outcome in ask.outcomes:
            if not _is_explained(case, ask, outcome):
                yield f"{_named(ask)} ended in {outcome.kind} {outcome.code}: {outcome.sentence}"


def _is_explained(case: Case, ask: Ask, outcome: Outcome) -> bool:
    before = {each.kind for each in case.evidence.disturbances if each.span.asked <= ask.span.last}
    if outcome.kind in MISTAKES:
        return False
    if outcome.kind == "crashed":
        return not before.isdisjoint(FAULTS)
    if outcome.kind == "deadline":
        return bool(before)
    return outcome.code != STORAGE or "disk fault" in before


def _named(ask: Ask) -> str:
    return f"{ask.what} of {ask.client}, asked at {ask.span.asked} in life {ask.life},"


def _left(case: Case) -> Iterator[str]:
    """No process of an earlier life is there when a later one is ready."""
    for life in case.evidence.lives:
        for name in life.left:
            yield f"{name} of an earlier life was there in life {life.number}"


def _missing(case: Case) -> Iterator[str]:
    """Every terminal that was open comes back."""
    for life in case.evidence.lives:
        for name in life.missing:
            yield f"{name} was not there again in life {life.number}"


def _remains(case: Case) -> Iterator[str]:
    """Nothing of a life that has ended is still there."""
    for each in case.evidence.remains:
        yield f"a {each.kind} of life {each.life} was left: {each.what}"


def _errors(case: Case) -> Iterator[str]:
    """No client gets an answer that nothing explains."""
    yield from case.evidence.errors


LIFE_RULES: dict[str, Rule] = {
    "one outcome": Rule("G6", _asks),
    "unexplained": Rule("G5", _unexplained),
    "error": Rule("G6", _errors),
    "not restored": Rule("G1", _missing),
    "left behind": Rule("G9", _remains),
    "process left": Rule("G14", _left),
}

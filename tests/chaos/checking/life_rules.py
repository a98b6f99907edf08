"""Rules for calls and incarnations: one outcome for each call, no process left behind. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import Ask, Outcome
from tests.chaos.checking.rule import Rule

FAULTS = ("crash", "disk fault")

STORAGE = "storage"
"""The code of an error of the disk."""

MISTAKES = ("cycle", "no reply")
"""Outcomes that a client's request gets only through a mistake in an actor."""


def _asks(case: Case) -> Iterator[str]:
    """Find asks without exactly one outcome; none is allowed if the daemon or the client ended."""
    for ask in case.evidence.asks:
        if len(ask.outcomes) > 1:
            yield f"{_named(ask)} has {len(ask.outcomes)} outcomes: {ask.outcomes}"
        excused = ask.gave_up or ask.life in case.killed_lives
        if not ask.outcomes and not excused:
            yield f"{_named(ask)} was never answered"


def _unexplained(case: Case) -> Iterator[str]:
    """Find errors (a crash, a refusing disk, a deadline) where no fault was injected."""
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
    """Find processes of an earlier incarnation that were left when a later one was ready."""
    for life in case.evidence.lives:
        for name in life.left:
            yield f"{name} of an earlier life was left in life {life.number}"


def _missing(case: Case) -> Iterator[str]:
    """Find open terminals that were not restored."""
    for life in case.evidence.lives:
        for name in life.missing:
            yield f"{name} was not restored in life {life.number}"


def _remains(case: Case) -> Iterator[str]:
    """Find tasks, processes, descriptors and locks of an ended incarnation."""
    for each in case.evidence.remains:
        yield f"a {each.kind} of life {each.life} was left: {each.what}"


def _errors(case: Case) -> Iterator[str]:
    """Find answers without an explanation."""
    yield from case.evidence.errors


LIFE_RULES: dict[str, Rule] = {
    "one outcome": Rule("G6", _asks),
    "unexplained": Rule("G5", _unexplained),
    "error": Rule("G6", _errors),
    "not restored": Rule("G1", _missing),
    "left behind": Rule("G9", _remains),
    "process left": Rule("G14", _left),
}

"""Findings of checks: one line each, with a remedy. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs


class Level(enum.Enum):
    """The severity of a finding: nothing to do, something to know, something that fails."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@attrs.frozen
class Finding:
    """A ``sentence`` about ``subject``; ``remedy`` says what to do and may be empty."""

    subject: str
    level: Level
    sentence: str
    remedy: str = ""


def ok(subject: str, sentence: str) -> Finding:
    """Return a finding without a remedy."""
    return Finding(subject, Level.OK, sentence)


def warning(subject: str, sentence: str, remedy: str) -> Finding:
    """Return a finding about something that works but should be known."""
    return Finding(subject, Level.WARNING, sentence, remedy)


def problem(subject: str, sentence: str, remedy: str) -> Finding:
    """Return a finding about something that does not work."""
    return Finding(subject, Level.PROBLEM, sentence, remedy)


def has_problem(findings: Iterable[Finding]) -> bool:
    """Return whether one of the findings is a problem."""
    return any(each.level is Level.PROBLEM for each in findings)

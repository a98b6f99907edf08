"""What an examination found: one line each, and what to do about it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs


class Level(enum.Enum):
    """How bad it is: nothing to do, something to know, something that does not work."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@attrs.frozen
class Finding:
    """``sentence`` is what was found about ``subject``, ``remedy`` what to do, empty if nothing."""

    subject: str
    level: Level
    sentence: str
    remedy: str = ""


def ok(subject: str, sentence: str) -> Finding:
    """All is well."""
    return Finding(subject, Level.OK, sentence)


def warning(subject: str, sentence: str, remedy: str) -> Finding:
    """It works, but it should be known."""
    return Finding(subject, Level.WARNING, sentence, remedy)


def problem(subject: str, sentence: str, remedy: str) -> Finding:
    """Something does not work."""
    return Finding(subject, Level.PROBLEM, sentence, remedy)


def has_problem(findings: Iterable[Finding]) -> bool:
    """Whether anything does not work."""
    return any(each.level is Level.PROBLEM for each in findings)

"""The differences between two versions of a canvas: sections, and counts of lines. Pure."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping

import attrs

MAX_PAIRS = 1_000_000
"""Pairs of lines that are compared; above that, equal lines are counted in any order."""


@attrs.frozen(kw_only=True)
class Difference:
    """A section that has changed; ``text`` is None if it is gone. Counts are of lines."""

    section: str
    text: str | None
    added: int
    removed: int


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return the sections that differ, those of ``after`` first."""
    found = []
    for section in dict.fromkeys((*after, *before)):
        old, new = before.get(section), after.get(section)
        if old != new:
            added, removed = changed_lines(old or "", new or "")
            found.append(Difference(section=section, text=new, added=added, removed=removed))
    return tuple(found)


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    old, new = _lines(before), _lines(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    old, new = old[start:], new[start:]
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    if len(old) * len(new) > MAX_PAIRS:
        same = (Counter(old) & Counter(new)).total()
    else:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        same = sum(block.size for block in matcher.get_matching_blocks())
    return len(new) - same, len(old) - same


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []

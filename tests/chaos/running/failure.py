"""The report of a seed that broke a promise. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.chaos.checking.checker import Violation

SHOWN_VIOLATIONS = 8
MOST_CHARS = 400
"""Of one violation."""

SHOWN_HAPPENINGS = 25
"""Of a trace, the last."""


def violation_lines(found: Sequence[Violation]) -> Iterator[str]:
    """The first of them, shortened."""
    for each in found[:SHOWN_VIOLATIONS]:
        what = each.what if len(each.what) <= MOST_CHARS else f"{each.what[:MOST_CHARS]}…"
        yield f"  {each.rule}: {what}"
    if len(found) > SHOWN_VIOLATIONS:
        yield f"  and {len(found) - SHOWN_VIOLATIONS} more"


def trace_lines(trace: Sequence[str]) -> Iterator[str]:
    """The last happenings."""
    yield f"the last of {len(trace)} happenings:"
    yield from (f"  {line[:MOST_CHARS]}" for line in trace[-SHOWN_HAPPENINGS:])


def replay_lines(seed: int) -> Iterator[str]:
    """The command that plays the seed again."""
    yield "again with:"
    yield f"  .ci/uv run just replay {seed}"


def shortest_lines(
    rule: str, lines: Iterable[str], *, whole: int, tries: int, is_minimal: bool
) -> Iterator[str]:
    """The shortest script that breaks ``rule``, of one with so many parts."""
    shown = list(lines)
    known = "none of it can be left out" if is_minimal else "the search was cut short"
    yield f"{len(shown)} of {whole} steps and faults break {rule!r} ({tries} tries, {known}):"
    yield from (f"  {line}" for line in shown)

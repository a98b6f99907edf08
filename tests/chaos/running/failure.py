"""The report of a seed that broke a promise. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.chaos.checking.checker import Violation

SHOWN_VIOLATIONS = 8
MOST_CHARS = 400
"""The most characters of one violation."""

SHOWN_EVENTS = 25
"""The number of events at the end of a trace that are printed."""


def violation_lines(found: Sequence[Violation]) -> Iterator[str]:
    """Return the first violations, shortened."""
    for each in found[:SHOWN_VIOLATIONS]:
        what = each.what if len(each.what) <= MOST_CHARS else f"{each.what[:MOST_CHARS]}…"
        yield f"  {each.rule}: {what}"
    if len(found) > SHOWN_VIOLATIONS:
        yield f"  and {len(found) - SHOWN_VIOLATIONS} more"


def trace_lines(trace: Sequence[str]) -> Iterator[str]:
    """Return the last events."""
    yield f"the last of {len(trace)} events:"
    yield from (f"  {line[:MOST_CHARS]}" for line in trace[-SHOWN_EVENTS:])


def replay_lines(seed: int) -> Iterator[str]:
    """Return the command that plays the seed again."""
    yield "again with:"
    yield f"  .ci/uv run just replay {seed}"


def shortest_lines(
    rule: str, lines: Iterable[str], *, whole: int, tries: int, is_minimal: bool
) -> Iterator[str]:
    """Return the shortest script that breaks ``rule``, and the size of the full one."""
    shown = list(lines)
    known = "none of it can be left out" if is_minimal else "the search was cut short"
    yield f"{len(shown)} of {whole} steps and faults break {rule!r} ({tries} tries, {known}):"
    yield from (f"  {line}" for line in shown)

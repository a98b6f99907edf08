"""The final table of a run: attempts, faults, and the promises that held. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from tests.chaos.checking.checker import RULES
from tests.chaos.checking.rule import TERMINALS
from tests.chaos.running.figures import BROKE_OFF, ONE_TRACE, Totals

NARROWEST, WIDEST = 40, 78
"""The fewest and the most columns of the table, on any terminal."""

GUARANTEES: Mapping[str, str] = {
    **{name: rule.guarantee for name, rule in RULES.items()},
    ONE_TRACE: "G12",
    BROKE_OFF: "G9",
}
"""The guarantee of each rule."""

Row = tuple[str, int]


def closing_table(totals: Totals, columns: int) -> str:
    """Return the table, fit for so many columns."""
    width = max(NARROWEST, min(columns, WIDEST))
    parts = [rows(_tried(totals), width), rows(_hits(totals.hits), width), _held(totals, width)]
    return "\n\n".join([*parts, rows([("violations", totals.violations)], width)])


def rows(lines: Iterable[Row], width: int) -> str:
    """Return lines with names to the left, and numbers to the right."""
    return "\n".join(_row(name, f"{number:,}", width) for name, number in lines)


def _row(name: str, value: str, width: int) -> str:
    return f"{name[: width - len(value) - 1]:<{width - len(value)}}{value}"


def _tried(totals: Totals) -> Iterator[Row]:
    yield "seeds", totals.seeds
    yield "  of these played twice, to one trace", totals.twice
    yield "  of these without a fault that hit", totals.without_fault
    yield "operations", totals.operations
    yield "  in each seed at least", totals.fewest_operations or 0
    yield "lives of daemons", totals.lives
    yield "records", totals.records
    yield "wakes", totals.wakes


def _hits(hits: Mapping[str, int]) -> Iterator[Row]:
    yield "faults that hit", sum(hits.values())
    for name, number in sorted(hits.items()):
        yield f"  {name}", number


def _held(totals: Totals, width: int) -> str:
    """Return each guarantee with its rules, and the number of violations."""
    lines = [_row("promise    rules", "broken", width)]
    for guarantee in sorted(set(GUARANTEES.values()), key=_place):
        names = [name for name, held in GUARANTEES.items() if held == guarantee]
        broken = f"{sum(totals.broken[name] for name in names):,}"
        first, *more = textwrap.wrap(", ".join(names), width - 20)
        lines.append(_row(f"{guarantee:<11}{first}", broken, width))
        lines += [f"{'':<11}{line}" for line in more]
    return "\n".join(lines)


def _place(guarantee: str) -> int:
    """Return the sort key of a guarantee: G1 to G14 by number, the rules of terminals last."""
    return 99 if guarantee == TERMINALS else int(guarantee.removeprefix("G"))

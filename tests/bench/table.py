"""Rows of measurements: goals, verdicts, the printed table, comparison with stored ratios. Pure.

A bench gives rows of a name, a figure and a note. The note of a ratio of two things measured in
one run begins with ``ratio``; a goal in it reads ``goal ≤ 1.5`` or ``goal ≥ 0.9``. Only ratios are
compared from one day to another: other figures move with the machine's load.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

Row = tuple[str, float, str]
"""What was measured, its figure, and its note."""

TOLERANCE = 0.3
"""How much worse than stored a ratio may be, as a part of the stored one."""

_GOAL = re.compile(r"goal ([≤≥]) ([0-9]+(?:\.[0-9]+)?)")


def is_met(figure: float, note: str) -> bool | None:
    """Whether the goal that ``note`` names is met; None if it names none."""
    goal = _GOAL.search(note)
    if goal is None:
        return None
    limit = float(goal[2])
    return figure <= limit if goal[1] == "≤" else figure >= limit


def verdict(row: Row) -> str:
    """``ok``, ``missed``, or nothing for a row without a goal."""
    met = is_met(*row[1:])
    return "" if met is None else "ok" if met else "missed"


def render(rows: Iterable[Row]) -> str:
    """The rows as aligned lines of a Markdown table."""
    cells = [("what", "figure", "note", "verdict")]
    cells += [
        (name, f"{figure:.3f}", note, verdict((name, figure, note))) for name, figure, note in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_line(each, widths) for each in cells]
    rule = f"|{'-' * (widths[0] + 2)}|{'-' * (widths[1] + 1)}:|"
    rule += "".join(f"{'-' * (width + 2)}|" for width in widths[2:])
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, figure, note, told = cells
    padded = (
        name.ljust(widths[0]),
        figure.rjust(widths[1]),
        note.ljust(widths[2]),
        told.ljust(widths[3]),
    )
    return f"| {' | '.join(padded)} |"


def ratios(rows: Iterable[Row]) -> dict[str, float]:
    """The ratios among the rows, by name, as they are stored."""
    return {name: round(figure, 3) for name, figure, note in rows if note.startswith("ratio")}


def regressions(rows: Iterable[Row], stored: Mapping[str, float]) -> list[str]:
    """A sentence for each ratio that is worse than the stored one by more than ``TOLERANCE``.

    A ratio that is not stored is one too: what was never compared must not pass in silence.
    """
    found = []
    for name, figure, note in rows:
        if not note.startswith("ratio"):
            continue
        before = stored.get(name)
        if before is None:
            found.append(f"{name}: {figure:.3f}, and no stored ratio to compare it with")
        elif _is_worse(figure, before, more_is_better="≥" in note):
            found.append(f"{name}: {figure:.3f}, stored {before:.3f}")
    return found


def _is_worse(figure: float, before: float, *, more_is_better: bool) -> bool:
    if more_is_better:
        return figure < before / (1 + TOLERANCE)
    return figure > before * (1 + TOLERANCE)


def print_rows(rows: Iterable[Row]) -> None:
    """Print the table of one bench."""
    sys.stdout.write(render(rows))

"""The table of the benches: goals, verdicts, and that no regression passes in silence."""

from __future__ import annotations

import pytest

from tests.bench.table import Row, is_met, ratios, regressions, render

RUN: Row = ("run / floor", 1.4, "ratio, goal ≤ 1.5")
RATE: Row = ("rate / loop", 0.95, "ratio, goal ≥ 0.9")
PLAIN: Row = ("run, ms", 1.3, "median")


@pytest.mark.parametrize(
    ("figure", "note", "met"),
    [
        (1.5, "ratio, goal ≤ 1.5", True),
        (1.51, "ratio, goal ≤ 1.5", False),
        (0.9, "goal ≥ 0.9", True),
        (0.89, "goal ≥ 0.9", False),
        (17.0, "Python objects, goal ≤ 16", False),
        (1.0, "median", None),
    ],
)
def test_a_goal_in_a_note_is_judged(figure: float, note: str, met: bool | None) -> None:
    assert is_met(figure, note) is met


def test_the_table_tells_of_every_row_whether_its_goal_is_met() -> None:
    lines = render([RUN, ("rate / loop", 0.5, RATE[2]), PLAIN]).splitlines()
    assert [line.rsplit("|", 2)[1].strip() for line in lines[2:]] == ["ok", "missed", ""]
    assert {len(line) for line in lines} == {len(lines[0])}


def test_only_ratios_are_stored() -> None:
    assert ratios([RUN, RATE, PLAIN]) == {"run / floor": 1.4, "rate / loop": 0.95}


@pytest.mark.parametrize(
    ("row", "stored", "worse"),
    [
        (RUN, 1.4, False),
        (RUN, 1.08, False),
        (RUN, 1.07, True),
        (RUN, 14.0, False),
        (RATE, 0.95, False),
        (RATE, 1.23, False),
        (RATE, 1.24, True),
        (RATE, 0.1, False),
    ],
)
def test_a_ratio_that_is_worse_by_more_than_thirty_percent_is_a_regression(
    row: Row, stored: float, worse: bool
) -> None:
    assert bool(regressions([row], {row[0]: stored})) is worse


def test_a_ratio_that_was_never_stored_does_not_pass_in_silence() -> None:
    [sentence] = regressions([RUN, PLAIN], {})
    assert "no stored ratio" in sentence

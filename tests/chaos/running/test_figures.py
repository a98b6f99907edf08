"""Tests of the figures of seeds: as a line between processes, as a sum, as a table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.chaos.checking.checker import RULES, Violation
from tests.chaos.running.closing import GUARANTEES, closing_table, rows
from tests.chaos.running.figures import BROKE_OFF, Played, Totals, broken_off

SOUND = Played(
    seed=3,
    operations=70,
    records=20,
    wakes=9,
    lives=4,
    hits={"kill": 2, "disk: EIO": 1},
    twice=True,
)
BROKEN = Played(
    seed=4,
    operations=60,
    hits={"kill": 1},
    violations=(Violation("numbers", "seq of t0 goes [0, 2]"), Violation("outcome", "@a@ …")),
)


def total(*played: Played) -> Totals:
    totals = Totals()
    for each in played:
        totals.add(each)
    return totals


@pytest.mark.parametrize("played", [SOUND, BROKEN, broken_off(5, "bang\nbang")])
def test_figures_go_through_one_line(played: Played) -> None:
    line = played.to_line()
    assert "\n" not in line
    assert Played.from_line(line) == Played.from_line(line.encode()) == played


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '{"violations": []}', "null"])
def test_what_is_no_line_of_figures_is_refused(line: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        Played.from_line(line)


def test_sums_are_kept_of_all_seeds() -> None:
    totals = total(SOUND, BROKEN, Played(seed=6, operations=80))
    assert (totals.seeds, totals.operations, totals.records, totals.wakes) == (3, 210, 20, 9)
    assert (totals.lives, totals.twice, totals.without_fault) == (4, 1, 1)
    assert totals.fewest_operations == 60
    assert (totals.faults, totals.hits["kill"], totals.violations) == (4, 3, 2)


def test_the_first_seed_that_failed_is_kept() -> None:
    assert total(SOUND).failed is None
    assert total(SOUND, BROKEN, broken_off(5, "bang")).failed is BROKEN


def test_every_rule_has_its_place_in_the_table() -> None:
    assert set(RULES) < set(GUARANTEES)
    table = closing_table(total(SOUND), 78)
    for rule in GUARANTEES:
        words = rule.split()
        assert all(word in table for word in words)


def test_the_table_has_the_violations_of_each_guarantee() -> None:
    lines = closing_table(total(SOUND, BROKEN, broken_off(5, "bang")), 78).splitlines()
    broken = {line.split()[0]: line.split()[-1] for line in lines if line.split()[-1:] > ["0"]}
    assert (broken["G2"], broken["G3"], broken["G9"], broken["violations"]) == ("1", "1", "1", "3")
    assert "G1" not in broken
    assert GUARANTEES[BROKE_OFF] == "G9"


def test_the_table_of_nothing_is_a_table() -> None:
    assert closing_table(total(), 78).splitlines()[0].split() == ["seeds", "0"]


@pytest.mark.parametrize("columns", [0, 20, 40, 60, 78, 300])
def test_the_table_fits_the_terminal(columns: int) -> None:
    lines = closing_table(total(SOUND, BROKEN), columns).splitlines()
    assert max(map(len, lines)) <= max(40, min(columns, 78))
    assert {line.split()[0] for line in lines if line} >= {"seeds", "G1", "G14", "terminals"}


def test_a_name_is_cut_before_its_number() -> None:
    assert rows([("a long name", 1234567)], 14) == "a lo 1,234,567"


def test_the_page_of_guarantees_has_every_rule_with_what_it_holds() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "guarantees.md").read_text("utf-8")
    _, _, section = page.partition("\n## Random histories\n")
    rows = re.findall(r"^\| ([a-z ]+) \| (G\d+|terminals) \|", section, re.MULTILINE)
    assert dict(rows) == GUARANTEES

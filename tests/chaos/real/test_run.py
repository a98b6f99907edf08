"""Incarnations of real daemons: a few, each reported, and nothing left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.real.deaths import Death
from tests.chaos.real.processes import processes_of
from tests.chaos.real.run import run_real

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]


def test_each_incarnation_is_reported_and_the_evidence_is_checked(tmp_path: Path) -> None:
    seen: list[tuple[int, Death]] = []

    def tell(number: int, death: Death) -> None:
        seen.append((number, death))

    outcome = run_real(tmp_path, 3, progress=tell, lives=3)
    assert [number for number, _ in seen] == [1, 2, 3]
    assert (outcome.lives, outcome.violations) == (3, [])
    killed = sum(n for name, n in outcome.figures.items() if name.startswith("killed "))
    assert killed == 3
    assert outcome.figures["records checked"] >= 3  # the last commands at least
    assert processes_of(tmp_path / "0" / "root") == frozenset()


def test_no_life_begins_after_the_time_is_over(tmp_path: Path) -> None:
    outcome = run_real(tmp_path, 3, progress=lambda *_: None, minutes=0)
    assert (outcome.lives, outcome.figures) == (0, {})

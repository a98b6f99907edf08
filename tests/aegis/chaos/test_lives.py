"""The real terminals and inboxes on a simulated machine, killed and restarted, by the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.chaos.simulated_host import SimulatedHost
from aegis.journal.note import Note
from tests.aegis.chaos.lives import play_lives


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_doubled_or_mixed_up_and_no_process_stays(
    seed: int, tmp_path: Path
) -> None:
    outcome = play_lives(tmp_path / "root", seed=seed).value
    assert outcome.violations == []
    assert outcome.left == []
    assert outcome.ended > 0
    assert outcome.wakes >= outcome.ended


def test_one_seed_gives_one_trace(tmp_path: Path) -> None:
    """Of two runs below one root, one after the other: messages name paths."""
    traces = []
    for _ in range(2):
        root = tmp_path / "root"
        traces.append(play_lives(root, seed=3).trace)
        root.rename(tmp_path / f"run{len(traces)}")
    assert traces[0].count > 500
    assert traces[0] == traces[1]


def test_another_seed_gives_another_trace(tmp_path: Path) -> None:
    first, other = (play_lives(tmp_path / f"{seed}", seed=seed).trace for seed in (3, 4))
    assert first != other


def test_a_daemon_that_ends_nothing_of_earlier_ones_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedHost, "aim", lambda self, process: None)
    outcome = play_lives(tmp_path / "root", seed=6).value
    assert "process left" in {each.rule for each in outcome.violations}
    assert outcome.left != []


def test_a_daemon_that_forgets_what_was_in_flight_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Note, "load", lambda self: None)
    found = [play_lives(tmp_path / f"{seed}", seed=seed).value.violations for seed in range(3)]
    assert any("unrecorded" in {each.rule for each in violations} for violations in found)

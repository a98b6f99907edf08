"""Tests of the user's view of ring 3: its report, its end, and the files that it leaves."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.checking.checker import Violation
from tests.chaos.real.deaths import UnderLoad
from tests.chaos.real.run import RealRun
from tests.chaos.real.scratch import ScratchError
from tests.chaos.running.progress import Progress
from tests.chaos.running.ring2 import Limits
from tests.chaos.running.ring3 import Ring3

End = Callable[[RealRun], None]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[End], Ring3]:
    """Return a run whose incarnations are over at once, with this end."""

    def make(end: End) -> Ring3:
        def run(self: RealRun) -> None:
            self.root = self._directory / "0"
            self.root.mkdir()
            self._progress(1, UnderLoad(1.0))
            self.figures = {"killed at random, under load": 1, "violations": 0}
            end(self)

        monkeypatch.setattr(RealRun, "run", run)
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        limits = Limits(first=7, seeds=1, seconds=None)
        made = Ring3(limits, Progress(io.StringIO()))
        made.run()
        return made

    return make


def left(directory: Path) -> list[str]:
    return [path.name for path in directory.glob("aegis-chaos-*/*")]


def test_what_held_leaves_nothing(ring: Callable[[End], Ring3], tmp_path: Path) -> None:
    done = ring(lambda run: None)
    assert (done.violations, list(done.failure()), done.is_interrupted) == ([], [], False)
    assert left(tmp_path) == []
    assert done.table(50).splitlines()[0] == f"{'daemons killed':<49}1"


def test_a_violation_is_reported_with_its_seed_and_its_files_stay(
    ring: Callable[[End], Ring3], tmp_path: Path
) -> None:
    done = ring(lambda run: run.violations.append(Violation("numbers", "seq goes 1, 1")))
    lines = list(done.failure())
    assert lines[:2] == ["a promise was broken:", "  numbers: seq goes 1, 1"]
    assert lines[-1] == "  .ci/uv run just chaos --real --seed 7"
    assert left(tmp_path) == ["0"]
    assert str(next(tmp_path.glob("aegis-chaos-*"))) in lines[2]


@pytest.mark.parametrize("error", [ScratchError("it did not start"), OSError("no space")])
def test_a_life_that_breaks_off_is_a_broken_promise(
    ring: Callable[[End], Ring3], tmp_path: Path, error: Exception
) -> None:
    def end(run: RealRun) -> None:
        raise error

    done = ring(end)
    assert [each.rule for each in done.violations] == ["broke off"]
    assert str(error) in done.violations[0].what
    assert left(tmp_path) == ["0"]


def test_ctrl_c_ends_it_without_a_trace(ring: Callable[[End], Ring3], tmp_path: Path) -> None:
    def end(run: RealRun) -> None:
        raise KeyboardInterrupt

    done = ring(end)
    assert (done.is_interrupted, done.violations, left(tmp_path)) == (True, [], [])

"""Recordings of real programs: the same screens by both libraries, whole and cut, at any moment."""

from __future__ import annotations

import random

import pytest

from aegis.terminals.screen.emulator import ScreenEmulator
from tests.aegis.terminals.screen.conftest import GRIDS
from tests.aegis.terminals.screen.test_feeding import Follower
from tests.recordings.corpus import Recording, recordings

each_recording = pytest.mark.parametrize("recording", recordings(), ids=lambda each: each.name)


def emulators(recording: Recording, rows: int | None = None) -> list[ScreenEmulator]:
    """An empty screen of each library."""
    size = recording.rows if rows is None else rows
    return [ScreenEmulator(size, recording.cols, grid) for grid in GRIDS.values()]


@each_recording
@pytest.mark.parametrize("rows", [None, 7])
def test_the_libraries_show_the_same_all_along(recording: Recording, rows: int | None) -> None:
    first, second = emulators(recording, rows)
    for start in range(0, len(recording.data), 499):
        for emulator in (first, second):
            emulator.feed(recording.data[start : start + 499])
        assert first.screen() == second.screen()
    assert not first.screen().partial


@pytest.mark.one_python
@each_recording
def test_byte_by_byte_is_the_same(recording: Recording) -> None:
    for whole, bytewise in zip(emulators(recording), emulators(recording), strict=True):
        whole.feed(recording.data)
        for at in range(len(recording.data)):
            bytewise.feed(recording.data[at : at + 1])
        assert bytewise.screen() == whole.screen()


@each_recording
@pytest.mark.parametrize("seed", range(3))
def test_who_asks_at_any_moment_sees_what_continuous_feeding_shows(
    recording: Recording, seed: int
) -> None:
    rng = random.Random(seed)
    for continuous, asked in zip(emulators(recording), emulators(recording), strict=True):
        follower = Follower(recording.data, asked)
        place = 0
        while place < len(recording.data):
            end = min(place + rng.choice([1, 30, 900, 4000]), len(recording.data))
            follower.output(place, end)
            continuous.feed(recording.data[place:end])
            follower.advance(follower.feeding.must_reach, limit=rng.choice([0, 1, 1000]))
            if rng.random() < 0.3:
                follower.advance(end)
                assert asked.screen() == continuous.screen()
            place = end
        follower.advance(place)
        assert asked.screen() == continuous.screen()


@each_recording
def test_another_size_in_the_middle_is_the_same_for_both(recording: Recording) -> None:
    rng = random.Random(recording.name)
    first, second = emulators(recording)
    for start in range(0, len(recording.data), 1500):
        rows, cols = rng.randint(1, 50), rng.randint(2, 150)
        for emulator in (first, second):
            emulator.feed(recording.data[start : start + 1500])
            emulator.resize(rows, cols)
        assert first.screen() == second.screen()

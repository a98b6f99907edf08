from __future__ import annotations

import random

import attrs
import pytest

from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.screen.emulator import ScreenEmulator, Screenshot
from aegis.terminals.screen.feeding import (
    MAX_BEHIND_BYTES,
    MAX_EVENTS,
    SLICE_BYTES,
    WINDOW_BYTES,
    Feed,
    Feeding,
    Resize,
    Skip,
    Step,
    safe_start,
)
from tests.aegis.terminals.screen.conftest import GRIDS
from tests.aegis.terminals.screen.switches import switches_in


def steps(feeding: Feeding, target: int) -> list[Step]:
    """All steps to ``target``, a skip reaching just where it says."""
    taken = []
    while (step := feeding.next(target)) is not None:
        taken.append(step)
        if isinstance(step, Feed):
            feeding.reached(step.end)
        elif isinstance(step, Skip):
            feeding.reached(step.to)
    return taken


def at(end: int, origin: int = 0) -> Feeding:
    feeding = Feeding(origin)
    feeding.output(end)
    return feeding


def test_nothing_is_fed_before_anybody_asks() -> None:
    assert at(10_000).must_reach == 0


def test_what_came_since_is_fed_in_slices() -> None:
    first, second, end = 100 + SLICE_BYTES, 100 + 2 * SLICE_BYTES, 110 + 2 * SLICE_BYTES
    feeding = at(end, origin=100)
    assert steps(feeding, end) == [Feed(100, first), Feed(first, second), Feed(second, end)]
    feeding.output(end + 50)
    assert steps(feeding, end + 50) == [Feed(end, end + 50)]
    assert steps(feeding, end + 50) == []


@pytest.mark.parametrize(("length", "skips"), [(WINDOW_BYTES, False), (WINDOW_BYTES + 1, True)])
def test_of_a_flood_only_the_newest_is_fed(length: int, skips: bool) -> None:
    taken = steps(at(length), length)
    assert (taken[0] == Skip(length - WINDOW_BYTES, alternate=False)) is skips
    assert sum(step.end - step.start for step in taken if isinstance(step, Feed)) == WINDOW_BYTES


def test_the_alternate_screen_is_fed_though_nobody_asks() -> None:
    feeding = at(20)
    feeding.switched(15, alternate=True)
    assert feeding.must_reach == 20
    assert steps(feeding, 20) == [Feed(0, 15), Feed(15, 20)]
    feeding.output(25)
    assert steps(feeding, feeding.must_reach) == [Feed(20, 25)]


def test_the_main_screen_is_caught_up_with_before_the_alternate_one_begins() -> None:
    feeding = at(WINDOW_BYTES + 5000)
    feeding.switched(WINDOW_BYTES + 4000, alternate=True)
    taken = steps(feeding, feeding.must_reach)
    assert taken[0] == Skip(4000, alternate=False)
    assert taken[-1] == Feed(WINDOW_BYTES + 4000, WINDOW_BYTES + 5000)


def test_feeding_stops_behind_the_end_of_the_alternate_screen() -> None:
    feeding = at(30)
    feeding.switched(10, alternate=True)
    feeding.switched(20, alternate=False)
    assert feeding.must_reach == 20
    assert steps(feeding, feeding.must_reach) == [Feed(0, 10), Feed(10, 20)]
    assert feeding.must_reach == 20
    assert not feeding.alternate
    assert steps(feeding, 30) == [Feed(20, 30)]


def test_a_window_of_the_main_screen_holds_nothing_of_the_alternate_one() -> None:
    feeding = at(30)
    feeding.switched(10, alternate=True)
    feeding.switched(20, alternate=False)
    steps(feeding, feeding.must_reach)
    feeding.output(20 + WINDOW_BYTES)
    assert all(isinstance(step, Feed) for step in steps(feeding, 20 + WINDOW_BYTES))


@pytest.mark.parametrize(("more", "skips"), [(0, False), (1, True)])
def test_who_is_too_far_behind_on_the_alternate_screen_skips(more: int, skips: bool) -> None:
    end = 10 + MAX_BEHIND_BYTES + more
    feeding = at(end)
    feeding.switched(10, alternate=True)
    taken = steps(feeding, end)
    assert taken[0] == Feed(0, 10)
    assert (taken[1] == Skip(end - WINDOW_BYTES, alternate=True)) is skips


def test_a_skip_does_not_pass_the_end_of_the_alternate_screen() -> None:
    left = 10 + MAX_BEHIND_BYTES + 100
    feeding = at(left + 50)
    feeding.switched(10, alternate=True)
    feeding.switched(left, alternate=False)
    taken = steps(feeding, left + 50)
    assert taken[1] == Skip(left - WINDOW_BYTES, alternate=True)
    assert taken[-2:] == [Feed(left - SLICE_BYTES, left), Feed(left, left + 50)]


def test_a_size_takes_effect_at_its_place() -> None:
    feeding = at(10)
    feeding.resized(5, 6)
    feeding.output(20)
    feeding.resized(7, 8)
    assert steps(feeding, 20) == [Feed(0, 10), Resize(5, 6), Feed(10, 20), Resize(7, 8)]


def test_a_size_that_was_skipped_takes_effect_behind_the_skip() -> None:
    feeding = at(10)
    feeding.resized(5, 6)
    feeding.output(10 + 2 * WINDOW_BYTES)
    assert steps(feeding, 10 + 2 * WINDOW_BYTES)[:2] == [
        Skip(10 + WINDOW_BYTES, alternate=False),
        Resize(5, 6),
    ]


def test_the_target_may_be_before_the_end() -> None:
    feeding = at(100)
    assert steps(feeding, 40) == [Feed(0, 40)]
    assert feeding.behind(100) == 60
    assert feeding.behind(10) == 0


def test_switches_and_sizes_that_wait_are_bounded() -> None:
    feeding = Feeding(0)
    for number in range(3 * MAX_EVENTS):
        feeding.output(number)
        feeding.switched(number, alternate=number % 2 == 0)
        feeding.resized(number + 1, 80)
    assert len(feeding._events) <= MAX_EVENTS
    taken = steps(feeding, feeding.must_reach)
    assert taken[0] == Skip(3 * MAX_EVENTS - 1, alternate=False)
    assert taken[-1] == Resize(3 * MAX_EVENTS, 80)
    assert feeding.next(3 * MAX_EVENTS - 1) is None


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"", 0),
        (b"31mtext\x1b[0m", 7),
        (b"title\x1b\\text\r\nmore", 5),
        (b"half a line\r\nnext", 13),
        (b"\na line", 1),
        (b"\x97\xa5 plain", 2),
        (b"plain", 0),
        (b"\x80\x80\x80\x80\x80", 0),
    ],
)
def test_an_emulator_begins_where_nothing_is_cut_in_two(data: bytes, start: int) -> None:
    assert safe_start(data) == start


# Whatever the moments at which somebody asks: the same screens as when everything is fed at once.


@attrs.define
class Follower:
    """What the live screen does, over bytes in memory."""

    data: bytes
    emulator: ScreenEmulator
    feeding: Feeding = attrs.field(factory=lambda: Feeding(0))
    scanner: SequenceScanner = attrs.field(factory=SequenceScanner)

    def output(self, start: int, end: int) -> None:
        for offset, alternate in switches_in(self.scanner.feed(self.data[start:end], start)):
            self.feeding.switched(offset, alternate=alternate)
        self.feeding.output(end)

    def advance(self, target: int, limit: int = 1_000_000) -> None:
        for _ in range(limit):
            step = self.feeding.next(target)
            match step:
                case None:
                    break
                case Feed(start=start, end=end):
                    self.emulator.feed(self.data[start:end])
                    self.feeding.reached(end)
                case Skip(to=to, alternate=alternate):
                    self.emulator.skip(alternate=alternate)
                    self.feeding.reached(to + safe_start(self.data[to : to + SLICE_BYTES]))
                case Resize(rows=rows, cols=cols):
                    self.emulator.resize(rows, cols)


SESSION = b"".join(
    [
        b"$ ls\r\n\x1b[1mfile\x1b[0m\r\n$ vim file\r\n",
        b"\x1b[?1049h\x1b[22;0;0t\x1b[H\x1b[2J~\r\n~\x1b[24;1H-- INSERT --\x1b[1;1H",
        "日本\x1b[1;3Hé\x1b[1;1H".encode(),
        b"\x1b[?1049l\x1b[23;0;0t$ seq 500\r\n",
        b"".join(b"%d\r\n" % number for number in range(500)),
        b"\x1b]0;title\x07$ less\r\n\x1b[?1049h\x1b[?1h\x1b=text\r\n:\x1b[K",
        b"\x1b[?1l\x1b>\x1b[?1049l",
        b"$ clear\r\n\x1b[H\x1b[2J\x1b[3J$ ",
    ]
)


def continuous(data: bytes, rows: int, cols: int) -> Screenshot:
    emulator = ScreenEmulator(rows, cols, GRIDS["pyte"])
    emulator.feed(data)
    return emulator.screen()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("grid", GRIDS)
def test_who_asks_at_any_moment_sees_what_continuous_feeding_shows(seed: int, grid: str) -> None:
    rng = random.Random(seed)
    follower = Follower(SESSION, ScreenEmulator(24, 80, GRIDS[grid]))
    place = 0
    while place < len(SESSION):
        end = min(place + rng.choice([1, 7, 100, 2000]), len(SESSION))
        follower.output(place, end)
        place = end
        follower.advance(follower.feeding.must_reach, limit=rng.choice([0, 1, 1000]))
        if rng.random() < 0.3:
            follower.advance(place)
            assert follower.emulator.screen() == continuous(SESSION[:place], 24, 80)
    follower.advance(place)
    assert follower.emulator.screen() == continuous(SESSION, 24, 80)


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen", "unseen"])
def test_after_a_flood_and_a_clear_the_screen_is_whole_again(is_seen: bool) -> None:
    flood = b"".join(b"\x1b[3%dmline %d\r\n" % (n % 8, n) for n in range(20_000))
    data = SESSION + flood + SESSION
    follower = Follower(data, ScreenEmulator(24, 80, GRIDS["pyavt"]))
    flooded = len(SESSION) + len(flood)
    follower.output(0, len(SESSION))
    follower.advance(len(SESSION))
    follower.output(len(SESSION), flooded)
    if is_seen:
        follower.advance(flooded)
        whole = continuous(data[:flooded], 24, 80)
        assert follower.emulator.screen() == attrs.evolve(whole, partial=True)
    follower.output(flooded, len(data))
    follower.advance(len(data))
    assert follower.emulator.screen() == continuous(data, 24, 80)

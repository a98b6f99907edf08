"""Tests of the progress: one line on a terminal, lines now and then in a file."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from tests.chaos.running.progress import CLEAR, LINE_EVERY_S, REWRITE_S, Progress, fitted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda number: monkeypatch.setenv("COLUMNS", str(number))


def test_a_terminal_has_one_line_that_is_rewritten(columns: Callable[[int], None]) -> None:
    columns(80)
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, now=clock)
    progress.show("1 seed", "0 violations")
    clock.now += REWRITE_S
    progress.show("2 seeds")
    assert stream.getvalue() == f"{CLEAR}1 seed · 0 violations{CLEAR}2 seeds"
    progress.clear()
    progress.clear()
    assert stream.getvalue() == f"{CLEAR}1 seed · 0 violations{CLEAR}2 seeds{CLEAR}"


def test_a_terminal_is_not_written_to_all_the_time() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, now=clock)
    for number in range(1000):
        clock.now += REWRITE_S / 100
        progress.show(str(number))
    assert stream.getvalue().count(CLEAR) == pytest.approx(10, abs=1)


def test_the_line_never_fills_the_last_column(columns: Callable[[int], None]) -> None:
    columns(30)
    stream = Terminal()
    Progress(stream).show("x" * 20, "y" * 20, "z")
    assert stream.getvalue() == CLEAR + "x" * 20


def test_a_file_has_a_line_every_ten_seconds_and_none_at_once() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream, now=clock)
    for number in range(60):
        progress.show(f"{number} seeds", "0 violations")
        clock.now += 1
    progress.clear()
    every = int(LINE_EVERY_S)
    assert stream.getvalue().splitlines() == [
        f"{number} seeds · 0 violations" for number in range(every, 60, every)
    ]


@pytest.mark.parametrize(
    ("parts", "width", "text"),
    [
        (["one"], 80, "one"),
        (["one", "two"], 80, "one · two"),
        (["one", "two"], 9, "one · two"),
        (["one", "two"], 8, "one"),
        (["one", "two", "3"], 9, "one · two"),
        (["one"], 2, "on"),
        (["one"], 0, ""),
    ],
)
def test_parts_that_do_not_fit_are_left_out(parts: list[str], width: int, text: str) -> None:
    assert fitted(parts, width) == text

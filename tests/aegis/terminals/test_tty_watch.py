"""When the watch over the tty begins: with a command, however the tracker came to know of it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from aegis.terminals.shell_timers import LookAtTty
from aegis.terminals.tty_watch import TtyWatch
from aegis.terminals.waiting import next_look_after


@attrs.define
class Surroundings:
    """What a watch has around it: a tracker, and a timer that is only written down."""

    is_at_work: bool = False
    timers: list[tuple[float, object]] = attrs.field(factory=list)

    @property
    def tracker(self) -> Surroundings:
        return self

    def after(self, delay_s: float, message: object) -> None:
        self.timers.append((delay_s, message))


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


@pytest.fixture
def watch(around: Surroundings) -> TtyWatch:
    there: Any = around
    return TtyWatch("1", there, there, there, there, lambda _: None)


FIRST_LOOK = (next_look_after(0.0), LookAtTty(shell="1"))


def test_output_at_a_prompt_begins_nothing(watch: TtyWatch, around: Surroundings) -> None:
    watch.stirred()
    watch.looked_again()
    assert around.timers == []


def test_output_of_a_command_begins_the_watch_once(watch: TtyWatch, around: Surroundings) -> None:
    around.is_at_work = True
    for _ in range(3):
        watch.stirred()
        watch.looked_again()
    assert around.timers == [FIRST_LOOK]


def test_a_start_that_was_held_back_begins_the_watch_without_more_output(
    watch: TtyWatch, around: Surroundings
) -> None:
    watch.stirred()  # its mark has come, and waits for the one on the PTY of standard error
    around.is_at_work = True  # that one was given up
    watch.looked_again()
    assert around.timers == [FIRST_LOOK]

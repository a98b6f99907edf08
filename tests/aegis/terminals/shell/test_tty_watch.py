"""When the watch over the tty begins: with a command, however the tracker came to know of it."""

from __future__ import annotations

import os
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from aegis.processes.input_wait import next_check_after
from aegis.processes.line_discipline import LineDiscipline, LineEnds
from aegis.processes.process_host import Program
from aegis.terminals.shell.messages import LookAtTty
from aegis.terminals.shell.tty_watch import TtyWatch


@attrs.define(slots=False)
class Surroundings:
    """What a watch has around it: a tracker, and a timer that is only written down."""

    is_at_work: bool = False
    timers: list[tuple[float, object]] = attrs.field(factory=list)

    @property
    def pipeline(self) -> Surroundings:
        return self

    def after(self, delay_s: float, message: object) -> None:
        self.timers.append((delay_s, message))


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


@pytest.fixture
def watch(around: Surroundings) -> TtyWatch:
    there: Any = around
    return TtyWatch("1", there, there, there, there, there)


FIRST_LOOK = (next_check_after(0.0), LookAtTty(shell="1"))


def test_output_at_a_prompt_begins_nothing(watch: TtyWatch, around: Surroundings) -> None:
    watch.on_activity()
    watch.check_again()
    assert around.timers == []


def test_output_of_a_command_begins_the_watch_once(watch: TtyWatch, around: Surroundings) -> None:
    around.is_at_work = True
    for _ in range(3):
        watch.on_activity()
        watch.check_again()
    assert around.timers == [FIRST_LOOK]


def test_a_start_that_was_held_back_begins_the_watch_without_more_output(
    watch: TtyWatch, around: Surroundings
) -> None:
    watch.on_activity()  # its mark has come, and waits for the one on the PTY of standard error
    around.is_at_work = True  # that one was given up
    watch.check_again()
    assert around.timers == [FIRST_LOOK]


@attrs.define
class Reading:
    """A shell without a line editor: it prints its prompt into ``pipe``, and reads the terminal."""

    pipe: int
    host: Reading = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.host = self

    def line_discipline(self) -> LineDiscipline:
        return LineDiscipline(
            name="/dev/pts/7", is_canonical=True, echoes=True, line_ends=LineEnds(end=b"", drop=b"")
        )

    def foreground_pgrp(self) -> int:
        return 7

    def program_of(self, pid: int, terminal: str) -> Program:
        os.write(self.pipe, b"$ ")
        return Program(name="dash", reads=True)


async def test_who_reads_behind_a_prompt_that_was_not_read_yet_is_not_said_to_wait() -> None:
    source, pipe = os.pipe()
    there: Any = Surroundings(is_at_work=True)
    shell: Any = Reading(pipe)
    told: list[object] = []
    there.handle = told.append
    watch = TtyWatch("1", shell, there, shell, there, there)
    try:
        async with trio.open_nursery() as nursery:
            there.start_soon = nursery.start_soon
            there.look = lambda front: False
            there.checked = lambda front, quiet_s: None
            nursery.start_soon(take_in, source, watch)
            await trio.testing.wait_all_tasks_blocked()
            watch.check_again()
            watch.on_timer()
    finally:
        os.close(source)
        os.close(pipe)
    assert told == []


async def take_in(source: int, watch: TtyWatch) -> None:
    """What reads a terminal."""
    await trio.lowlevel.wait_readable(source)
    watch.on_activity()

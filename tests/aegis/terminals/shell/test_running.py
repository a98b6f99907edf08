"""How a shell's output is taken in: whole, and in turns that leave others theirs. Real PTYs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import pytest
import trio

from aegis.errors import Busy
from aegis.processes.pty import open_pty_process
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.shell.running import (
    MAX_OUTGOING_BYTES,
    TURN_S,
    TURNS_FOR_OTHERS,
    RunningShell,
)

pytestmark = pytest.mark.real

GUARD_S = 60.0
"""Against hanging, far above what anything here takes."""


class Taker:
    """In the place of the actor: notes what it is fed, and at which turn of the loop."""

    def __init__(self, busy_s: float = 0.0) -> None:
        self.data: list[bytes] = []
        self.fed_at: list[int] = []
        self.turns = 0
        self._busy_s = busy_s

    def feed(self, data: bytes) -> None:
        """Take ``data`` in, for as long as it is busy."""
        self.data.append(data)
        self.fed_at.append(self.turns)
        until = perf_counter() + self._busy_s
        while perf_counter() < until:
            pass

    async def count_turns(self) -> None:
        """Count the turns of the loop."""
        while True:
            self.turns += 1
            await trio.lowlevel.checkpoint()


def nothing(*_: object) -> None:
    """Do nothing."""


@asynccontextmanager
async def running(*argv: str) -> AsyncIterator[RunningShell]:
    """A program in the place of a shell; killed in the end, if it is still there."""
    process = await open_pty_process(
        argv, cwd=str(Path.cwd()), env={"PATH": os.environ["PATH"]}, rows=24, cols=80
    )
    adapter = ShellAdapter(secret=b"0123456789abcdef", argv=argv, directory=Path.cwd())
    shell = RunningShell("one", process, "", adapter, 0)
    try:
        yield shell
    finally:
        shell.close()
        await process.wait()


async def flood_until(taker: Taker, seen: Callable[[], bool]) -> None:
    """Let a program print without end until ``seen``."""
    with trio.fail_after(GUARD_S):
        async with running("yes") as shell, trio.open_nursery() as nursery:
            nursery.start_soon(taker.count_turns)
            nursery.start_soon(shell.run, taker.feed, taker.feed, nothing, nursery.start_soon)
            while not seen():
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()


async def test_everything_is_taken_in_and_the_status_is_told() -> None:
    taker = Taker()
    with trio.fail_after(GUARD_S):
        async with (
            running("sh", "-c", "seq 1 100000; exit 3") as shell,
            trio.open_nursery() as nursery,
        ):
            assert await shell.run(taker.feed, taker.feed, nothing, nursery.start_soon) == 3
    assert b"".join(taker.data) == b"".join(b"%d\r\n" % each for each in range(1, 100_001))


async def test_what_a_program_does_not_read_is_bounded() -> None:
    async with running("sleep", "1000") as shell:
        lines = b"x\n" * (MAX_OUTGOING_BYTES // 4)
        shell.check_keys("build", lines)
        shell.send(lines)
        shell.send(lines)
        with pytest.raises(Busy, match="build"):
            shell.check_keys("build", lines)


async def test_between_two_turns_of_a_flood_others_have_several() -> None:
    taker = Taker(busy_s=2 * TURN_S)
    await flood_until(taker, lambda: len(taker.fed_at) > 50)
    pauses = [later - one for one, later in zip(taker.fed_at, taker.fed_at[1:], strict=False)]
    assert min(pauses) >= TURNS_FOR_OTHERS


async def test_one_turn_takes_in_what_lies_ready_while_its_time_lasts() -> None:
    taker = Taker()
    # A piece a turn could be two in a row, at the end of one turn and the beginning of the next.
    await flood_until(taker, lambda: _thrice(taker))


def _thrice(taker: Taker) -> bool:
    """Whether three pieces in a row came in one turn, lately."""
    newest = taker.fed_at[-100:]
    return any(one == third for one, third in zip(newest, newest[2:], strict=False))

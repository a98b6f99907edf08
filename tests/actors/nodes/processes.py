"""Programs of ``programs``, started and read line by line."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from actors.nodes import Beat
from tests.actors.nodes.machine import GUARD_S
from tests.netns import Host

ROOT = Path(__file__).resolve().parents[3]

QUICK = Beat(0.1, 0.6)
"""Noticed soon, and still not by chance on a busy machine: only for what is there."""

CALM = Beat(0.5, 10.0)
"""For what is not about silence."""


class Program:
    """A program that runs, and what it has said."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._lines: list[str] = []
        self._more = trio.Event()

    @property
    def pid(self) -> int:
        """Its number. It is the program itself also on another host: nsenter becomes it."""
        return self.process.pid

    async def line(self, start: str) -> str:
        """Return what follows ``start`` in the next line that begins so, and drop those before."""
        with trio.fail_after(GUARD_S):
            while True:
                while self._lines:
                    line = self._lines.pop(0)
                    if line.startswith(start):
                        return line.removeprefix(start).strip()
                await self._more.wait()
                self._more = trio.Event()

    async def read(self) -> None:
        """Take what it says, to the end."""
        assert self.process.stdout is not None
        rest = b""
        async for data in self.process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            self._lines += [line.decode() for line in lines]
            self._more.set()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def program(*words: str, on: Host | None = None) -> AsyncIterator[Program]:
    """A program that is killed when the block is left."""
    command = [sys.executable, "-m", "tests.actors.nodes.programs", *words]
    process = await trio.lowlevel.open_process(
        command if on is None else on.command(*command), stdout=subprocess.PIPE, cwd=ROOT
    )
    running = Program(process)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.read)
        try:
            yield running
        finally:
            with trio.CancelScope(shield=True):
                await running.kill()
            nursery.cancel_scope.cancel()
    assert process.stdout is not None
    await process.stdout.aclose()


@asynccontextmanager
async def root_program(
    key: Path, *more: str, host: str = "127.0.0.1", port: int = 0, on: Host | None = None
) -> AsyncIterator[tuple[Program, int]]:
    """A root that listens, and its port."""
    async with program("root", str(key), host, str(port), *more, on=on) as root:
        yield root, int(await root.line("listening"))


@asynccontextmanager
async def node_program(
    key: Path,
    port: int,
    *,
    host: str = "127.0.0.1",
    name: str = "gpu1",
    hello: str = "a node",
    beat: Beat = CALM,
    on: Host | None = None,
) -> AsyncIterator[Program]:
    """A node that joins, and joins again."""
    words = ("node", str(key), host, str(port), name, hello)
    times = (str(beat.every_s), str(beat.lost_after_s))
    async with program(*words, *times, on=on) as node:
        yield node

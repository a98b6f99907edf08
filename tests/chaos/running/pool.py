"""Seeds on all processors: processes that play one seed at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import trio

from tests.chaos.running.figures import Played, broken_off

SEED_GUARD_S = 300.0
"""The time, in seconds, after which a seed counts as hanging; most take less than one."""

TWICE_EVERY = 50
"""One seed in this many is played twice."""

MAX_LINE = 1024 * 1024


class Pool:
    """The player of ``seeds`` in ``jobs`` processes; ``on_played`` gets each result at once.

    A process that ends or hangs is a violation of its seed, and is replaced.
    """

    def __init__(
        self,
        seeds: Iterator[int],
        jobs: int,
        on_played: Callable[[Played], None],
        *,
        command: tuple[str, ...] = (sys.executable, "-m", "tests.chaos.running.worker"),
        guard_s: float = SEED_GUARD_S,
    ) -> None:
        self._seeds = seeds
        self._jobs = jobs
        self._on_played = on_played
        self._command = command
        self._guard_s = guard_s
        self._begun = 0

    async def run(self) -> None:
        """Run until no seed is left; a cancelled run leaves no process."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._jobs):
                nursery.start_soon(self._work)

    async def _work(self) -> None:
        """Run one process after the other; usually one is enough."""
        for first in self._seeds:
            await self._with_process(first)

    async def _with_process(self, seed: int) -> None:
        """Play ``seed`` and the following ones, as long as the process answers."""
        process = await self._start()
        try:
            lines = _lines(process)
            is_well = await self._play(process, lines, seed)
            while is_well and (following := next(self._seeds, None)) is not None:
                is_well = await self._play(process, lines, following)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()

    async def _start(self) -> trio.Process:
        """Start a process in a session of its own: Ctrl-C goes to the parent."""
        return await trio.lowlevel.open_process(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def _play(self, process: trio.Process, lines: _Lines, seed: int) -> bool:
        twice = self._begun % TWICE_EVERY == 0
        self._begun += 1
        line = b""
        with trio.move_on_after(self._guard_s) as guard:
            line = await _asked(process, lines, {"seed": seed, "twice": twice})
        if line:
            self._on_played(Played.from_line(line))
        elif guard.cancelled_caught:
            self._on_played(broken_off(seed, f"it was not over after {self._guard_s:g} s"))
        else:
            code = await process.wait()
            self._on_played(broken_off(seed, f"the process that played it ended with {code}"))
        return bool(line)


class _Lines:
    """The lines that a process prints."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._read = bytearray()

    async def next(self) -> bytes:
        """Return the next line; empty at the end."""
        while (end := self._read.find(b"\n")) < 0:
            data = await self._stream.receive_some()
            if not data or len(self._read) > MAX_LINE:
                return b""
            self._read += data
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line


def _lines(process: trio.Process) -> _Lines:
    assert process.stdout is not None
    return _Lines(process.stdout)


async def _asked(process: trio.Process, lines: _Lines, request: dict[str, object]) -> bytes:
    """Return the answer to a request; empty if the process is gone."""
    assert process.stdin is not None
    try:
        await process.stdin.send_all(f"{json.dumps(request)}\n".encode())
    except trio.BrokenResourceError:
        return b""
    return await lines.next()

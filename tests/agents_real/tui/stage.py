"""A program on a PTY that is recorded while a script plays with it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs
import trio

from aegis.processes.foreground import read_foreground
from aegis.processes.input_wait import Foreground
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import GroupScan
from aegis.processes.pty import PtyProcess, open_pty_process
from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.shell.responder import Responder
from tests.agents_real.tui import recording as rec

ROWS, COLS = 24, 80
SAMPLE_S = 0.2
PATIENCE_S = 60.0
GRACE_S = 5.0


class Stage:
    """A running program, its screen, and the events so far."""

    def __init__(self, process: PtyProcess, *, reports: bool) -> None:
        self.began = time.monotonic()
        self.events: list[rec.Event] = []
        self.ended = trio.Event()
        self._process = process
        self._emulator = new_emulator(ROWS, COLS)
        self._reports = reports
        self._size = (ROWS, COLS)
        self._printed = 0
        self._last_output = 0.0
        self._changed = trio.Event()
        self._groups: dict[int, int] = {}
        self._scanner = SequenceScanner()
        self._responder = Responder(size=lambda: self._size, cursor_at=lambda _: self._cursor())

    def now(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.began

    def _cursor(self) -> tuple[int, int]:
        row, col = self._emulator.screen().cursor
        return row + 1, col + 1

    def _answer(self, data: bytes) -> None:
        if not data or (not self._reports and data.startswith(b"\x1b]7501")):
            return
        self.events.append(rec.Answer(t=self.now(), data=data))
        self._process.write_now(data)

    def text(self) -> str:
        """Return the text of the screen."""
        return "\n".join(self._emulator.screen().lines)

    async def pump(self) -> None:
        """Record the output to its end."""
        while data := await self._process.read():
            self._last_output = self.now()
            self.events.append(rec.Output(t=self._last_output, data=data))
            self._emulator.feed(data)
            for sequence in self._scanner.feed(data, self._printed):
                self._answer(self._responder.answer(sequence, self.now()))
            self._printed += len(data)
            self._changed.set()
            self._changed = trio.Event()

    async def watch_exit(self) -> None:
        """Record the end of the program."""
        code = await self._process.wait()
        self.events.append(rec.Exited(t=self.now(), code=code))
        self.truth("exited", because="the process ended")
        self.ended.set()

    async def sample(self) -> None:
        """Record the facts of the tty, whenever they changed."""
        groups = GroupScan(OsProcessHost())
        last: Foreground | None = None
        while not self.ended.is_set():
            at = self.now()
            front = await read_foreground(self._process, groups)
            if front is not None:
                ordinal = self._groups.setdefault(front.group, len(self._groups) + 1)
                front = attrs.evolve(front, group=ordinal)
            if front != last:
                self.events.append(rec.TtySample(t=at, front=front))
                last = front
            await trio.sleep(SAMPLE_S)

    def truth(
        self,
        state: rec.State,
        kind: str = "",
        *,
        because: str,
        shown: str = "",
        at: float | None = None,
    ) -> None:
        """Record that the true state is this from now on, or from ``at`` on."""
        moment = self.now() if at is None else at
        self.events.append(
            rec.Truth(t=moment, state=state, kind=kind, because=because, shown=shown)
        )

    async def keys(self, data: str, *, works: str = "") -> None:
        """Send keystrokes; ``works`` is the reason why the program works from then on."""
        self.events.append(rec.Keys(t=self.now(), data=data.encode()))
        if works:
            self.truth("working", because=works)
        await self._process.write(data.encode())

    async def type(self, text: str) -> None:
        """Send text as a person types it."""
        for letter in text:
            await self.keys(letter)
            await trio.sleep(0.03)

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of the window."""
        self._size = (rows, cols)
        self.events.append(rec.Resized(t=self.now(), rows=rows, cols=cols))
        self._emulator.resize(rows, cols)
        self._process.resize(rows, cols)

    async def until(self, is_true: Callable[[], bool], what: str) -> None:
        """Wait for a condition of the screen; raises ``LookupError`` with the screen."""
        with trio.move_on_after(PATIENCE_S) as guard:
            while not is_true():
                with trio.move_on_after(0.05):
                    await self._changed.wait()
        if guard.cancelled_caught:
            raise LookupError(f"{what} was not seen; the screen:\n{self.text()}")

    async def shows(self, text: str) -> None:
        """Wait until the screen has this text."""
        await self.until(lambda: text in self.text(), repr(text))

    async def waits(self, kind: str, text: str, *, because: str, settle: bool = False) -> None:
        """Wait for the text by which the program asks, and record that it needs input.

        ``settle``: also until nothing was printed for half a second; the time is then that of the
        last output.
        """
        await self.shows(text)
        at = self.now()
        if settle:
            await self.quiet(0.5)
            at = self._last_output
        self.truth("needs_input", kind, because=because, shown=text, at=at)

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing was printed for this time."""
        await self.until(
            lambda: self.now() - self._last_output >= seconds, f"a quiet of {seconds} s"
        )


Environment = Mapping[str, str]


@asynccontextmanager
async def on_stage(
    argv: Sequence[str], *, cwd: str, env: Environment, reports: bool = True
) -> AsyncIterator[Stage]:
    """Start a program on a PTY and record it; it is ended afterwards."""
    process = await open_pty_process(argv, cwd=cwd, env=env, rows=ROWS, cols=COLS)
    stage = Stage(process, reports=reports)
    stage.truth("working", because="the program starts")
    try:
        async with trio.open_nursery() as nursery:
            for task in (stage.pump, stage.watch_exit, stage.sample):
                nursery.start_soon(task)
            yield stage
            with trio.fail_after(PATIENCE_S):
                await stage.ended.wait()
            # A child that still has the terminal open does not keep the recording open.
            await trio.sleep(0.3)
            nursery.cancel_scope.cancel()
    finally:
        process.close()
        with trio.move_on_after(GRACE_S, shield=True) as guard:
            await process.wait()
        if guard.cancelled_caught:
            os.kill(process.pid, signal.SIGKILL)
            with trio.CancelScope(shield=True):
                await process.wait()

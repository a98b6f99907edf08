"""A running shell: its process and PTYs, what it means, and the input that is not written yet."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import trio

from aegis.errors import Busy, InvalidRequest
from aegis.processes.line_discipline import MAX_LINE_BYTES, CollectedLine
from aegis.processes.process_host import ErrorTerminal, ProcessHost, ShellProcess
from aegis.protocol.terminals import NeedsInput, State
from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.output.notifier import Notifier
from aegis.terminals.parse.reported_directory import DirectoryReports
from aegis.terminals.sentences import line_too_long, not_read
from aegis.terminals.shell.pipeline import ShellPipeline
from aegis.terminals.shell.submissions import Submissions

MAX_OUTGOING_BYTES = 1024 * 1024
"""The most bytes of input that may wait for a program to read them."""

TURN_S = 0.00025
"""The longest time that one turn of the loop reads output, in seconds.

The output of the last read is still processed.
"""

TURNS_FOR_OTHERS = 2
"""Turns of the loop for other tasks between two turns of a flood of output.

A command on another terminal takes a dozen turns, one after the other, and would wait for the flood
in each.
"""

DRAIN_S = 0.2
"""How long output is read after the shell has ended while another process has the PTY open."""

GONE = (trio.BrokenResourceError, trio.ClosedResourceError)
"""The errors of a write after the end of the shell; the input is dropped."""


class RunningShell:
    """A shell called ``name``; ``outgoing_size`` is how many bytes of input are not written yet.

    ``errors`` is the PTY of its commands' standard error, if that is captured separately. Its
    output begins at the offset ``position``.
    """

    def __init__(
        self,
        name: str,
        process: ShellProcess,
        cookie: str,
        adapter: ShellAdapter,
        position: int,
        errors: ErrorTerminal | None = None,
    ) -> None:
        self.errors = errors
        self.name = name
        self.process = process
        self.cookie = cookie
        self.rules = Submissions(adapter)
        self.pipeline = ShellPipeline(name, self.rules, position)
        self.reports = DirectoryReports()
        self.outgoing_size = 0
        self._line = CollectedLine()
        self._line_group: int | None = None
        self._outgoing: list[bytes] = []
        self._start_soon: Callable[..., object] | None = None
        self._is_writing = False
        self._is_at_end = False
        self._at_end = Notifier()

    @property
    def is_in_front(self) -> bool:
        """Whether the shell itself would read typed keys, as far as can be known."""
        return self.process.foreground_pgrp() in (None, self.process.pid)

    def waits_for_keys(self, host: ProcessHost) -> bool:
        """Whether the shell has read every key sent to it, and its line editor waits for more."""
        process = self.process
        tty = process.line_discipline()
        if tty is None or tty.is_canonical or tty.echoes or not self.is_in_front:
            return False
        if self.outgoing_size or process.has_unread_keys():
            return False
        if not self.rules.adapter.uses_readline:
            return True  # its line editor polls several descriptors, so /proc shows no read
        program = host.program_of(process.pid, tty.name)
        return program is not None and program.reads is not False

    def send(self, data: bytes) -> None:
        """Send bytes to the PTY, after all that was sent before."""
        if not self.outgoing_size:
            with contextlib.suppress(*GONE):
                data = data[self.process.write_now(data) :]
        if data:
            self._outgoing.append(data)
            self.outgoing_size += len(data)
            self._write_soon()

    def _write_soon(self) -> None:
        """Start a task that writes the rest of the input, unless one runs."""
        if self._outgoing and not self._is_writing and self._start_soon is not None:
            self._is_writing = True
            self._start_soon(self._write)

    def check_keys(self, terminal: str, data: bytes) -> None:
        """Raise ``Busy`` or ``InvalidRequest`` for keys that would not arrive complete.

        Otherwise the keys count as sent.
        """
        waiting = self.outgoing_size + self.rules.queued_bytes
        if waiting + len(data) > MAX_OUTGOING_BYTES:
            raise Busy(not_read(terminal, waiting))
        tty = self.process.line_discipline()
        if tty is None:
            return
        group = self.process.foreground_pgrp()
        if not tty.is_canonical or group != self._line_group:
            self._line.reset()
        self._line_group = group
        if not tty.is_canonical:
            return
        longest = self._line.longest(data, tty.line_ends)
        if longest > MAX_LINE_BYTES:
            raise InvalidRequest(line_too_long(terminal, longest))
        self._line.sent(data, tty.line_ends)

    async def run(
        self,
        feed: Callable[[bytes], None],
        feed_errors: Callable[[bytes], None],
        after_turn: Callable[[], None],
        start_soon: Callable[..., object],
    ) -> int:
        """Read and write until the process has ended; return its status. ``close`` it then.

        ``feed`` and ``feed_errors`` are called with the bytes of the two PTYs, and ``after_turn``
        after each turn of the loop that read some. ``start_soon`` starts helper tasks.
        """
        self._start_soon = start_soon
        self._write_soon()
        # No nursery for the readers, which ``close`` ends: it takes 1.5 KB for each shell.
        start_soon(self._read, feed, after_turn)
        if self.errors is not None:
            start_soon(_read_errors, self.errors, feed_errors, after_turn)
        status = await self.process.wait()
        with trio.move_on_after(DRAIN_S):
            while not self._is_at_end:
                await self._at_end.wait()
        return status

    def resize(self, rows: int, cols: int) -> None:
        """Set the size of the window."""
        with contextlib.suppress(OSError, trio.ClosedResourceError):
            self.process.resize(rows, cols)
            if self.errors is not None:
                self.errors.resize(rows, cols)

    def left_errors(self) -> Iterator[bytes]:
        """Yield the rest of standard error after the end of the process."""
        if self.errors is not None:
            with contextlib.suppress(OSError, trio.ClosedResourceError):
                while data := self.errors.read_now():
                    yield data

    def close(self) -> None:
        """Close the PTYs. Idempotent."""
        self.process.close()
        if self.errors is not None:
            self.errors.close()

    async def reap(self, within_s: float) -> None:
        """Reap the killed process, unless the kernel takes longer than ``within_s``."""
        with trio.move_on_after(within_s):
            await self.process.wait()

    async def _read(self, feed: Callable[[bytes], None], after_turn: Callable[[], None]) -> None:
        with contextlib.suppress(trio.ClosedResourceError):  # the PTY was closed to end the shell
            while data := await self.process.read():
                is_dry = self._take_in(data, feed)
                data = b""  # else an idle terminal keeps it, up to 4 KB
                after_turn()
                for _ in range(0 if is_dry else TURNS_FOR_OTHERS):
                    await trio.lowlevel.checkpoint()
        self._is_at_end = True
        self._at_end.notify()

    def _take_in(self, data: bytes, feed: Callable[[bytes], None]) -> bool:
        """Process ``data`` and the output after it, for one turn; return whether that was all."""
        until = trio.current_time() + TURN_S
        while True:
            feed(data)
            if trio.current_time() >= until:
                return False
            data = self.process.read_now()
            if not data:
                return True

    async def _write(self) -> None:
        with contextlib.suppress(*GONE):
            while self._outgoing:
                data = self._outgoing.pop(0)
                await self.process.write(data)
                self.outgoing_size -= len(data)
            self._is_writing = False


async def _read_errors(
    errors: ErrorTerminal, feed: Callable[[bytes], None], after_turn: Callable[[], None]
) -> None:
    with contextlib.suppress(trio.ClosedResourceError):
        while data := await errors.read():
            feed(data)
            after_turn()


def introduction(
    running: RunningShell | None,
    *,
    life: int,
    first_cursor: int,
    cursor: int,
    shells: Sequence[str],
    failure: str,
    ending: msg.WhyEnded | None,
    needs_input: NeedsInput | None,
    notifications: tuple[msg.CommandNotification, ...],
) -> msg.Introduction:
    """Return the state of incarnation ``life`` for the front; ``running`` is its current shell."""
    rules = None if running is None else running.rules
    pipeline = None if running is None else running.pipeline
    return msg.Introduction(
        life=life,
        first_cursor=first_cursor,
        cursor=cursor,
        shells=tuple(shells),
        shell=shells[-1],
        pid=None if running is None else running.process.pid,
        integration="osc133" if rules is None else rules.adapter.integration,
        was_prompted=pipeline is not None and pipeline.was_prompted,
        at_prompt=pipeline is not None and pipeline.at_prompt,
        cwd=None if pipeline is None else pipeline.cwd,
        typing=None if rules is None else rules.typing,
        submitted=None if rules is None else rules.submitted,
        needs_input=needs_input,
        failure=failure,
        ending=ending,
        notifications=notifications,
    )


def state_of(running: RunningShell | None, failure: str, ending: msg.WhyEnded | None) -> State:
    """Return the state of the terminal, as far as its shell knows it."""
    if running is None:
        return "closed" if ending is not None else "failed" if failure else "starting"
    if not running.pipeline.was_prompted:
        return "starting"
    return "running" if running.pipeline.is_running else "idle"

"""One shell that runs: its process, what follows it, and what is still to be sent to it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable

import trio

from aegis.terminals.line_length import MAX_LINE_BYTES, LineInHand
from aegis.terminals.pty import PtyProcess
from aegis.terminals.tracker import Tracker
from aegis.terminals.tty_watch import TtyWatch

DRAIN_S = 0.2
"""How long output is still read when the shell has ended but something holds the PTY open."""

GONE = (trio.BrokenResourceError, trio.ClosedResourceError)
"""What writing raises once the shell has gone: what was sent to it goes with it."""


class RunningShell:
    """A shell called ``name``. ``outgoing_size``: how many bytes wait for it to read them."""

    def __init__(
        self, name: str, process: PtyProcess, cookie: str, tracker: Tracker, watch: TtyWatch
    ) -> None:
        self.name = name
        self.process = process
        self.cookie = cookie
        self.tracker = tracker
        self.watch = watch
        self.outgoing_size = 0
        self._line = LineInHand()
        self._line_group: int | None = None
        self._outgoing: deque[bytes] = deque()
        self._has_outgoing = trio.Event()
        self._reached_end = trio.Event()

    def send(self, data: bytes) -> None:
        """Send bytes to the PTY, after all that was sent before."""
        if not self.outgoing_size:
            with contextlib.suppress(*GONE):
                data = data[self.process.write_now(data) :]
        if data:
            self._outgoing.append(data)
            self.outgoing_size += len(data)
            self._has_outgoing.set()

    def check_line(self, data: bytes) -> int | None:
        """The length of a line in these keys that the program in front would not get whole.

        None if there is none, and then ``data`` counts as sent.
        """
        tty, group = self.process.line_discipline(), self.process.foreground_pgrp()
        if not tty.is_canonical or group != self._line_group:
            self._line.reset()
        self._line_group = group
        if not tty.is_canonical:
            return None
        longest = self._line.longest(data, tty.line_ends)
        if longest > MAX_LINE_BYTES:
            return longest
        self._line.sent(data, tty.line_ends)
        return None

    async def run(self, on_output: Callable[[], None]) -> int:
        """Read and write until the process has ended; gives its status.

        ``on_output`` is called whenever the tracker was fed.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, on_output)
            nursery.start_soon(self._write)
            status = await self.process.wait()
            with trio.move_on_after(DRAIN_S):
                await self._reached_end.wait()
            nursery.cancel_scope.cancel()
        return status

    async def reap(self, within_s: float) -> None:
        """Its process was killed: leave no zombie, unless the kernel takes longer than that."""
        with trio.move_on_after(within_s):
            await self.process.wait()

    async def _read(self, on_output: Callable[[], None]) -> None:
        with contextlib.suppress(trio.ClosedResourceError):  # closed while it was ended
            while data := await self.process.read():
                self.tracker.feed(data)
                self.watch.stirred()
                on_output()
        self._reached_end.set()

    async def _write(self) -> None:
        while True:
            await self._has_outgoing.wait()
            self._has_outgoing = trio.Event()
            while self._outgoing:
                data = self._outgoing.popleft()
                try:
                    await self.process.write(data)
                except GONE:
                    return
                self.outgoing_size -= len(data)

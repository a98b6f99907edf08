"""``DaemonFrames``: the frames between this process and the daemon."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import trio

from aegis.processes.guarded.frames import Frame, FrameReader, LargeFrame, line_of

READ_BYTES = 65_536


def take_streams() -> tuple[int, int]:
    """Return descriptors of standard input and output, which only this module uses from now on.

    What others read from standard input is empty; what they print goes to standard error.
    """
    taken, given = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return taken, given


class DaemonFrames:
    """Frames from and to the daemon. A fork of this process has no part in it."""

    def __init__(self, taken: int, given: int) -> None:
        self._taken, self._given = taken, given
        self._reader = FrameReader()
        self._frames: list[Frame] = []
        self._sending: trio.Lock | None = None
        self._is_fork = False
        os.register_at_fork(after_in_child=self._leave)

    def _leave(self) -> None:
        """Close the streams in a fork: two processes on one stream would mix their lines."""
        os.close(self._taken)
        os.close(self._given)
        self._is_fork = True

    def end_fork(self) -> None:
        """End the process if it is a fork.

        It shares the selector of the event loop with its parent, whose registrations it would
        change.
        """
        if self._is_fork:
            sys.stderr.write("a fork of the workflow's process cannot use the engine; it ends\n")
            sys.stderr.flush()
            os._exit(1)

    # Before the event loop runs, and for the last frame.

    def next_blocking(self) -> Frame:
        """Return the next frame; end the process if the daemon is gone."""
        while not self._frames:
            data = os.read(self._taken, READ_BYTES)
            if not data:
                os._exit(1)
            self._frames += self._read(data)
        return self._frames.pop(0)

    def _read(self, data: bytes) -> list[Frame]:
        """Return the frames that ``data`` completes; end the process if one was too large."""
        frames = self._reader.feed(data)
        whole = [each for each in frames if not isinstance(each, LargeFrame)]
        if len(whole) < len(frames):
            sys.stderr.write("an answer of the daemon is too large for a workflow's process\n")
            sys.stderr.flush()
            os._exit(1)
        return whole

    def send_blocking(self, frame: Frame) -> None:
        """Send a frame whole. Raises ``OSError``."""
        rest = memoryview(line_of(frame))
        os.set_blocking(self._given, True)
        while rest:
            rest = rest[os.write(self._given, rest) :]

    # On the event loop.

    async def run(self, take: Callable[[Frame], object]) -> None:
        """Pass each frame to ``take``; end the process with the daemon."""
        stream = trio.lowlevel.FdStream(self._taken)
        while True:
            for frame in self._frames:
                take(frame)
            self._frames.clear()
            data = await stream.receive_some(READ_BYTES)
            if not data:
                os._exit(1)
            self._frames += self._read(bytes(data))

    async def send(self, frame: Frame) -> None:
        """Send a frame, after those that were sent before."""
        self.end_fork()
        if self._sending is None:
            self._sending = trio.Lock()
            os.set_blocking(self._given, False)
        rest: Any = memoryview(line_of(frame))
        # Shielded: the next frame follows this one, so half of it must not be sent.
        with trio.CancelScope(shield=True):
            async with self._sending:
                while rest:
                    try:
                        rest = rest[os.write(self._given, rest) :]
                    except BlockingIOError:
                        await trio.lowlevel.wait_writable(self._given)

"""Writing frames to an agent: whole, in order, and never waiting for it without a limit."""

from __future__ import annotations

import os
from collections import deque

import trio

from aegis.processes.guarded.frames import MAX_FRAME_BYTES, Frame, line_of

WRITE_BYTES = 65_536

MAX_QUEUED_BYTES = 2 * MAX_FRAME_BYTES
MAX_QUEUED_FRAMES = 4_096
"""The limits of the frames that the agent has not read. One frame may be larger."""


class FrameWriter:
    """The queue of frames to one agent. ``run`` must run in a task.

    The agent has failed to read when it reads nothing for ``within_s`` seconds, or when the queue
    is full. Then ``on_failure`` is set, and nothing more is written, as half a line may be in the
    pipe.
    """

    def __init__(self, descriptor: int, within_s: float, on_failure: trio.Event) -> None:
        self._descriptor = descriptor
        self._within_s = within_s
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._has_lines = trio.Event()
        self._is_empty = trio.Event()
        self._is_empty.set()
        self._on_failure = on_failure
        self.has_failed = False
        self._is_closed = False

    def put(self, frame: Frame) -> None:
        """Queue a frame; without effect after a failure or the agent's end."""
        if self._is_closed:
            return
        line = line_of(frame)
        if not self._lines:
            # Nearly every frame fits into the pipe: written here, it wakes no task.
            line = self._write_now(line)
            if not line:
                return
        self._lines.append(line)
        self._bytes += len(line)
        self._is_empty = trio.Event()
        self._has_lines.set()
        is_full = len(self._lines) > MAX_QUEUED_FRAMES or self._bytes > MAX_QUEUED_BYTES
        if is_full and len(self._lines) > 1:
            self._fail()

    async def run(self) -> None:
        """Write the queued frames, until the agent has ended or does not read."""
        while not self._is_closed:
            await self._has_lines.wait()
            while self._lines and not self._is_closed:
                await self._write(memoryview(self._lines[0]))
                if self._lines:
                    self._bytes -= len(self._lines.popleft())
            self._has_lines = trio.Event()
            self._is_empty.set()

    async def flushed(self) -> None:
        """Wait until every queued frame is written, or will never be."""
        await self._is_empty.wait()

    def close(self) -> None:
        """Drop the queued frames, and take no more. Idempotent."""
        self._is_closed = True
        self._lines.clear()
        self._bytes = 0
        self._has_lines.set()
        self._is_empty.set()

    def _write_now(self, line: bytes) -> bytes:
        """Write as much as the pipe takes at once; return the rest."""
        try:
            return line[os.write(self._descriptor, line) :]
        except BlockingIOError:
            return line
        except OSError:  # the agent has closed its input
            self.close()
            return b""

    def _fail(self) -> None:
        self.close()
        self.has_failed = True
        self._on_failure.set()

    async def _write(self, rest: memoryview) -> None:
        while rest and not self._is_closed:
            try:
                rest = rest[os.write(self._descriptor, rest[:WRITE_BYTES]) :]
            except BlockingIOError:
                with trio.move_on_after(self._within_s) as waiting:
                    await self._wait_for_room()
                if waiting.cancelled_caught:
                    self._fail()
            except OSError:  # the agent has closed its input
                self.close()
            else:
                await trio.lowlevel.checkpoint()

    async def _wait_for_room(self) -> None:
        try:
            await trio.lowlevel.wait_writable(self._descriptor)
        except trio.ClosedResourceError:
            self.close()

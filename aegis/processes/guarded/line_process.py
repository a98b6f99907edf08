"""``LineProcess``: an agent's process that speaks JSON lines, below its guard."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import attrs
import trio

from aegis.processes.guarded.frame_writer import FrameWriter
from aegis.processes.guarded.frames import (
    MAX_FRAME_BYTES,
    Frame,
    FrameReader,
    LargeFrame,
)
from aegis.processes.guarded.guarded_process import GuardedProcess, Launch, start_guarded
from aegis.processes.guarded.stderr_file import StderrFile
from aegis.processes.process_scan import ProcessScan

READ_BYTES = 65_536

DRAIN_S = 0.5
MAX_DRAINED_BYTES = 1024 * 1024
"""The limits of output, in seconds and bytes, that is read after the end of all processes.

A pipe holds no more, and is at its end, unless a process outside of the agent's tree holds it.
"""

STDERR_S = 0.2
"""Time, in seconds, that standard error is still read after the end of all processes."""


class ProcessFailed(Exception):
    """The process can no longer be used; the message is one sentence."""


@attrs.frozen(kw_only=True)
class LineSettings:
    """The options of a process's streams.

    ``stderr`` is the file of its standard error; ``secret_urls`` are hidden in reports of it.
    A write fails when the agent reads nothing for ``write_within_s`` seconds.
    """

    stderr: Path | None = None
    secret_urls: Sequence[str] = attrs.field(default=(), repr=False)
    write_within_s: float = 30.0


class LineProcess:
    """A running agent: frames in both directions. ``run`` must run in a task.

    ``on_over`` is set when the agent has ended, or does not read its input.
    """

    def __init__(
        self,
        process: GuardedProcess,
        settings: LineSettings,
        scan: ProcessScan,
        on_over: trio.Event,
    ) -> None:
        self._process = process
        self._scan = scan
        self._on_over = on_over
        self._reader = FrameReader()
        self._reading = trio.CancelScope()
        self._read_until = math.inf
        self._drained = 0
        self.position = 0
        """The number of bytes of output that were read."""
        self._errors = StderrFile(settings.stderr, settings.secret_urls)
        self._errors_ended = trio.Event()
        self._writer = FrameWriter(process.stdin.fileno(), settings.write_within_s, on_over)

    @property
    def pid(self) -> int:
        """The process id of the agent."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Minus the number of a signal; None while it runs, or if its end was not seen."""
        return self._process.exit_code

    @property
    def noise(self) -> int:
        """The number of lines so far that were no JSON objects."""
        return self._reader.noise

    def stderr_tail(self) -> str:
        """Return the end of standard error as clean text, without session URLs."""
        return self._errors.tail()

    def end_reason(self, agent: str) -> str:
        """Return one sentence on why the process ended; ``agent`` is its name."""
        code = self.exit_code
        if self._writer.has_failed:
            return f"{agent} does not read its input; its process was ended"
        if self._process.lost_guard:
            return f"the guard process of {agent} was killed; all processes of {agent} were ended"
        if code is None:
            return f"{agent} did not end in time"
        return f"{agent} ended with exit code {code}" if code >= 0 else _killed(agent, -code)

    async def run(self) -> None:
        """Write queued frames, drain standard error and follow the guard, until all have ended."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._drain_errors)
            nursery.start_soon(self._writer.run)
            nursery.start_soon(self._process.follow)
            await self._process.ended.wait()
            self._writer.close()
            self._on_over.set()
            await self._process.done.wait()
            await self._errors_ended.wait()

    async def read(self) -> list[Frame | LargeFrame] | None:
        """Return the frames of the next piece of output, maybe none; None at the end."""
        with trio.CancelScope(deadline=self._read_until) as self._reading:
            data = await self._receive()
        if self._reading.cancelled_caught:
            data = self._rest()
        self.position += len(data)
        return self._reader.feed(data) if data else None

    async def read_whole(self) -> list[Frame] | None:
        """Return as ``read``. Raises ``ProcessFailed`` for a line over the limit."""
        frames = await self.read()
        if frames is None:
            return None
        whole = [each for each in frames if not isinstance(each, LargeFrame)]
        if len(whole) < len(frames):
            raise ProcessFailed(
                f"a line of more than {MAX_FRAME_BYTES // 2**20} MiB was received, the limit of a "
                "frame; the process was ended"
            )
        return whole

    def put(self, frame: Frame) -> None:
        """Queue a frame, which is written whole and in order. Dropped after the agent's end."""
        self._writer.put(frame)

    async def flushed(self) -> None:
        """Wait until the process has taken every queued frame, or has ended."""
        await self._writer.flushed()

    async def close(self, eof_s: float) -> tuple[str, ...]:
        """End the agent and all its processes; return the names of the remaining ones.

        The end of its input first, with ``eof_s`` seconds to end by itself; then TERM, then KILL.
        The rest of the output can still be read; then ``release`` must be called.
        """
        if eof_s > 0 and not self._process.ended.is_set():
            with trio.move_on_after(eof_s):
                await self._writer.flushed()
                self._writer.close()
                await self._process.stdin.aclose()
                await self._process.ended.wait()
        self._writer.close()
        left = await self._process.end(self._scan)
        with trio.move_on_after(STDERR_S):
            await self._errors_ended.wait()
        self._read_until = self._reading.deadline = trio.current_time() + DRAIN_S
        return left

    async def end_at_once(self) -> None:
        """Kill all processes, within a second."""
        self._writer.close()
        await self._process.end(self._scan, quickly=True)
        await self.release()

    async def release(self) -> None:
        """Close the streams. Idempotent."""
        self._writer.close()
        await self._process.release()

    async def _receive(self) -> bytes:
        try:
            return bytes(await self._process.stdout.receive_some(READ_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def _rest(self) -> bytes:
        """Return what is in the pipe; nothing is waited for any more."""
        try:
            data = os.read(self._process.stdout.fileno(), READ_BYTES)
        except OSError:
            return b""
        self._drained += len(data)
        return data if self._drained <= MAX_DRAINED_BYTES else b""

    async def _drain_errors(self) -> None:
        await self._errors.drain(self._process.stderr)
        self._errors_ended.set()


def _killed(agent: str, number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = str(number)
    return f"{agent} was ended by signal {name}"


async def start_process(
    launch: Launch, settings: LineSettings, scan: ProcessScan, on_over: trio.Event
) -> LineProcess:
    """Start an agent. Raises ``Unavailable`` with one sentence. Not cancelled half-way."""
    return LineProcess(await start_guarded(launch, scan), settings, scan, on_over)

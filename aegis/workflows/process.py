"""``WorkflowProcess``: the actor of one process of a workflow, between its frames and the desk."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ActorError, Ref
from actors.messages import Request
from aegis.errors import Unavailable
from aegis.processes.environment import OUR_PYTHON, process_environment
from aegis.processes.guarded.guarded_process import Launch
from aegis.processes.guarded.line_process import (
    LineProcess,
    LineSettings,
    ProcessFailed,
    start_process,
)
from aegis.processes.process_scan import ProcessScan

TERM_S = 0.5
"""Seconds that the processes of a workflow have between TERM and KILL."""

WHAT = "the process"


def launch_of(root: str, cookie: str, withheld: Collection[str] = ()) -> Launch:
    """Return how a process that runs plugins is started in ``root``."""
    return Launch(
        argv=[*OUR_PYTHON, "-m", "aegis.workflows.child"],
        cwd=root,
        environment=process_environment(
            os.environ, {"TERM": "dumb"}, cwd=root, cookie=cookie, withheld=withheld
        ),
        term_s=TERM_S,
    )


@attrs.frozen(kw_only=True)
class ProcessFrames(Request[None]):
    """Frames of the process of a run. Answered when the desk has taken them."""

    id: str
    run: int
    frames: Sequence[dict[str, Any]] = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class ProcessOver(Request[None]):
    """The process of a run has ended, or could not be started."""

    id: str
    run: int
    reason: str


@attrs.frozen(kw_only=True)
class PutFrames(Request[None]):
    """Send frames to the process. Answered when the process has taken them."""

    frames: Sequence[dict[str, Any]] = attrs.field(repr=False)


async def end_when_over(process: LineProcess, over: trio.Event) -> None:
    """End the remaining processes when a process or its guard has ended: then reading ends too."""
    await over.wait()
    await process.close(0)


class WorkflowProcess(Actor[PutFrames]):
    """The process of the run ``run`` of a workflow; ``log`` takes what it prints."""

    def __init__(
        self,
        *,
        workflow: str,
        run: int,
        launch: Launch,
        log: Path,
        desk: Ref[Any],
        scan: ProcessScan,
    ) -> None:
        self._id, self._run = workflow, run
        self._launch = launch
        self._log = log
        self._desk = desk
        self._scan = scan
        self._process: LineProcess | None = None
        self._is_up = trio.Event()

    async def setup(self) -> None:
        """Start the process, in a task."""
        self.context.start_soon(self._live)

    async def teardown(self) -> None:
        """End all processes of the run."""
        if self._process is not None:
            await self._process.end_at_once()

    async def receive(self, message: PutFrames) -> None:
        """Send frames, once the process is started."""
        await self._is_up.wait()
        if self._process is not None:
            for frame in message.frames:
                self._process.put(frame)
            await self._process.flushed()
        self.reply(message, None)

    async def _live(self) -> None:
        reason = await self._lived()
        with contextlib.suppress(ActorError):  # the desk starts anew, and ends all processes
            await self._desk.ask(ProcessOver(id=self._id, run=self._run, reason=reason))
        self.context.finish()

    async def _lived(self) -> str:
        """Pass the frames of the process on until it ends; return why it did."""
        settings = LineSettings(stderr=self._log, write_within_s=math.inf)
        over = trio.Event()
        try:
            process = await start_process(self._launch, settings, self._scan, over)
        except Unavailable as error:
            self._is_up.set()
            return str(error)
        self._process = process
        # The start is not cancelled half-way, so it may have outlived the teardown.
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            self.context.start_soon(process.run)
            self.context.start_soon(end_when_over, process, over)
            self._is_up.set()
            await self._pass_on(process)
            await process.close(0)
        except ProcessFailed as error:
            return str(error)
        finally:
            with trio.CancelScope(shield=True):
                await process.end_at_once()
        return process.end_reason(WHAT)

    async def _pass_on(self, process: LineProcess) -> None:
        while (frames := await process.read_whole()) is not None:
            if frames:
                said = ProcessFrames(id=self._id, run=self._run, frames=frames)
                # The desk may be slow; the pipe fills meanwhile, and the process waits.
                await self._desk.ask(said, timeout=math.inf)

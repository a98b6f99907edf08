"""One command without a terminal: a process with no input, two streams, and a time to live."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial

import attrs
import trio

from aegis.errors import Unavailable
from aegis.limits import open_process
from aegis.path_text import path_of_text
from aegis.processes.capture import OutputCapture
from aegis.processes.environment import shell_environment
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import SHORT_ROUNDS, end_processes
from aegis.protocol.workspaces import ExecResult

DRAIN_S = 0.2
"""How long output is still read when the command has ended but what it started holds the pipes."""

READ_BYTES = 65_536


@attrs.frozen(kw_only=True)
class Execution:
    """A command to be run in ``cwd`` (text as ``aegis.path_text`` makes it).

    ``cookie`` marks all its processes, so that a later life of the daemon finds them. It does not
    get the variables ``withheld``.
    """

    command: str
    cwd: str
    cookie: str
    withheld: frozenset[str]
    timeout_s: float
    scan: ProcessScan

    async def run(self) -> ExecResult:
        """Run it, and leave no process of it behind, however this ends.

        Raises ``Unavailable`` if it cannot be started.
        """
        began = trio.current_time()
        out, err = OutputCapture(), OutputCapture()
        process = await self._start()
        try:
            exit_code = await self._follow(process, out, err)
        finally:
            with trio.CancelScope(shield=True):
                await end_processes([process.pid], [self.cookie], SHORT_ROUNDS, scan=self.scan)
                with trio.move_on_after(DRAIN_S):
                    await process.wait()
        stdout, stderr = out.result(), err.result()
        return ExecResult(
            exit=exit_code,
            stdout=stdout.text,
            stderr=stderr.text,
            timed_out=exit_code is None,
            truncated=stdout.truncated or stderr.truncated,
            duration_s=round(trio.current_time() - began, 3),
        )

    async def _start(self) -> trio.Process:
        bash = shutil.which("bash")
        if bash is None:
            raise Unavailable("workspace_exec: bash was not found in PATH")
        environment = shell_environment(os.environ, {"TERM": "dumb"}, self.cookie, self.withheld)
        start = partial(
            open_process,
            [bash, "-c", self.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=path_of_text(self.cwd),
            env=environment,
            start_new_session=True,
        )
        try:
            # A start cannot be called off half way: the process would be nobody's.
            with trio.CancelScope(shield=True), self.scan.host.starting(environment) as started:
                process = await start()
                started(process.pid)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Unavailable(
                f"workspace_exec: the command cannot be started in {self.cwd!r}: {reason}"
            ) from error
        return process

    async def _follow(
        self, process: trio.Process, out: OutputCapture, err: OutputCapture
    ) -> int | None:
        """The exit code; None if the time ran out."""
        assert process.stdout is not None
        assert process.stderr is not None
        status: int | None = None
        async with process.stdout, process.stderr, trio.open_nursery() as nursery:
            at_end = trio.Event()
            nursery.start_soon(_read_both, (process.stdout, out), (process.stderr, err), at_end)
            with trio.move_on_after(self.timeout_s):
                status = await process.wait()
            with trio.move_on_after(DRAIN_S):
                await at_end.wait()
            nursery.cancel_scope.cancel()
        return None if status is None else exit_code_of(status)


def exit_code_of(status: int) -> int:
    """A status of ``trio.Process`` (-n for signal n) as a shell says it."""
    return 128 - status if status < 0 else status


Stream = tuple[trio.abc.ReceiveStream, OutputCapture]


async def _read_both(first: Stream, second: Stream, at_end: trio.Event) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_read, *first)
        nursery.start_soon(_read, *second)
    at_end.set()


async def _read(stream: trio.abc.ReceiveStream, capture: OutputCapture) -> None:
    while data := await stream.receive_some(READ_BYTES):
        capture.feed(bytes(data))

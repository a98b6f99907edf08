"""One command of a workflow: no input, two streams, a time limit."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
from typing import Any

import trio

from aegis.limits import open_process
from aegis.processes.capture import OutputCapture
from aegis.workflows.calls import Outcome, failure, value

DRAIN_S = 0.2
"""Seconds for which output is read after the command has ended, if others hold its pipes."""

READ_BYTES = 65_536


async def run_command(command: str, cwd: str | None, timeout: float | None) -> Outcome:
    """Run a command with bash; end its process group with it, however this ends."""
    bash = shutil.which("bash")
    if bash is None:
        return failure("CallFailed", "bash was not found in PATH", code="unavailable")
    try:
        with trio.CancelScope(shield=True):  # otherwise the process would be nobody's
            process = await open_process(
                [bash, "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return failure("CallFailed", f"the command cannot be started: {reason}", code="unavailable")
    out, err = OutputCapture(), OutputCapture()
    status = await _follow(process, out, err, timeout)
    stdout, stderr = out.result(), err.result()
    result: dict[str, Any] = {
        "exit": status if status is None or status >= 0 else 128 - status,
        "stdout": stdout.text,
        "stderr": stderr.text,
        "timed_out": status is None,
        "truncated": stdout.truncated or stderr.truncated,
    }
    return value(result)


async def _follow(
    process: trio.Process, out: OutputCapture, err: OutputCapture, timeout: float | None
) -> int | None:
    """Return the status of the command; None if the time ran out."""
    assert process.stdout is not None
    assert process.stderr is not None
    status: int | None = None
    try:
        async with process.stdout, process.stderr, trio.open_nursery() as nursery:
            nursery.start_soon(_read, process.stdout, out)
            nursery.start_soon(_read, process.stderr, err)
            with trio.move_on_after(math.inf if timeout is None else timeout):
                status = await process.wait()
            _kill_group(process.pid)
            nursery.cancel_scope.deadline = trio.current_time() + DRAIN_S
    finally:
        if process.returncode is None:
            _kill_group(process.pid)
            with trio.CancelScope(shield=True):
                await process.wait()
    return status


async def _read(stream: trio.abc.ReceiveStream, capture: OutputCapture) -> None:
    while data := await stream.receive_some(READ_BYTES):
        capture.feed(bytes(data))


def _kill_group(pid: int) -> None:
    # What the command has left in the background belongs to its group, and ends with it.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)

"""A CLI as a child process with JSON lines both ways."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import trio

from tests.agents_real.model_server.script import Json
from tests.e2e.harness import processes_with

COOKIE = "AEGIS_TESTED_AGENT"
POLL_S = 0.02
INPUT_GRACE_S = 3.0
"""How long a CLI may take to end after its input has ended; some never do."""

GUARD_S = 120.0
"""A guard against hanging, far above the duration of any step here."""


class AgentEnded(Exception):
    """The CLI ended while an answer of it was awaited."""


@attrs.define
class LineProcess:
    """The child; ``stderr`` is its standard error until now."""

    process: trio.Process
    cookie: str
    stderr: str = ""
    _receive: trio.MemoryReceiveChannel[Json] = attrs.field(init=False)
    _send: trio.MemorySendChannel[Json] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel(math.inf)

    async def send(self, frame: Json) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(frame).encode() + b"\n")

    async def next(self) -> Json:
        """Return the next frame. Raises ``AgentEnded``."""
        with trio.fail_after(GUARD_S):
            try:
                return await self._receive.receive()
            except trio.EndOfChannel:
                raise AgentEnded(self.stderr[-2000:]) from None

    async def read(self) -> None:
        """Read all frames; lines that hold no JSON object are skipped, as noise."""
        assert self.process.stdout is not None
        rest = b""
        with self._send:
            async for data in self.process.stdout:
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.startswith(b"{"):
                        self._send.send_nowait(json.loads(line))

    async def read_errors(self) -> None:
        """Read standard error."""
        assert self.process.stderr is not None
        async for data in self.process.stderr:
            self.stderr += data.decode(errors="replace")

    async def end(self) -> str:
        """End the input, then send SIGTERM to its process group; return how it ended.

        Nothing of it may be left then: gemini, for one, runs as two processes.
        """
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        for name, seconds in (("end of input", INPUT_GRACE_S), ("SIGTERM", GUARD_S)):
            if name == "SIGTERM":
                os.killpg(self.process.pid, signal.SIGTERM)
            with trio.move_on_after(seconds):
                await self.process.wait()
                while self.left():  # noqa: ASYNC110 - nothing notifies of grandchildren
                    await trio.sleep(POLL_S)
                return f"{name}, exit code {self.process.returncode}"
        raise AssertionError(f"it did not end: {self.left()}")

    def left(self) -> set[int]:
        """Return the live processes that the CLI started, or is.

        Its tools have sessions of their own, and kimi overwrites its environment with a title.
        """
        marked = processes_with(f"{COOKIE}={self.cookie}")
        return _session_members(self.process.pid) | {int(line.split()[0]) for line in marked}

    def kill_all(self) -> None:
        """Kill the CLI and everything that it started."""
        for pid in self.left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _session_members(leader: int) -> set[int]:
    members = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] not in "ZX":
            members.add(int(stat.parent.name))
    return members


@asynccontextmanager
async def started(
    words: Sequence[str], environment: dict[str, str], directory: Path
) -> AsyncIterator[LineProcess]:
    """Start a CLI; nothing of it is left at the end."""
    cookie = uuid.uuid4().hex
    pipe = subprocess.PIPE
    process = await trio.lowlevel.open_process(
        list(words),
        env={**environment, COOKIE: cookie, "PWD": str(directory)},
        cwd=directory,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )
    child = LineProcess(process, cookie)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.read)
            nursery.start_soon(child.read_errors)
            yield child
            nursery.cancel_scope.cancel()
    finally:
        child.kill_all()
        with trio.CancelScope(shield=True):
            await process.wait()

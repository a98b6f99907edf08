"""Four journeys through a real daemon, and how much of its code each enters.

Only first entries count: a function that runs often counts once, and a task that waits already
counts not at all. Each journey is made once before it is recorded.
"""

from __future__ import annotations

import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import trio
import yaml

from tests.chaos.real.sessions import open_session
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.streams import stream_client
from tests.e2e.test_agents import STAND_IN
from tests.resources.waiting import until

ROUNDS = 7
PAUSE_S = 0.5  # before a round: what the daemon does after the last one ended is not of this one

AGENT = {"provider": "claude", "permission": "ask"}
CONFIGURATION = {
    "agents": {"a": AGENT | {"command": [sys.executable, str(STAND_IN), "claude"]}},
    "default_agent": "a",
    "queues": {"q": {"agent": "a"}},
}


class Entered(NamedTuple):
    """The code of ours that a journey enters, and the messages that actors receive during it."""

    functions: int
    files: int
    classes: int
    messages: int


class TracedDaemon(DaemonProcess):
    is_installed = True

    @property
    def program(self) -> list[str]:
        return [sys.executable, "-P", str(Path(__file__).with_name("traced_daemon.py"))]

    def take(self) -> Entered:
        """Return what was entered since the last record."""
        record = self.record()
        functions = [
            (file, name.partition(".<locals>")[0]) for file, name, _ in record["functions"]
        ]
        files = {file for file, _ in functions}
        classes = {(file, name.rpartition(".")[0]) for file, name in functions if "." in name}
        return Entered(len(functions), len(files), len(classes), record["messages"])

    def record(self) -> dict[str, Any]:
        """Return the record since the last one."""
        path = Path(self.variables["AEGIS_TRACE"])
        path.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        until(path.exists, "the record is written")
        record: dict[str, Any] = json.loads(path.read_text())
        return record

    async def trace(self, journey: Callable[[], Awaitable[object]], rounds: int) -> Entered:
        """Return the median of each figure: the daemon's timers are due in some of the rounds."""
        await journey()
        records = []
        for _ in range(rounds):
            await trio.sleep(PAUSE_S)
            self.take()
            await journey()
            records.append(self.take())
        return Entered(*map(statistics.median_low, zip(*records, strict=True)))


async def trace_term_run(daemon: TracedDaemon, rounds: int) -> Entered:
    async with open_session(daemon) as session:
        run = {"name": "t", "cmd": "echo hi"}
        return await daemon.trace(partial(session.call, "term_run", run), rounds)


async def trace_turn(daemon: TracedDaemon, rounds: int) -> Entered:
    async with stream_client(daemon) as client:
        handle = (await client.call("spawn"))["handle"]
        session = await client.open("session", handle=handle)

        async def turn() -> None:
            message = {"target_handle": handle, "context": "SAY yes", "from_handle": "pm"}
            await client.call("handoff", **message)
            await session.item_where(
                lambda item: any(each["kind"] == "turn_ended" for each in item["entries"])
            )

        return await daemon.trace(turn, rounds)


async def trace_task(daemon: TracedDaemon, rounds: int) -> Entered:
    last: dict[str, str] = {}
    with daemon.connect() as client:

        async def task() -> None:
            client.call("enqueue", {"queue": "q", "payload": "SAY yes", "from_handle": "pm"})
            wait = {"from_handle": "pm", "timeout": GUARD_S, **last}
            reply = client.call("inbox_wait", wait)
            assert reply["messages"]
            last["after"] = reply["next"]

        return await daemon.trace(task, rounds)


async def trace_key(daemon: TracedDaemon, rounds: int) -> Entered:
    async with stream_client(daemon) as client:
        output = await client.open("terminal_output", name="t")

        async def key() -> None:
            await output.type(b"x")
            await output.bytes_until(b"x")

        return await daemon.trace(key, rounds)


JOURNEYS = {
    'MCP term_run "echo hi"': trace_term_run,
    "inbox message → turn → result": trace_turn,
    "enqueue → task done → callback": trace_task,
    "one key and its echo": trace_key,
}


def trace_all(rounds: int = ROUNDS) -> dict[str, Entered]:
    """Make all journeys in a new daemon, each in ``rounds`` rounds."""
    with tempfile.TemporaryDirectory(prefix="aegis-house-") as directory:
        daemon = TracedDaemon(Path(directory))
        daemon.variables["AEGIS_TRACE"] = f"{directory}/trace"
        (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(CONFIGURATION))
        daemon.start("--port", "0", "--trust")
        try:
            daemon.call("term_spawn", name="t")
            return {name: trio.run(trace, daemon, rounds) for name, trace in JOURNEYS.items()}
        finally:
            daemon.stop()

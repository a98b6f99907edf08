"""Workflows: a run that is acknowledged, a step, and a workflow of 1,000 steps that is resumed.

The desk, the disk and the process are real; the services that it asks are played.

python tests/bench/bench_workflows.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors import Actor, ChildSpec, Ref, SupervisorSpec, open_system
from aegis.journal.flusher import Flusher
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.requests import (
    OpenedRequest,
    OpenRequest,
    WithdrawnRequests,
    WithdrawRequests,
)
from aegis.protocol.workflows import GetWorkflow, RunWorkflow
from aegis.workflows.desk import WorkflowDesk, WorkflowSettings
from aegis.workflows.plugins.found import find_plugins
from tests.bench.table import Row, print_rows

STEPS = 1_000
PATIENCE_S = 300.0

PLUGIN = """
from aegis import workflow

@workflow
async def hello(engine):
    return "hello"

@workflow
async def steps(engine, *, count: int):
    for number in range(count):
        await engine.step(f"step {number}", lambda: number)
    await engine.ask_human("Go on?")
"""

Asked = OpenRequest | WithdrawRequests | Deliver


class Services(Actor[Asked]):
    """The desk of requests and the inboxes; ``asked`` is set when a question is opened."""

    def __init__(self, *, asked: trio.Event, delivered: trio.Event) -> None:
        self._asked, self._delivered = asked, delivered

    async def setup(self) -> None:
        for service in ("requests", "inboxes"):
            self.context.register("service", service)

    async def receive(self, message: Asked) -> None:
        match message:
            case OpenRequest():
                self._asked.set()
                self.reply(message, OpenedRequest(id="a" * 12, digest="", state="open"))
            case WithdrawRequests():
                self.reply(message, WithdrawnRequests(ids=[]))
            case Deliver():
                self._delivered.set()
                self.reply(message, Receipt(id=message.id, status="queued", position=0))


class NoLimits:
    """All handles may write to all sessions."""

    def refuse_handoff(self, sender: str, target: str, *, interrupts: bool, now: float) -> None:
        del sender, target, interrupts, now


@asynccontextmanager
async def desk(root: Path, asked: trio.Event, delivered: trio.Event) -> AsyncIterator[Ref[Any]]:
    """Yield the desk of workflows of ``root``."""
    settings = WorkflowSettings(
        root=str(root),
        directories=("plugins",),
        trusted=find_plugins(root, ("plugins",)),
        digest="",
        config={},
        host="bench",
        remember=lambda _: None,
    )
    tree = SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("services", Services, asked=asked, delivered=delivered),
            SupervisorSpec(name="processes", dynamic=True),
            ChildSpec.of(
                "workflows",
                WorkflowDesk,
                directory=root / "state",
                archive=root / "archive",
                settings=settings,
                supervisor="root/processes",
                flusher=Flusher(),
                scan=ProcessScan(OsProcessHost()),
                messages=NoLimits(),
                refuse=lambda handle, command, terminals: None,
            ),
        ),
    )
    async with open_system(tree) as system:
        yield system.ref("root/workflows")


async def hello(root: Path) -> list[Row]:
    """A short workflow: until it is acknowledged, and until its starter is notified."""
    delivered = trio.Event()
    async with desk(root, trio.Event(), delivered) as workflows:
        begin = time.perf_counter()
        await workflows.ask(RunWorkflow(name="hello", callback=False), timeout=PATIENCE_S)
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        await workflows.ask(RunWorkflow(name="hello"), timeout=PATIENCE_S)
        acknowledged = time.perf_counter() - begin
        with trio.fail_after(PATIENCE_S):
            await delivered.wait()
        notified = time.perf_counter() - begin
    return [
        ("a workflow acknowledged, ms", acknowledged * 1000, "its meta is synced"),
        ("  the first one: its plugin is imported, ms", first * 1000, "in a process of its own"),
        ("  until its starter is notified, ms", notified * 1000, "a process started and ended"),
    ]


async def steps(root: Path) -> list[Row]:
    """A workflow of many steps: each step, and its replay by another life of the desk."""
    asked = trio.Event()
    async with desk(root, asked, trio.Event()) as workflows:
        begin = time.perf_counter()
        run = RunWorkflow(name="steps", kwargs={"count": STEPS})
        started = await workflows.ask(run, timeout=PATIENCE_S)
        with trio.fail_after(PATIENCE_S):
            await asked.wait()
        took = time.perf_counter() - begin
    asked = trio.Event()
    begin = time.perf_counter()
    async with desk(root, asked, trio.Event()) as workflows:
        with trio.fail_after(PATIENCE_S):
            await asked.wait()
        resumed = time.perf_counter() - begin
        info = await workflows.ask(GetWorkflow(workflow_id=started.workflow_id))
    assert (info.calls, info.runs) == (STEPS, 2), info
    return [
        ("a step, ms", took * 1000 / STEPS, f"mean of {STEPS:,}, two syncs each"),
        (f"a workflow of {STEPS:,} steps resumed, s", resumed, "goal ≤ 1, its process included"),
    ]


async def measured() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "plugins").mkdir()
        (root / "plugins" / "bench.py").write_text(PLUGIN)
        return [*(await hello(root)), *(await steps(root))]


def measure() -> list[Row]:
    """Return the rows."""
    return trio.run(measured)


if __name__ == "__main__":
    print_rows(measure())

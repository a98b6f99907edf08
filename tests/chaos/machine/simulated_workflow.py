"""A simulated process of a workflow: the real engine and its journal, over real frames.

The function of the workflow is a list of orders, a text each:

    step:NAME    a step of its own, which is done once
    redo:NAME    a step that is done again if it was interrupted
    both:A,B     two steps at the same time
    mark:NAME    a checkpoint: a replay continues behind it
    task:Q:TEXT  a task of the queue Q, whose result is awaited
    ask:TEXT     a question to a person, whose answer is awaited
    leave:NAME   a question that is left once a step has ended beside it
    spawn:NAME   a session
    send:TEXT    a message to the session that was spawned last, whose reply is awaited
    die:NAME     a step in which the process ends, the first time
    fail:TEXT    an exception

A task, a message or a question that fails does not end the function. Its log is evidence
independent of any daemon: which steps were begun, and which results came.
"""

from __future__ import annotations

import json
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import attrs
import outcome
import trio

from aegis.processes.guarded.guarded_process import Launch
from aegis.processes.guarded.line_process import LineSettings
from aegis.processes.process_scan import ProcessScan
from aegis.workflows.child.engine import Engine
from aegis.workflows.child.journal import Journal
from aegis.workflows.plugins.arguments import WorkflowParameter
from aegis.workflows.plugins.catalog import Definition, Found
from aegis.workflows.results import CallFailed, TaskFailed
from tests.chaos.checking.workflow_evidence import DECLINED, StepEvent, StepEventKind
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_line import START_S, SimulatedLine
from tests.chaos.machine.simulated_processes import SimulatedProcess
from tests.chaos.machine.simulated_tty import Bell

NAME = "scripted"
"""The name of the one workflow."""

STEM = "plugin"
PROFILE = "asks"
"""The profile of spawned sessions."""

CALLS = ("task", "ask", "send")
"""The orders that the daemon carries out."""

STEP_S = 0.05
"""The time, in seconds, that a step takes."""

Frame = dict[str, Any]


@attrs.define
class WorkflowWorld:
    """All processes of workflows; ``log`` takes what they do.

    ``is_calm``: no process ends by its own order.
    """

    log: Callable[[StepEvent], object]
    is_calm: bool = False
    died: set[tuple[str, str]] = attrs.field(factory=set)
    processes: int = 0


class SimulatedChild:
    """The program of one process."""

    def __init__(self, world: WorkflowWorld) -> None:
        self.output: deque[Frame] = deque()
        self.has_output = Bell()
        world.processes += 1
        self._world = world
        self._number = world.processes
        self._input: deque[Frame] = deque()
        self._has_input = Bell()
        self._workflow = ""
        self._session = ""

    def take(self, frame: Frame) -> None:
        """Take a frame of the daemon, as bytes would bring it."""
        self._input.append(json.loads(json.dumps(frame)))
        self._has_input.ring()

    def end_input(self) -> None:
        """Do nothing: the program ends with its function."""

    async def main(self, process: SimulatedProcess) -> int:
        """Run the function; return the exit code."""
        start, journal = await self._next(process), Journal()
        while (frame := await self._next(process))["kind"] == "journal":
            journal.add(frame["calls"])
        journal.take_order(frame)
        self._workflow = start["workflow_id"]
        async with trio.open_nursery() as nursery:
            engine: Any = Engine(_Link(self, process), journal, start)  # type: ignore[arg-type]
            nursery.start_soon(self._pass_on, process, engine)
            nursery.start_soon(engine._deliver)
            run = partial(self._carry_out, engine, process, start["kwargs"]["orders"])
            ended = await outcome.acapture(run)
            nursery.cancel_scope.cancel()
        if isinstance(ended, outcome.Error):
            error = f"{type(ended.error).__name__}: {ended.error}"
            self.send({"kind": "returned", "end": "failed", "error": error})
        else:
            result = json.dumps(ended.unwrap())
            self.send({"kind": "returned", "end": "completed", "result": result})
        return 0

    def send(self, frame: Frame) -> None:
        """Send a frame to the daemon."""
        self.output.append(json.loads(json.dumps(frame)))
        self.has_output.ring()

    async def _next(self, process: SimulatedProcess) -> Frame:
        await process.pause()
        while not self._input:
            await self._has_input.wait()
        return self._input.popleft()

    async def _pass_on(self, process: SimulatedProcess, engine: Any) -> None:
        while True:
            engine._take(await self._next(process))

    # The function.

    async def _carry_out(
        self, engine: Engine, process: SimulatedProcess, orders: Sequence[str]
    ) -> str:
        state = engine.resume_state()
        begin, self._session = (0, "") if state is None else state.payload
        results = []
        for number, order in enumerate(orders[begin:], begin + 1):
            kind, _, rest = order.partition(":")
            if kind == "mark":
                await engine.checkpoint(rest, [number, self._session])
            elif kind == "both":
                one, other = rest.split(",")
                await engine.parallel(
                    [partial(self._step, engine, process, "step", each) for each in (one, other)]
                )
            elif kind == "leave":
                await self._leave(engine, process, rest)
            elif kind == "spawn":
                self._session = await engine.spawn(PROFILE)
                self._log("passed", order, self._session)
            elif kind in CALLS:
                results.append(await self._call(engine, order))
            elif kind == "fail":
                raise ValueError(rest)
            else:
                results.append(await self._step(engine, process, kind, rest))
        return " ".join(results)

    async def _leave(self, engine: Engine, process: SimulatedProcess, name: str) -> None:
        scope = trio.CancelScope()

        async def ask() -> None:
            with scope:
                await engine.ask_human(f"{name}?")

        async def leave() -> None:
            await self._step(engine, process, "redo", name)
            scope.cancel()

        await engine.parallel([ask, leave])

    async def _call(self, engine: Engine, order: str) -> str:
        """Make a call that the daemon carries out; return its result, or the error."""
        kind, _, rest = order.partition(":")
        try:
            match kind:
                case "task":
                    queue, _, payload = rest.partition(":")
                    result = await engine.delegate(queue, payload)
                case "send":
                    result = await engine.send(self._session, rest)
                case _:
                    answer = await engine.ask_human(rest)
                    result = DECLINED if answer is None else answer
        except (CallFailed, TaskFailed) as error:
            self._log("refused", order, f"{type(error).__name__}: {error}")
            return f"no {kind}"
        self._log("passed", order, result)
        return result

    async def _step(self, engine: Engine, process: SimulatedProcess, kind: str, name: str) -> str:
        async def do() -> str:
            self._log("begun", name)
            await process.sleep(STEP_S / 2)
            is_first = (self._workflow, name) not in self._world.died
            if kind == "die" and is_first and not self._world.is_calm:
                self._world.died.add((self._workflow, name))
                process.die(signal.SIGKILL)
            await process.sleep(STEP_S / 2)
            return f"did {name} in {self._number}"

        result: str = await engine.step(name, do, retry=kind in ("redo", "die"))
        self._log("passed", name, result)
        return result

    def _log(self, kind: StepEventKind, step: str, result: str = "") -> None:
        self._world.log(
            StepEvent(
                kind=kind,
                workflow=self._workflow,
                step=step,
                process=self._number,
                result=result,
            )
        )


@attrs.frozen
class _Link:
    """The frames of a simulated process, as the engine sends them."""

    child: SimulatedChild
    process: SimulatedProcess

    async def send(self, frame: Frame) -> None:
        if not self.process.is_killed:
            self.child.send(frame)
        await trio.lowlevel.checkpoint()


class SimulatedCatalog:
    """The plugins: one, with one workflow, which is trusted."""

    def __init__(self, **_: object) -> None:
        pass

    async def find(self) -> Found:
        """Return the one workflow."""
        await trio.lowlevel.checkpoint()
        orders = WorkflowParameter(name="orders", type={"list": "text"}, shown="", required=True)
        definition = Definition(
            name=NAME, stem=STEM, file=f"{STEM}.py", line=1, doc="", parameters=[orders]
        )
        return Found({NAME: definition}, [], {STEM: [f"/{STEM}.py", "digest"]})


async def _start(
    world: WorkflowWorld, launch: Launch, _: LineSettings, scan: ProcessScan, over: trio.Event
) -> SimulatedLine:
    host = scan.host
    assert isinstance(host, SimulatedHost)
    machine = host.machine
    with trio.CancelScope(shield=True):
        await trio.sleep(machine.chance.uniform(0, START_S))
    if host.is_dead:
        await trio.sleep_forever()
    child = SimulatedChild(world)
    process = machine.start(child.main, launch.argv, cwd=str(launch.cwd), cookie=launch.cookie)
    host.guard(launch.cookie)
    return SimulatedLine(child, process, launch.cookie, scan, over)


@contextmanager
def simulated_workflows(world: WorkflowWorld) -> Iterator[None]:
    """Start the processes of workflows on simulated machines inside the block."""
    with (
        mock.patch("aegis.workflows.process.start_process", partial(_start, world)),
        mock.patch("aegis.workflows.desk.Catalog", SimulatedCatalog),
    ):
        yield


def is_workflow(cookie: str) -> bool:
    """Return whether a process with this cookie is one of a workflow."""
    return "//w/" in cookie

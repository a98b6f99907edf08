"""The scenario of workflows: steps that are done once, interrupted ones, and their ends.

The desk, its files, the actor of a process, and the engine in that process are the real ones. The
process is simulated. Inboxes and requests are played by one actor that loses nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ChildSpec, SupervisorSpec, System
from actors.faults import RUNTIME, FaultTable
from aegis.journal.faults import JOURNAL
from aegis.journal.opening import open_ledger
from aegis.journal.table import StoredText, read_rows
from aegis.journal.table import digest_of as text_digest
from aegis.processes.process_scan import ProcessScan
from aegis.protocol import workflows as api
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.queues import Delegate, Enqueue, Enqueued, TaskInfo
from aegis.protocol.requests import (
    OpenedRequest,
    OpenRequest,
    WithdrawnRequests,
    WithdrawRequests,
)
from aegis.workflows.calls import digest_of, value
from aegis.workflows.desk import RUNS, WorkflowDesk, WorkflowSettings
from aegis.workflows.faults import WORKFLOWS
from aegis.workflows.runs import EngineCall, StoredRun, holds
from aegis.workflows.upgrade import LEDGER
from tests.chaos.checking.workflow_evidence import StepEvent
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.machine.simulated_workflow import NAME, WorkflowWorld, simulated_workflows
from tests.chaos.reproducible import reproducible
from tests.faults.retrying import PAUSE_S, ask_until_answered, until_done

DIRECTORY = Path("/state/workflows")
SENDER = "pm"
PATIENCE = 300
"""The most looks at a workflow, a second apart."""

ORDERS: Mapping[str, Sequence[str]] = {
    "plain": ("step:a", "redo:b", "mark:half", "step:c", "both:d,e", "task:build:work"),
    "dying": ("redo:f", "die:g", "redo:h"),
    "failing": ("step:i", "fail:on purpose"),
    "leaving": ("leave:j", "redo:k"),
}
"""The orders of the workflows, by their keys."""


@attrs.frozen
class Started:
    """A workflow that was acknowledged."""

    key: str
    id: str


@attrs.frozen
class Ended:
    """The end of a workflow, in an answer to a client."""

    id: str
    status: str
    result: str | None


@attrs.frozen
class Told:
    """The end of a workflow, as a message to its starter."""

    id: str
    is_ok: bool


@attrs.frozen
class Given:
    """A task that a workflow gave to a queue, which keeps one for each key."""

    payload: str
    key: str


@attrs.frozen
class Passed:
    """A step whose result its process got."""

    step: StepEvent


@attrs.define
class Messages:
    """The messages about ends, by their ids."""

    world: World
    known: dict[str, Deliver] = attrs.field(factory=dict)

    def take(self, message: Deliver) -> None:
        if message.id not in self.known:
            self.known[message.id] = message
            self.world.confirm(Told(message.task_id or "", message.status == "ok"))


@attrs.frozen
class Opened:
    """A question that was opened, or withdrawn."""

    key: str
    is_open: bool


class Played(Actor[Deliver | OpenRequest | WithdrawRequests | Enqueue | Delegate]):
    """The services that a desk asks."""

    def __init__(self, *, messages: Messages) -> None:
        self._messages = messages

    async def setup(self) -> None:
        for service in ("inboxes", "requests", "queues"):
            self.context.register("service", service)

    async def receive(
        self, message: Deliver | OpenRequest | WithdrawRequests | Enqueue | Delegate
    ) -> None:
        match message:
            case Deliver():
                self._messages.take(message)
                self.reply(message, Receipt(id=message.id, status="queued", position=0))
            case OpenRequest(key=key):
                self._messages.world.confirm(Opened(key, is_open=True))
                self.reply(message, OpenedRequest(id=key, digest="", state="open"))
            case WithdrawRequests(keys=keys):
                for key in keys or ():
                    self._messages.world.confirm(Opened(key, is_open=False))
                self.reply(message, WithdrawnRequests(ids=[]))
            case Enqueue(payload=payload, key=key):
                self._messages.world.confirm(Given(payload, key or ""))
                self.reply(message, Enqueued(task_id=key or "", queued_position=0))
            case Delegate():
                self.reply(message, _task(message))


def _task(request: Delegate) -> TaskInfo:
    return TaskInfo(
        task_id=request.key or "",
        queue=request.queue,
        status="completed",
        queued_position=None,
        worker=None,
        attempt=1,
        max_attempts=1,
        result=f"done {request.payload}",
        error=None,
        sender=SENDER,
        payload=request.payload,
        key=request.key,
        priority=0,
        waiting_for=[],
        enqueued="",
        started=None,
        ended="",
    )


class AllRights:
    """Everybody may send messages."""

    def refuse_handoff(self, sender: str, target: str, *, interrupts: bool, now: float) -> None:
        del sender, target, interrupts, now


def tree(flusher: SimulatedFlusher, host: SimulatedHost, messages: Messages) -> SupervisorSpec:
    return SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("played", Played, messages=messages),
            SupervisorSpec(name="workflow-processes", dynamic=True),
            ChildSpec.of(
                "workflows",
                WorkflowDesk,
                directory=DIRECTORY,
                archive=DIRECTORY.parent / "archive",
                settings=WorkflowSettings(root="/", host="here"),
                supervisor="root/workflow-processes",
                flusher=flusher,
                scan=ProcessScan(host),
                messages=AllRights(),
                refuse=lambda *_: None,
            ),
        ),
    )


@attrs.frozen
class Held:
    """The state after recovery: the runs, and the calls of those that are not settled."""

    runs: Mapping[str, StoredRun]
    calls: Mapping[str, Mapping[str, EngineCall]]


@attrs.frozen
class Steps:
    """Workflows through the real desk and the real engine."""

    name: str = "workflows"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, WORKFLOWS, RUNTIME)
    subjects: tuple[str, ...] = ("WorkflowDesk", "WorkflowProcess")
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        processes = WorkflowWorld(log=lambda step: _note(world, step))
        messages = Messages(world)
        chance = world.simulation.chance
        async with trio.open_nursery() as nursery:
            machine = Machine(nursery, chance)

            async def live() -> None:
                host = SimulatedHost(machine)
                spec = tree(world.flusher, host, messages)
                async with world.simulation.open_system(spec) as system:
                    await _Client(world, system, messages).play()

            with reproducible(chance), simulated_workflows(processes):
                await until_done(live)
            nursery.cancel_scope.cancel()

    def recover(self, disk: SimulatedDisk) -> Held:
        runs = _rows(disk, DIRECTORY / RUNS, StoredRun)
        unsettled = [each for each, run in runs.items() if not run.is_settled]
        calls = {each: _rows(disk, DIRECTORY / each / LEDGER, EngineCall) for each in unsettled}
        return Held(runs, calls)

    def check(self, evidence: Evidence, found: Held, *, killed: bool) -> Iterator[str]:
        keys = Counter(each.key for each in found.runs.values())
        yield from (f"the key {key} has {n} workflows" for key, n in keys.items() if n > 1)
        begun = Counter(
            (each.step.workflow, each.step.step)
            for each in evidence.confirmed
            if isinstance(each, Begun) and not each.may_repeat
        )
        yield from (f"the step {each} was begun {n} times" for each, n in begun.items() if n > 1)
        tasks = Counter(each.payload for each in {*evidence.confirmed} if isinstance(each, Given))
        yield from (f"the task {each} was given {n} times" for each, n in tasks.items() if n > 1)
        yield from self._done_again(evidence)
        yield from self._lost(evidence, found)

    def _done_again(self, evidence: Evidence) -> Iterator[str]:
        passed: dict[tuple[str, str], str] = {}
        for each in evidence.confirmed:
            if isinstance(each, Begun) and (each.step.workflow, each.step.step) in passed:
                yield f"{each.step} was begun again, although it was finished"
            if isinstance(each, Passed):
                place = each.step.workflow, each.step.step
                if passed.setdefault(place, each.step.result) != each.step.result:
                    yield f"{each.step} has had the result {passed[place]!r}"

    def _lost(self, evidence: Evidence, found: Held) -> Iterator[str]:
        for each in evidence.confirmed:
            match each:
                case Started(id=id_) if id_ not in found.runs:
                    yield f"{each} was acknowledged and is forgotten"
                case Ended(id=id_, status=status, result=result):
                    run = found.runs.get(id_)
                    if run is None or run.phase != status or not _is(run.result, result):
                        yield f"{each} was shown, and it is {run}"
                case Told(id=id_, is_ok=is_ok):
                    phase = found.runs[id_].phase if id_ in found.runs else "forgotten"
                    if (phase == "completed") is not is_ok or phase == "running":
                        yield f"the end of {id_} was told as ok={is_ok}, and it is {phase}"
                case Passed(step=step) if not self._is_kept(step, found):
                    yield f"{step} was finished and would be done again"

    @staticmethod
    def _is_kept(step: StepEvent, found: Held) -> bool:
        """Return whether the next process would take the result of a step from its journal."""
        run = found.runs.get(step.workflow)
        if run is None:
            return False
        if run.is_settled:
            return True  # it has ended: no process is started any more
        calls = [*found.calls[run.id].values()]
        if ":" not in step.step:  # otherwise a call that the daemon carries out
            digest = digest_of("step", {"name": step.step})
            calls = [each for each in calls if each.digest == digest]
        result = json.dumps(value(step.result))
        return any(holds(run, each, {}) and _is(each.outcome, result) for each in calls)


def _rows(disk: SimulatedDisk, path: Path, row: type) -> dict[str, Any]:
    opened = open_ledger(disk, path)
    disk.close(opened.fd)
    return read_rows(disk, path, opened.length, row)


def _is(stored: StoredText | None, text: str | None) -> bool:
    """Return whether a text of a row is this one."""
    found = None if stored is None else stored.digest
    return found == (None if text is None else text_digest(text))


@attrs.frozen
class Begun:
    """A step whose function was called; ``may_repeat``: it is one that may be interrupted."""

    step: StepEvent
    may_repeat: bool


REPEATED = {
    each.partition(":")[2]
    for orders in ORDERS.values()
    for each in orders
    if each.startswith(("redo", "die", "leave"))
}


def _note(world: World, step: StepEvent) -> None:
    # A process outlives its daemon; here it ends with the run.
    if step.kind == "begun":
        world.confirm(Begun(step, step.step in REPEATED))
    elif step.kind == "passed":
        world.confirm(Passed(step))


class _Client:
    """The client of one incarnation: it does everything again under the same keys."""

    def __init__(self, world: World, system: System, messages: Messages) -> None:
        self._world = world
        self._desk = system.ref("root/workflows")
        self._messages = messages

    async def play(self) -> None:
        started = [await self._run(key) for key in ORDERS]
        for each in started:
            await self._is_over(each)

    async def _run(self, key: str) -> str:
        request = api.RunWorkflow(
            name=NAME, kwargs={"orders": [*ORDERS[key]]}, key=key, from_handle=SENDER
        )
        started = await ask_until_answered(self._desk, request)
        self._world.confirm(Started(key, started.workflow_id))
        return started.workflow_id

    async def _is_over(self, id_: str) -> None:
        info: Any = None
        for _ in range(PATIENCE):
            info = await ask_until_answered(self._desk, api.GetWorkflow(workflow_id=id_))
            if info.status != "running" and f"workflow:{id_}/end" in self._messages.known:
                self._world.confirm(Ended(id_, info.status, info.result))
                return
            await trio.sleep(PAUSE_S)
        raise AssertionError(f"the end of {id_} is not told: {info}")

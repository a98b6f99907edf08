"""The scenario of workflows: steps that are done once, interrupted ones, and their ends.

The desk, its files, the actor of a process, and the engine in that process are the real ones. The
process is simulated. Inboxes and requests are played by one actor that loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ChildSpec, SupervisorSpec, System
from actors.faults import RUNTIME, FaultTable
from actors.simulate import Simulation, simulate
from aegis.journal.faults import JOURNAL
from aegis.processes.process_scan import ProcessScan
from aegis.protocol import workflows as api
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.queues import Delegate, Enqueue, Enqueued, TaskInfo
from aegis.protocol.requests import (
    OpenRequest,
    RequestOpened,
    WithdrawnRequests,
    WithdrawRequests,
)
from aegis.workflows import events as e
from aegis.workflows.calls import about, digest_of, value
from aegis.workflows.child.journal import Journal
from aegis.workflows.desk import WorkflowDesk, WorkflowSettings
from aegis.workflows.faults import WORKFLOWS
from aegis.workflows.files import WorkflowFiles
from aegis.workflows.frames import journal_frames
from aegis.workflows.ledger import Fold
from aegis.workflows.rules import Workflows
from tests.chaos.checking.workflow_evidence import StepEvent
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.machine.simulated_workflow import NAME, WorkflowWorld, simulated_workflows
from tests.chaos.reproducible import BEGIN, reproducible
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
                self.reply(message, RequestOpened(id=key, digest="", state="open"))
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
    """The state after recovery: the workflows, and what a daemon does with them at its start."""

    workflows: tuple[e.Loaded, ...]
    actions: tuple[str, ...]


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
        found: list[e.Loaded] = []

        async def load(_: Simulation) -> None:
            async with trio.open_nursery() as nursery:
                files = WorkflowFiles(
                    directory=DIRECTORY,
                    flusher=SimulatedFlusher(disk),
                    start_soon=nursery.start_soon,
                    synced=lambda _: None,
                    refused=lambda *_: None,
                )
                try:
                    found.extend(await files.load())
                finally:
                    nursery.cancel_scope.cancel()
                files.close()

        simulate(load, seed=1)
        rules = Workflows()
        actions = rules.handle(e.Recovering(workflows=found), BEGIN.timestamp())
        kept = e.Settle | e.StoreMeta | e.Write | e.Launch
        shown = [type(each).__name__ for each in actions if isinstance(each, kept)]
        return Held(tuple(found), tuple(shown))

    def check(self, evidence: Evidence, found: Held, *, killed: bool) -> Iterator[str]:
        known = {each.workflow.id: each for each in found.workflows}
        keys = Counter(each.workflow.key for each in found.workflows)
        yield from (f"the key {key} has {n} workflows" for key, n in keys.items() if n > 1)
        yield from (
            f"{each.workflow.id} cannot be read: {each.problem}"
            for each in found.workflows
            if each.problem
        )
        begun = Counter(
            (each.step.workflow, each.step.step)
            for each in evidence.confirmed
            if isinstance(each, Begun) and not each.may_repeat
        )
        yield from (f"the step {each} was begun {n} times" for each, n in begun.items() if n > 1)
        tasks = Counter(each.payload for each in {*evidence.confirmed} if isinstance(each, Given))
        yield from (f"the task {each} was given {n} times" for each, n in tasks.items() if n > 1)
        yield from self._done_again(evidence)
        yield from self._lost(evidence, known)

    def _done_again(self, evidence: Evidence) -> Iterator[str]:
        passed: dict[tuple[str, str], str] = {}
        for each in evidence.confirmed:
            if isinstance(each, Begun) and (each.step.workflow, each.step.step) in passed:
                yield f"{each.step} was begun again, although it was finished"
            if isinstance(each, Passed):
                place = each.step.workflow, each.step.step
                if passed.setdefault(place, each.step.result) != each.step.result:
                    yield f"{each.step} has had the result {passed[place]!r}"

    def _lost(self, evidence: Evidence, known: Mapping[str, e.Loaded]) -> Iterator[str]:
        for each in evidence.confirmed:
            match each:
                case Started(id=id_) if id_ not in known:
                    yield f"{each} was acknowledged and is forgotten"
                case Ended(id=id_, status=status, result=result):
                    now = known[id_].workflow if id_ in known else None
                    if now is None or (now.phase, now.result) != (status, result):
                        yield f"{each} was shown, and it is {now}"
                case Told(id=id_, is_ok=is_ok):
                    phase = known[id_].workflow.phase if id_ in known else "forgotten"
                    if (phase == "completed") is not is_ok or phase == "running":
                        yield f"the end of {id_} was told as ok={is_ok}, and it is {phase}"
                case Passed(step=step) if not self._is_kept(step, known.get(step.workflow)):
                    yield f"{step} was finished and would be done again"

    @staticmethod
    def _is_kept(step: StepEvent, loaded: e.Loaded | None) -> bool:
        """Return whether the next process would take the result of a step from its journal."""
        if loaded is None:
            return False
        if loaded.is_marked:
            return True  # it has ended: no process is started any more
        if ":" in step.step:  # a call that the daemon carries out
            return any(each.outcome == value(step.result) for each in loaded.calls.values())
        journal = Journal()
        fold = Fold(loaded.workflow)
        fold.calls = {**loaded.calls}
        *frames, _ = journal_frames(fold)
        for frame in frames:
            journal.add(frame["calls"])
        arguments = {"name": step.step}
        digest = digest_of("step", arguments)
        position = journal.step(digest)
        if position is None:
            return False
        return journal.outcome(position, digest, about("step", arguments)) == value(step.result)


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

"""The player of a script: all incarnations of a daemon, from the first to an undisturbed last one.

All of a run follows from the script. The actors are the real ones; processes, PTYs, shells, the
disk and the clock are simulated, and no thread runs. When the clients have done their steps the
daemon is stopped or killed once more. A last incarnation, without faults, must restore everything,
work, answer all reads, and stop without leaving anything behind.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import attrs
import trio
from structlog.testing import capture_logs

from actors import System, describe
from actors.faults import RUNTIME, armed
from actors.simulate import Simulation, Trace, simulate
from aegis.agents.faults import AGENTS
from aegis.canvases.faults import CANVASES
from aegis.groups.faults import GROUPS
from aegis.inboxes.faults import INBOXES
from aegis.inboxes.router import SUFFIX, HandleSeen
from aegis.journal.disk import read_file
from aegis.journal.faults import JOURNAL
from aegis.journal.ledger import Scan, scan
from aegis.protocol import inboxes as box
from aegis.protocol import terminals as api
from aegis.protocol.derived.wire import to_plain
from aegis.queues.faults import QUEUES
from aegis.requests.faults import REQUESTS
from aegis.terminals.faults import TERMINALS as TERMINAL_POINTS
from aegis.terminals.meta import load_settings
from aegis.terminals.settings import TerminalFiles
from aegis.workflows.faults import WORKFLOWS
from tests.chaos.checking.checker import Violation, violations
from tests.chaos.checking.evidence import Evidence, Life
from tests.chaos.checking.observations import Disturbance, Listing, Remains, RemainsKind, Span
from tests.chaos.histories import script as s
from tests.chaos.histories.agent_end import AgentEnd
from tests.chaos.histories.asking import Asker
from tests.chaos.histories.canvas_steps import CanvasSteps
from tests.chaos.histories.client import Client
from tests.chaos.histories.daemon import SimulatedDaemon
from tests.chaos.histories.group_steps import GroupSteps, members_in
from tests.chaos.histories.steps import StepPlayer
from tests.chaos.histories.task_end import TaskEnd
from tests.chaos.histories.tree import IMAGE, STATE
from tests.chaos.histories.trouble import Trouble
from tests.chaos.histories.workflow_steps import WorkflowSteps
from tests.chaos.machine.disk_images import drawn_image
from tests.chaos.machine.disk_model import DiskModel
from tests.chaos.machine.simulated_agent import AgentWorld, agents_on
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_line import simulated_agents
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.machine.simulated_tui import takeover_program
from tests.chaos.machine.simulated_workflow import WorkflowWorld, simulated_workflows
from tests.chaos.notebook import Notebook
from tests.chaos.reproducible import reproducible

TABLES = (
    *(RUNTIME, JOURNAL, TERMINAL_POINTS, INBOXES, REQUESTS, AGENTS, QUEUES, GROUPS),
    *(CANVASES, WORKFLOWS),
)
NAMES = (s.SHARED, s.DESK, s.SPARE)
MOST_LIVES = 40
"""The most incarnations, far above a script's deaths: a daemon may be unable to start."""

RESTART_S = 0.2
"""The longest delay, in seconds, until a dead daemon is started again."""

MAX_LEDGER_BYTES = 2**24
"""The most bytes of a ledger that are read, far above those of a script."""

SETTLE_S = 2.0
"""The quiet time, in seconds, after which an inbox has got every pending message."""


@attrs.frozen(kw_only=True)
class Outcome:
    """The result of a script: the broken promises, and its counts.

    ``hits`` counts the faults that struck, by kind; ``operations`` the answered requests of
    clients, with refusals; ``records`` those in the final ledgers, ``wakes`` the different messages
    of terminals that were shown.
    """

    violations: tuple[Violation, ...]
    hits: Mapping[str, int]
    operations: int
    records: int
    wakes: int
    lives: int
    evidence: Evidence
    events: Trace

    @property
    def trace(self) -> list[str]:
        """Return the events, a line each."""
        return str(self.events).splitlines()


def play(script: s.Script) -> Outcome:
    """Play ``script`` to its end, and check it. The same script has the same outcome."""
    prefix = f"aegis-history-{os.getpid()}-"  # tests/conftest.py removes those of killed runs
    with tempfile.TemporaryDirectory(prefix=prefix) as scratch, capture_logs():
        history: list[History] = []

        async def run(simulation: Simulation) -> None:
            history.append(History(script, simulation, Path(scratch)))
            await history[0].play()

        traced = simulate(run, seed=script.seed)
    return history[0].outcome(traced.trace)


class History:
    """A script in progress; ``scratch`` is a real directory for the files that shells read."""

    def __init__(self, script: s.Script, simulation: Simulation, scratch: Path) -> None:
        self._script = script
        self._simulation = simulation
        self._scratch = scratch
        self._chance = simulation.chance
        self._book = Notebook()
        self._agents = AgentWorld(self._book.moment)
        self._workflows = WorkflowWorld(log=self._book.workflows.steps.append)
        self._trouble = Trouble(script, self._book, self._agents)
        self._clients = [
            Client(
                number,
                script.of(number),
                self._book,
                self._trouble,
                self._find_id,
                lambda: self._model,
            )
            for number in range(script.clients)
        ]
        self._model = DiskModel.of(IMAGE)
        self._witnessed: list[tuple[str, ...]] = []
        self._failed: dict[str, int] = {}

    async def play(self) -> None:
        """Play all incarnations."""
        faults = armed(self._trouble.plan, *TABLES)
        self._agents.has_commands = self._script.has_persons
        programs = (
            simulated_agents(self._agents, self._scratch),
            simulated_workflows(self._workflows),
        )
        with reproducible(self._chance), programs[0], programs[1], faults:
            async with trio.open_nursery() as self._machines:
                await self._switch_on()
                while not self._is_done and self._book.life < MOST_LIVES:
                    await self._live(self._work)
                self._trouble.end()
                self._agents.is_calm = self._workflows.is_calm = True
                await self._live(self._end_quietly)
                self._machines.cancel_scope.cancel()

    @property
    def _has_groups(self) -> bool:
        return any(isinstance(each, s.GroupStep) for each in self._script.steps)

    @property
    def _is_done(self) -> bool:
        return self._book.life > 0 and all(client.is_finished for client in self._clients)

    def outcome(self, trace: Trace) -> Outcome:
        """Return the outcome."""
        evidence = self._book.evidence(self._witnessed)
        shown = {
            message["id"]
            for answers in evidence.answers.values()
            for answer in answers
            for message in answer.messages
        }
        return Outcome(
            violations=tuple(violations(evidence)),
            hits=dict(self._trouble.hits),
            operations=sum(bool(ask.outcomes) for ask in evidence.asks),
            records=sum(len(records) for records in evidence.ledgers.values()),
            wakes=sum(each.startswith("term:") for each in shown),
            lives=len(evidence.lives),
            evidence=evidence,
            events=trace,
        )

    # The machine.

    async def _switch_on(self) -> None:
        self._machine = await self._machines.start(self._run_machine)

    async def _run_machine(self, task_status: trio.TaskStatus[Machine]) -> None:
        async with trio.open_nursery() as nursery:
            self._power = nursery.cancel_scope
            machine = Machine(nursery, self._chance)
            machine.witnessed = self._witnessed
            machine.installed["sh"] = takeover_program(self._agents, self._scratch)
            task_status.started(machine)
            await trio.sleep_forever()

    async def _after(self, daemon: SimulatedDaemon) -> None:
        """Close the disk of a dead daemon; after a power loss restart the machine as well."""
        # A loss of power takes lines that are not synced.
        self._book.groups.members |= members_in(self._sound_disk())
        if daemon.death == "power loss":
            self._power.cancel()
            choose = Random(f"{self._script.seed}/{daemon.draw}").randrange
            self._model = DiskModel.of(drawn_image(self._model, choose))
            await self._switch_on()
        self._model.close_all()
        await trio.sleep(self._chance.uniform(0, RESTART_S))

    # Incarnations.

    async def _live(self, body: Any) -> None:
        """Run one daemon, from its start to its end."""
        book, hits = self._book, self._trouble.count
        book.life += 1
        earlier = {each.pid for each in self._machine.alive}
        daemon = SimulatedDaemon(
            self._simulation,
            self._machine,
            self._model,
            self._trouble.disk_plan,
            book,
            self._scratch,
            self._keep_members,
        )
        self._trouble.meet(daemon)
        book.lives.append(Life(number=book.life, killed=True))
        tasks = trio.lowlevel.current_statistics().tasks_living
        try:
            await daemon.live(partial(self._live_up, daemon, body, earlier, hits))
        except Exception as error:
            if self._trouble.count == hits:
                book.errors.append(f"the daemon of life {book.life} ended: {describe(error)}")
            daemon.die("kill")
        if not daemon.is_over:
            daemon.stopped()
        self._trouble.end_life()
        self._write_down_failed()
        if daemon.death != "stop":
            await self._after(daemon)
        else:
            book.lives[-1] = attrs.evolve(book.lives[-1], killed=False)
            self._look_for_remains(tasks)

    async def _live_up(
        self, daemon: SimulatedDaemon, body: Any, earlier: set[int], hits: int, system: System
    ) -> None:
        router = system.ref("root/inbox-router")
        for name in NAMES:
            self._find_id(name)
        for client in self._clients:
            router.tell(HandleSeen(handle=client.handle))
        if self._book.life == 1:
            await self._begin(daemon, system)
        await self._check_start(daemon, system, earlier, hits)
        self._trouble.begin()
        await body(daemon, system)

    def _asker(self, client: Client, daemon: SimulatedDaemon, system: System) -> Asker:
        return Asker(client.handle, system, self._book, lambda: daemon.is_over)

    def _turn(self, client: Client, daemon: SimulatedDaemon, system: System) -> StepPlayer:
        return StepPlayer(client, self._asker(client, daemon, system), self._book)

    async def _begin(self, daemon: SimulatedDaemon, system: System) -> None:
        """Begin the first incarnation: spawn the terminals."""
        turn = self._turn(self._clients[s.KEEPER], daemon, system)
        for name in NAMES:
            await turn.spawn(s.SpawnStep(number=-1, client=s.KEEPER, terminal=name))
        for agent in (s.ANN, s.BEN) if self._script.has_agents else ():
            await turn.do(s.SpawnAgentStep(number=-1, client=s.KEEPER, agent=agent))
        for group in s.GROUPS if self._has_groups else ():
            step = s.SpawnGroupStep(number=-1, client=s.KEEPER, group=group, members=2)
            await turn.do(step)

    async def _check_start(
        self, daemon: SimulatedDaemon, system: System, earlier: set[int], hits: int
    ) -> None:
        """Record the remains of earlier incarnations, and the missing terminals."""
        book = self._book
        asker = self._asker(self._clients[s.KEEPER], daemon, system)
        answered = await asker.ask(api.ListTerminals())
        missing: list[str] = []
        if answered.value is not None:
            there = tuple(each.name for each in answered.value.result)
            failed = [each.name for each in answered.value.result if each.state == "failed"]
            self._failed.update(dict.fromkeys(failed, answered.span.asked))
            book.listings.append(Listing(span=answered.span, terminals=there))
            if self._trouble.count == hits:
                missing = [name for name in (s.SHARED, s.DESK) if name not in {*there} - {*failed}]
        # A directory of agents that cannot read its roster tries again with its first request.
        excused = agents_on(self._machine) if self._trouble.count > hits else ()
        left = [
            str(each.info)
            for each in self._machine.alive
            if each.pid in earlier and each not in excused
        ]
        book.lives[-1] = attrs.evolve(
            book.lives[-1], ready=book.moment(), missing=tuple(missing), left=tuple(left)
        )

    async def _work(self, daemon: SimulatedDaemon, system: System) -> None:
        """Run all clients; after their last step kill the daemon, or stop it."""
        async with trio.open_nursery() as nursery:
            for client in self._clients:
                nursery.start_soon(client.work, self._turn(client, daemon, system))
        if not self._script.stops or not self._trouble.count:
            self._trouble.hits["kill"] += 1
            daemon.die("kill")

    # The end.

    async def _end_quietly(self, daemon: SimulatedDaemon, system: System) -> None:
        """Check that every terminal works; then read everything."""
        for name in (s.SHARED, s.DESK):
            turn = self._turn(self._clients[s.TYPIST], daemon, system)
            await turn.check(name)
        await self._end_coordination(self._clients[s.KEEPER], daemon, system)
        if self._script.uses_agents:
            await self._end_agents(self._asker(self._clients[s.KEEPER], daemon, system))
        async with trio.open_nursery() as nursery:
            for client in self._clients:
                nursery.start_soon(self._empty, client, daemon, system)
        for name in NAMES:
            await self._read_ledger(name, daemon, system)

    async def _end_coordination(
        self, client: Client, daemon: SimulatedDaemon, system: System
    ) -> None:
        asker = self._asker(client, daemon, system)
        if any(isinstance(each, s.WorkflowStep) for each in self._script.steps):
            await WorkflowSteps(asker, self._book).settle()
        if any(isinstance(each, s.CanvasStep) for each in self._script.steps):
            steps = CanvasSteps(asker, self._book, {}, lambda: self._model)
            for canvas in s.CANVASES:
                await steps.finish(canvas)

    async def _end_agents(self, asker: Asker) -> None:
        tasks = TaskEnd(asker, self._book, self._sound_disk)
        await tasks.settle()
        await GroupSteps(asker.handle, asker, self._book).settle(self._sound_disk())
        end = AgentEnd(asker, self._book, self._agents)
        await end.settle()
        await tasks.read()
        await end.read(self._sound_disk)
        end.take_log(self._machine)
        sessions = self._book.agents.sessions
        WorkflowSteps(asker, self._book).look_for_programs(sessions, self._machine)

    async def _read_ledger(self, name: str, daemon: SimulatedDaemon, system: System) -> None:
        asker = self._asker(self._clients[s.KEEPER], daemon, system)
        answered = await asker.ask(api.ReadRecords(name=name, since_seq=-1))
        is_known = self._find_id(name) is not None
        if answered.value is not None and (is_known or answered.value.result):
            document: Any = to_plain(answered.value)
            self._book.ledgers[name] = tuple(document["result"])
            self._book.damaged[name] = self._damaged_lines(name)

    def _damaged_lines(self, terminal: str) -> dict[int, int]:
        """Return the numbers of damaged lines of its ledger, by the place of the next record."""
        found = self._scanned(TerminalFiles(STATE.terminals / terminal).ledger)
        starts = [line.start for line in found.lines]
        return dict(Counter(bisect(starts, each.start) for each in found.damaged))

    def _scanned(self, ledger: Path) -> Scan:
        return scan(read_file(self._sound_disk(), ledger, max_bytes=MAX_LEDGER_BYTES) or b"")

    async def _empty(self, client: Client, daemon: SimulatedDaemon, system: System) -> None:
        """Read and acknowledge all unread messages of an inbox, then read all its messages."""
        turn = self._turn(client, daemon, system)
        while True:
            answered = await turn.read_inbox(client.places.inbox, SETTLE_S)
            if answered.value is None or not answered.value.messages:
                break
        asker = self._asker(client, daemon, system)
        everything = box.ReadInbox(unread=False, limit=1000, from_handle=client.handle)
        answered = await asker.ask(everything)
        if answered.value is not None:
            document: Any = to_plain(answered.value)
            self._book.kept[client.handle] = tuple(document["messages"])
        if self._scanned(STATE.inboxes / f"{client.handle}{SUFFIX}").damaged:
            self._book.damaged_inboxes.add(client.handle)

    def _sound_disk(self) -> SimulatedDisk:
        """Return the disk of this moment for the checks: no call of it fails."""
        disk = SimulatedDisk()
        disk.model = self._model
        return disk

    def _keep_members(self, path: Path) -> None:
        """Note the members in the ledgers of groups: one of them is about to be lost."""
        if path.parent == STATE.groups:
            self._book.groups.members |= members_in(self._sound_disk())

    def _find_id(self, terminal: str) -> str | None:
        """Return the life id of a terminal from its settings on the disk."""
        settings = load_settings(
            self._sound_disk(), TerminalFiles(STATE.terminals / terminal), STATE.root
        )
        if settings is None:
            return None
        self._book.saw_id(terminal, settings.life)
        return settings.life

    def _write_down_failed(self) -> None:
        """Record a disturbance of the whole incarnation for each terminal that failed to start."""
        for name, since in self._failed.items():
            span = Span(since, self._book.moment())
            self._book.disturbances.append(Disturbance(kind="crash", terminal=name, span=span))
        self._failed.clear()

    def _look_for_remains(self, tasks: int) -> None:
        """Record tasks, processes and descriptors that are left after an ordered stop."""
        found: list[tuple[RemainsKind, str]] = [
            ("process", str(each.info)) for each in self._machine.alive
        ]
        found += [("descriptor", path) for path in self._model.open_paths()]
        now = trio.lowlevel.current_statistics().tasks_living
        found += [("task", f"{now - tasks} tasks")] if now > tasks else []
        life = self._book.life
        self._book.remains += [Remains(life=life, kind=kind, what=what) for kind, what in found]

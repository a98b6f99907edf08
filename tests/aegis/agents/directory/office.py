"""The directory of sessions of a daemon on a simulated disk, clock and machine.

Directory, sessions, drivers, inboxes and the desk of requests are the real ones; the agents'
processes are simulated. Workspaces are played: each is a directory of its name below the root.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors import Actor, ChildSpec, SupervisorSpec
from actors.faults import RUNTIME, Crash, Plan, armed
from actors.simulate import Simulation, simulate
from aegis.agents.directory.board import Board
from aegis.agents.directory.directory import AgentDirectory
from aegis.agents.directory.programs import Programs
from aegis.configuration.agents import AgentSection
from aegis.configuration.limits import LimitsSection
from aegis.configuration.sections import Configuration
from aegis.errors import AegisError, StorageError
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.journal.archive import DEFAULT_KEEP
from aegis.journal.faults import JOURNAL
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.agents import (
    AgentInfo,
    CloseAgent,
    ForkAgent,
    ListSessions,
    PurgeAgent,
    ReadSession,
    RenameAgent,
    ResumeSession,
    SetAgent,
    ShowAgent,
    SpawnAgent,
    TranscriptEntry,
)
from aegis.protocol.workspaces import ListWorkspaces, WorkspaceInfo, WorkspaceList
from aegis.requests.desk import RequestDesk
from tests.aegis.simulated_daemon import SimulatedDaemon, has_part
from tests.chaos.histories.tree import SimulatedKeys
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_agent import AgentWorld
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_line import simulated_agents
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.reproducible import reproducible

ROOT = "/state"
AGENTS = Path(ROOT, "agents")
ROSTER = AGENTS / "sessions.jsonl"

CONFIGURATION = Configuration(
    agents={
        "asks": AgentSection(permission="ask"),
        "lead": AgentSection(permission="full", may_spawn=("asks", "lead")),
        "alone": AgentSection(permission="full", accepts_from=("agent:ann",)),
    },
    default_agent="asks",
    limits=LimitsSection(sessions=40, spawns_per_hour=4),
)


class PlayedWorkspaces(Actor[ListWorkspaces]):
    """The workspaces ``web`` and ``db``."""

    async def setup(self) -> None:
        self.context.register("service", "workspaces")

    async def receive(self, message: ListWorkspaces) -> None:
        made = [
            WorkspaceInfo(workspace_id=each, directory=f"{ROOT}/{each}", shells=[])
            for each in ("web", "db")
        ]
        self.reply(message, WorkspaceList(result=made))


class Office(SimulatedDaemon):
    """A daemon with sessions, and a person who asks its directory.

    ``root`` is the path of its project, which may move between two lives.
    """

    intensity = 6

    def __init__(self, simulation: Simulation, faults: Plan) -> None:
        super().__init__(simulation, "root/agent-directory")
        self.faults = faults
        self.root = ROOT
        self.earlier: tuple[str, ...] = ()
        self.configuration = CONFIGURATION
        self.keep = DEFAULT_KEEP
        self.life = 0
        self.machine: Machine
        self.programs: Programs
        self._host: SimulatedHost | None = None

    def actors(self) -> tuple[ChildSpec | SupervisorSpec, ...]:  # type: ignore[override]
        self.life += 1
        self._host = SimulatedHost(self.machine)
        self.programs = Programs(
            configuration=self.configuration,
            keys=SimulatedKeys(),
            scan=ProcessScan(self._host),
            root=self.root,
            variables={},
        )
        flusher = SimulatedFlusher(self.disk)
        inboxes = Path(ROOT, "inboxes")
        return (
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of("workspaces", PlayedWorkspaces),
            ChildSpec.of(
                "inbox-router",
                InboxRouter,
                directory=inboxes,
                archive=message_archive(inboxes.parent / "archive", flusher.disk),
                supervisor="root/inboxes",
                flusher=flusher,
            ),
            ChildSpec.of(
                "requests",
                RequestDesk,
                path=Path(ROOT, "requests.jsonl"),
                archive=Path(ROOT, "archive"),
                flusher=flusher,
                life=f"life{self.life}",
            ),
            SupervisorSpec(name="agents", dynamic=True),
            ChildSpec.of(
                "agent-directory",
                AgentDirectory,
                root=self.root,
                directory=AGENTS,
                inboxes=inboxes,
                programs=self.programs,
                board=Board(),
                supervisor="root/agents",
                archive=Path(ROOT, "archive"),
                flusher=flusher,
                keep=self.keep,
                earlier=self.earlier,
            ),
        )

    def dies(self) -> None:
        if self._host is not None:
            self._host.kill()

    def is_planned(self, path: str, error: Exception) -> bool:
        # A session whose transcript cannot be opened is restarted, and then by the next request.
        is_session = path.startswith("root/agents/")
        return super().is_planned(path, error) or (is_session and has_part(error, StorageError))

    def image(self) -> dict[str, bytes | None]:
        return dict(cached_image(self.disk.model))

    def put(self, files: Image) -> None:
        """Change files while no daemon runs."""
        self.disk = SimulatedDisk({**self.image(), **files}, self.plan)

    async def crashes(self) -> None:
        """Let the directory crash, and wait until it is restarted."""
        point = "actor.receive.before[AgentDirectory]"
        self.faults.faults[point, self.faults.hits[point] + 1] = Crash()
        self.ask_soon(ListSessions())
        await self.passes(3)

    # A person.

    async def spawn(self, handle: str | None = None, **fields: Any) -> AgentInfo:
        return await self.ask(SpawnAgent(handle=handle, **fields))

    async def show(self, handle: str) -> AgentInfo:
        return await self.ask(ShowAgent(handle=handle))

    async def close(self, handle: str, by: str | None = None) -> AgentInfo:
        return await self.ask(CloseAgent(handle=handle, from_handle=by))

    async def resume(self, handle: str) -> AgentInfo:
        return await self.ask(ResumeSession(handle=handle))

    async def rename(self, old: str, new: str) -> AgentInfo:
        return await self.ask(RenameAgent(old_handle=old, new_handle=new))

    async def purge(self, handle: str) -> AgentInfo:
        return await self.ask(PurgeAgent(handle=handle))

    async def set(self, handle: str, **fields: Any) -> AgentInfo:
        return await self.ask(SetAgent(handle=handle, **fields))

    async def fork(self, handle: str, new: str) -> AgentInfo:
        return await self.ask(ForkAgent(handle=handle, new_handle=new))

    async def listed(self, *, closed: bool = False) -> dict[str, AgentInfo]:
        """Return the sessions by their handles."""
        found = await self.ask(ListSessions(closed=closed))
        return {each.handle: each for each in found.result}

    async def handles(self, *, closed: bool = False) -> list[str]:
        return [*await self.listed(closed=closed)]

    async def entries(self, handle: str, kind: str) -> list[TranscriptEntry]:
        found = await self.ask(ReadSession(handle=handle, last_n=500))
        return [each for each in found.result if each.kind == kind]

    async def is_taken(self, handle: str) -> bool:
        """Return whether no new session gets this handle."""
        try:
            await self.spawn(handle)
        except AegisError as error:
            return "is or was used" in str(error)
        return False

    @asynccontextmanager
    async def full_disk(self) -> AsyncIterator[None]:
        """Refuse all that is written inside the block; let its effects happen after it."""
        self.plan.refuses = ("write", "fdatasync", "ftruncate")
        yield
        self.plan.refuses = ()
        await self.passes(6)


Case = Callable[[Office], Awaitable[None]]


def play(case: Case, seed: int = 1, prepare: Callable[[Office], object] = str) -> None:
    """Run ``case`` with an office whose directory is prepared by ``prepare`` before its start."""

    async def main(simulation: Simulation) -> None:
        plan = Plan()
        with reproducible(simulation.chance), armed(plan, JOURNAL, RUNTIME):
            office = Office(simulation, plan)
            numbers = iter(range(100, 100_000))
            with simulated_agents(AgentWorld(lambda: next(numbers))):
                async with trio.open_nursery() as nursery:
                    office.machine = Machine(nursery, simulation.chance)
                    prepare(office)
                    async with office.opened():
                        await case(office)
                    nursery.cancel_scope.cancel()

    simulate(main, seed=seed)

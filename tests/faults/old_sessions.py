"""The scenario of sessions that are not kept: one is closed after the other, and only one is kept.

Directory, sessions and inboxes are the real ones; the agents' processes are simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any
from unittest import mock

import attrs
import trio

from actors import Ref, System
from actors.faults import RUNTIME, FaultTable
from aegis.agents.directory import roster_table
from aegis.errors import AlreadyExists, NotFound
from aegis.journal.faults import JOURNAL
from aegis.protocol.agents import CloseAgent, RenameAgent, ShowAgent, SpawnAgent
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.histories.tree import CONFIGURATION
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_agent import AgentWorld
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_line import simulated_agents
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.reproducible import reproducible
from tests.faults.retrying import until_done
from tests.faults.sessions import roster_on, session_tree

PROFILE = next(iter(CONFIGURATION.agents))
HANDLES = ("w-1", "ann", "w-2")
"""The handles of the sessions, in the order of their ends; the first is renamed before."""

ALIAS = "release"
KEPT = 1


@attrs.frozen
class Named:
    """A session got this handle."""

    handle: str
    id: str


@attrs.frozen
class SessionEnded:
    """The close of the session with this id was answered."""

    id: str


@attrs.frozen
class Held:
    """The state after recovery: the open and closed sessions by id, and the handles in use."""

    is_closed: dict[str, bool]
    owners: dict[str, str]
    gone: frozenset[str]


@attrs.frozen
class OldSessions:
    """Sessions that are closed, of which only the newest is kept."""

    name: str = "old sessions"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, RUNTIME)
    subjects: tuple[str, ...] = ("AgentDirectory",)
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        numbers, lives = count(100), count(1)
        agents = AgentWorld(lambda: next(numbers))
        with (
            reproducible(world.simulation.chance),
            simulated_agents(agents),
            mock.patch.object(roster_table, "MAX_CLOSED", KEPT),
        ):
            async with trio.open_nursery() as nursery:
                machine = Machine(nursery, world.simulation.chance)

                async def live() -> None:
                    spec = session_tree(world, machine, f"life{next(lives)}")
                    async with world.simulation.open_system(spec) as system:
                        await _Client(world, system).play()

                await until_done(live)
                nursery.cancel_scope.cancel()

    def recover(self, disk: SimulatedDisk) -> Held:
        found = roster_on(disk)
        known = (*HANDLES, ALIAS)
        owners = {each: member.id for each in known if (member := found.find(each)) is not None}
        return Held(
            {each.id: each.is_closed for each in found.by_id.values()},
            owners,
            frozenset(each for each in known if found.was_dropped(each)),
        )

    def check(self, evidence: Evidence, found: Held, *, killed: bool) -> Iterator[str]:
        for each in evidence.confirmed:
            if isinstance(each, Named):
                owner = found.owners.get(each.handle)
                if owner is None and each.handle not in found.gone:
                    yield f"the handle {each.handle} of {each.id} may be given again"
                if owner not in (None, each.id):
                    yield f"the handle {each.handle} of {each.id} was given to {owner}"
        ended = {each.id for each in evidence.confirmed if isinstance(each, SessionEnded)}
        for each in evidence.confirmed:
            if isinstance(each, Named) and each.id not in found.is_closed and each.id not in ended:
                yield f"the session {each.id} was not closed and is lost"


class _Client:
    """The client of one incarnation: it does what is not done yet."""

    def __init__(self, world: World, system: System) -> None:
        self._world = world
        self._sessions: Ref[Any] = system.ref("root/agent-directory")

    async def play(self) -> None:
        for handle in HANDLES:
            await self._lives(handle)
        for handle in (*HANDLES, ALIAS):
            await until_done(partial(self._is_refused, handle))

    async def _lives(self, handle: str) -> None:
        """Spawn a session, rename the first, and close it, unless that was done."""
        known = {each.handle: each.id for each in self._confirmed(Named)}
        if handle not in known:
            id_ = await until_done(partial(self._spawned, handle))
            if id_ is None:  # an earlier life has spawned, closed and dropped it
                return
            self._world.confirm(Named(handle, id_))
            known[handle] = id_
        id_ = known[handle]
        if any(each.id == id_ for each in self._confirmed(SessionEnded)):
            return
        if handle == HANDLES[0] and ALIAS not in known:
            rename = RenameAgent(old_handle=id_, new_handle=ALIAS)
            if await until_done(partial(self._done, rename)):
                self._world.confirm(Named(ALIAS, id_))
        await until_done(partial(self._done, CloseAgent(handle=id_)))
        self._world.confirm(SessionEnded(id_))

    def _confirmed(self, form: type[Any]) -> list[Any]:
        return [each for each in self._world.evidence.confirmed if isinstance(each, form)]

    async def _spawned(self, handle: str) -> str | None:
        try:
            info = await self._sessions.ask(SpawnAgent(profile=PROFILE, handle=handle))
        except AlreadyExists:
            try:
                info = await self._sessions.ask(ShowAgent(handle=handle))
            except NotFound:
                return None
        return str(info.id)

    async def _done(self, request: Any) -> bool:
        """Return whether it is done; not if the session is not kept any more."""
        try:
            await self._sessions.ask(request)
        except NotFound:
            return False
        return True

    async def _is_refused(self, handle: str) -> None:
        try:
            await self._sessions.ask(SpawnAgent(profile=PROFILE, handle=handle))
        except AlreadyExists:
            return
        raise AssertionError(f"{handle} was given to a second session")

"""The scenario of renames: a session gets new handles, and its former one again.

Directory, session and inboxes are the real ones; the agent's process is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import attrs
import trio

from actors import Ref, System
from actors.faults import RUNTIME, FaultTable
from aegis.errors import AlreadyExists
from aegis.inboxes.faults import INBOXES
from aegis.journal.faults import JOURNAL
from aegis.protocol.agents import RenameAgent, ShowAgent, SpawnAgent
from aegis.protocol.inboxes import Handoff
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.histories.tree import CONFIGURATION
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_agent import AgentWorld
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_line import simulated_agents
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.reproducible import reproducible
from tests.faults.retrying import ask_until_answered, until_done
from tests.faults.sessions import inbox_ids, roster_on, session_tree

FIRST, SECOND, THIRD = "ann", "bea", "cleo"
HANDLES = (FIRST, SECOND, THIRD, SECOND)
"""The handles of the session, one after the other."""


@attrs.frozen
class Renamed:
    """The session ``id`` got its handle number ``step`` of ``HANDLES``."""

    id: str
    step: int


@attrs.frozen
class Accepted:
    """A message to the session, accepted under this id."""

    id: str


@attrs.frozen
class Held:
    """The state after recovery: the sessions as (id, handle, aliases), the messages, the names.

    ``names`` has the address that each of the handles resolves to.
    """

    sessions: tuple[tuple[str, str, tuple[str, ...]], ...]
    messages: tuple[str, ...]
    names: dict[str, str]


@attrs.frozen
class Renames:
    """One session that is renamed three times, with a message after each rename."""

    name: str = "renames"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, INBOXES, RUNTIME)
    subjects: tuple[str, ...] = ("AgentDirectory",)
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        numbers, lives = count(100), count(1)
        agents = AgentWorld(lambda: next(numbers))
        with reproducible(world.simulation.chance), simulated_agents(agents):
            async with trio.open_nursery() as nursery:
                machine = Machine(nursery, world.simulation.chance)

                async def live() -> None:
                    spec = session_tree(world, machine, f"life{next(lives)}")
                    async with world.simulation.open_system(spec) as system:
                        await _Client(world, system).play()

                await until_done(live)
                nursery.cancel_scope.cancel()

    def recover(self, disk: SimulatedDisk) -> Held:
        roster = roster_on(disk)
        return Held(
            tuple((each.id, each.handle, each.aliases) for each in roster.by_id.values()),
            inbox_ids(disk, FIRST),
            {handle: roster.names.address_of(handle) for handle in (FIRST, SECOND, THIRD)},
        )

    def check(self, evidence: Evidence, found: Held, *, killed: bool) -> Iterator[str]:
        confirmed = [each for each in evidence.confirmed if isinstance(each, Renamed)]
        ids = {id_ for id_, _, _ in found.sessions}
        if len(ids) > 1:
            yield f"there are several sessions: {found.sessions}"
        for each in confirmed:
            if each.id not in ids:
                yield f"the session {each.id} is lost"
        for _, handle, aliases in found.sessions:
            yield from _half(handle, aliases, confirmed[-1].step if confirmed else 0)
            for alias in aliases:
                if found.names[alias] != FIRST:
                    yield f"the alias {alias} leads to {found.names[alias]}"
        for each in evidence.confirmed:
            if isinstance(each, Accepted) and each.id not in found.messages:
                yield f"the message {each.id} was accepted and is lost"


def _half(handle: str, aliases: tuple[str, ...], done: int) -> Iterator[str]:
    """Find a state that is neither the one before a rename nor the one after it."""
    possible = [
        (HANDLES[step], tuple(dict.fromkeys(HANDLES[:step])))
        for step in range(done, min(done + 2, len(HANDLES)))
    ]
    if (handle, aliases) not in possible:
        yield f"after rename {done} the session is {handle}, was {aliases}"


class _Client:
    """The client of one incarnation: it does what is not done yet."""

    def __init__(self, world: World, system: System) -> None:
        self._world = world
        self._sessions: Ref[Any] = system.ref("root/agent-directory")
        self._inboxes: Ref[Any] = system.ref("root/inbox-router")

    async def play(self) -> None:
        id_ = await self._spawn()
        for step in range(1, len(HANDLES)):
            await self._rename(id_, step)
            # The servers replace a handle by the address of its session, which never changes.
            handoff = Handoff(target_handle=FIRST, context=f"work {step}")
            receipt = await ask_until_answered(self._inboxes, handoff)
            self._world.confirm(Accepted(receipt.id))
        for handle in (FIRST, SECOND, THIRD):
            await self._is_taken(handle, id_)

    async def _spawn(self) -> str:
        with_handle = SpawnAgent(profile=PROFILE, handle=FIRST)

        async def spawned() -> str:
            try:
                info = await self._sessions.ask(with_handle)
            except AlreadyExists:
                info = await self._sessions.ask(ShowAgent(handle=FIRST))
            return str(info.id)

        id_ = await until_done(spawned)
        self._world.confirm(Renamed(id_, 0))
        return id_

    async def _rename(self, id_: str, step: int) -> None:
        """Rename the session, unless an earlier try or life has done it."""
        request = RenameAgent(old_handle=FIRST, new_handle=HANDLES[step])
        if any(each == Renamed(id_, step) for each in self._world.evidence.confirmed):
            return
        info = await ask_until_answered(self._sessions, request)
        assert (info.id, info.handle) == (id_, HANDLES[step])
        self._world.confirm(Renamed(id_, step))

    async def _is_taken(self, handle: str, id_: str) -> None:
        """Check that the handle leads to the session, and that no other session gets it."""
        info = await ask_until_answered(self._sessions, ShowAgent(handle=handle))
        assert (info.id, info.handle) == (id_, HANDLES[-1])

        async def refused() -> None:
            try:
                await self._sessions.ask(SpawnAgent(profile=PROFILE, handle=handle))
            except AlreadyExists:
                return
            raise AssertionError(f"{handle} was given to a second session")

        await until_done(refused)


PROFILE = next(iter(CONFIGURATION.agents))

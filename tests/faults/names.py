"""Scenarios of files that are replaced whole: subscriptions, open terminals, workspaces, a note."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio
import trio.testing

from actors import Actor, ChildSpec, Ref, Request, SupervisorSpec
from actors.faults import RUNTIME, FaultTable
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.journal.faults import JOURNAL
from aegis.journal.note import Note
from aegis.protocol.terminals import Subscribe, Unsubscribe
from aegis.terminals.directory.workspace import OpenNames
from aegis.terminals.faults import TERMINALS
from aegis.terminals.history import History
from aegis.terminals.settings import TerminalSettings
from aegis.terminals.wakes.subscriptions import restored
from aegis.terminals.wakes.wakes import WakeSubscribers
from aegis.workspaces.rules import WorkspacesByName
from aegis.workspaces.store import WorkspaceStore
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.faults.ledgers import FILES
from tests.faults.retrying import over_lives, until_done

T = TypeVar("T")

SETTINGS = TerminalSettings(
    name="build",
    life="1f2e",
    shell="/bin/bash",
    cwd="/",
    env={},
    cols=80,
    rows=24,
    started_at="2026-05-22T14:03:21.000Z",
    root="/",
)
STATE: Image = {"/": None, "/state": None}
SPAWNED: Image = {**STATE, "/state/terminals": None, "/state/terminals/build": None}
"""The durable files after a spawn."""

LONG = "x" * 700
"""A pattern of which six make a note that does not fit into a page."""


def at_once(work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``work``, on a clock that jumps."""
    return trio.run(work, clock=trio.testing.MockClock(autojump_threshold=0))


def in_doubt(evidence: Evidence) -> tuple[int, int]:
    """Return the numbers of confirmed and of begun changes of one client."""
    return len(evidence.confirmed), len(evidence.tried)


class SubscribedFront(Actor[Subscribe | Unsubscribe]):
    """The part of a terminal's front that keeps subscribers."""

    def __init__(self, *, world: World) -> None:
        self._world = world

    async def setup(self) -> None:
        flusher = self._world.flusher
        history = History(FILES.ledger, disk=flusher.disk)
        inboxes = self.context.system.ref("root/router")
        self._wakes = WakeSubscribers(SETTINGS, FILES, history, flusher, inboxes)
        await self._wakes.open(-1)
        self._wakes.start(self.context.start_soon)

    async def teardown(self) -> None:
        if hasattr(self, "_wakes"):
            await self._wakes.close()

    async def receive(self, message: Subscribe | Unsubscribe) -> None:
        if isinstance(message, Subscribe):
            self._wakes.subscribe(message, self.defer(message))
        else:
            self._wakes.unsubscribe(message.from_handle or "human", self.defer(message))


async def _open_wakes(flusher: SimulatedFlusher) -> None:
    """Open the wakes as a front does when it starts; no subscriber gets one yet."""
    inboxes: Any = None
    wakes = WakeSubscribers(
        SETTINGS, FILES, History(FILES.ledger, disk=flusher.disk), flusher, inboxes
    )
    await wakes.open(-1)
    await wakes.close()


REQUESTS: tuple[Request[Any], ...] = (
    Subscribe(name="build", from_handle="ann"),
    Subscribe(name="build", from_handle="bob", pattern="make"),
    Subscribe(name="build", from_handle="ann", only_failures=True),
    Unsubscribe(name="build", from_handle="bob"),
    *(Subscribe(name="build", from_handle=f"p{number}", pattern=LONG) for number in range(6)),
    *(Unsubscribe(name="build", from_handle=f"p{number}") for number in range(5)),
)
"""They fill slot after slot, grow into a file of one long line, and shrink back into slots."""


def subscribed_after(count: int) -> dict[str, tuple[str | None, bool]]:
    """Return the subscriptions after so many requests."""
    found: dict[str, tuple[str | None, bool]] = {}
    for request in REQUESTS[:count]:
        match request:
            case Subscribe(from_handle=str(handle)):
                found[handle] = (request.pattern, request.only_failures)
            case Unsubscribe(from_handle=str(handle)):
                del found[handle]
    return found


@attrs.frozen
class Subscriptions:
    """Subscribing, changing, leaving, through the real keeper of subscriptions."""

    name: str = "subscription change"
    image: Image = attrs.field(factory=lambda: SPAWNED)
    tables: tuple[FaultTable, ...] = (JOURNAL, RUNTIME)
    subjects: tuple[str, ...] = ("SubscribedFront",)
    recovers_durably: bool = True
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        spec = SupervisorSpec(
            name="root",
            children=(
                SupervisorSpec(name="inboxes", dynamic=True),
                ChildSpec.of(
                    "router",
                    InboxRouter,
                    directory=Path("/state/inboxes"),
                    archive=message_archive(Path("/state/archive"), world.flusher.disk),
                    supervisor="root/inboxes",
                    flusher=world.flusher,
                ),
                ChildSpec.of("front", SubscribedFront, world=world),
            ),
        )

        async def live() -> None:
            async with world.simulation.open_system(spec) as system:
                for request in REQUESTS[len(world.evidence.confirmed) :]:
                    world.tries(request)
                    front: Ref[Any] = system.ref("root/front")
                    await until_done(partial(front.ask, request))
                    world.confirm(request)

        await until_done(live)

    def recover(self, disk: SimulatedDisk) -> dict[str, tuple[str | None, bool]]:
        at_once(partial(_open_wakes, SimulatedFlusher(disk)))
        note = Note.open(FILES.subscribers, SimulatedFlusher(disk))
        note.close()
        found, _ = restored(note.load())
        return {
            each.handle: (
                None if each.filter.pattern is None else each.filter.pattern.source,
                each.filter.only_failures,
            )
            for each in found.by_key.values()
        }

    def check(
        self, evidence: Evidence, found: dict[str, tuple[str | None, bool]], *, killed: bool
    ) -> Iterator[str]:
        confirmed, tried = in_doubt(evidence)
        if found not in [subscribed_after(count) for count in range(confirmed, tried + 1)]:
            yield f"{sorted(found)} subscribe after {confirmed} confirmed and {tried} begun changes"


CHANGES: tuple[tuple[str, str], ...] = (
    ("add", "one"),
    ("add", "two"),
    ("remove", "one"),
    ("add", "three"),
    ("remove", "two"),
)


def open_after(count: int) -> list[str]:
    """Return the open terminals after so many changes."""
    found: set[str] = set()
    for what, name in CHANGES[:count]:
        found = found | {name} if what == "add" else found - {name}
    return sorted(found)


@attrs.frozen
class OpenTerminals:
    """The names of the open terminals."""

    name: str = "workspace save"
    image: Image = attrs.field(factory=lambda: STATE)
    tables: tuple[FaultTable, ...] = (TERMINALS,)
    subjects: tuple[str, ...] = ()
    recovers_durably: bool = True
    shows_only_durable: bool = True
    path: Path = Path("/state/workspace.json")

    async def play(self, world: World) -> None:
        async def live() -> None:
            workspace = await OpenNames.open(self.path, world.flusher)
            for what, name in CHANGES[len(world.evidence.confirmed) :]:
                world.tries((what, name))
                act = workspace.add if what == "add" else workspace.remove
                await until_done(partial(act, name))
                world.confirm((what, name))

        await over_lives(live)

    def recover(self, disk: SimulatedDisk) -> list[str]:
        async def names() -> list[str]:
            return (await OpenNames.open(self.path, SimulatedFlusher(disk))).names

        return at_once(names)

    def check(self, evidence: Evidence, found: list[str], *, killed: bool) -> Iterator[str]:
        confirmed, tried = in_doubt(evidence)
        if found not in [open_after(count) for count in range(confirmed, tried + 1)]:
            yield f"{found} are open after {confirmed} confirmed and {tried} begun changes"


@attrs.frozen
class NamedWorkspaces:
    """Workspaces made and closed, through their real store; one has a long directory."""

    name: str = "workspaces"
    image: Image = attrs.field(factory=lambda: STATE)
    tables: tuple[FaultTable, ...] = (JOURNAL,)
    subjects: tuple[str, ...] = ()
    recovers_durably: bool = True
    shows_only_durable: bool = True
    path: Path = Path("/state/workspaces.json")
    directories: tuple[str, ...] = ("/a", "/" + "d" * 5000, "/c")

    async def play(self, world: World) -> None:
        async def live() -> None:
            store = WorkspaceStore(self.path, world.flusher)
            try:
                await store.confirm()
                await self._create_all(world, store)
            finally:
                store.close()

        await over_lives(live)

    async def _create_all(self, world: World, store: WorkspaceStore) -> None:
        while (number := len(store.now.by_key)) < len(self.directories):
            world.tries(number)
            await until_done(lambda: store.change(self._with_one_more))
            world.confirm(number)

    def _with_one_more(self, before: WorkspacesByName) -> tuple[WorkspacesByName, None]:
        number = len(before.by_key)
        return before.created(f"w{number}", self.directories[number]), None

    def recover(self, disk: SimulatedDisk) -> list[tuple[str, str]]:
        store = WorkspaceStore(self.path, SimulatedFlusher(disk))
        at_once(store.confirm)
        store.close()
        return [(each.name, each.directory) for each in store.now.by_key.values()]

    def check(
        self, evidence: Evidence, found: list[tuple[str, str]], *, killed: bool
    ) -> Iterator[str]:
        confirmed, tried = in_doubt(evidence)
        every = [(f"w{number}", each) for number, each in enumerate(self.directories)]
        if found not in [every[:count] for count in range(confirmed, tried + 1)]:
            yield f"{len(found)} workspaces exist of {confirmed} confirmed and {tried} begun"

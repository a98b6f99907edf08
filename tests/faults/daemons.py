"""A daemon's terminals and inboxes on a simulated machine and disk, and the state after a restart.

A machine outlives its daemons: processes that a killed one left run when the next one starts,
unless the power failed.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import attrs
import trio

from actors import System
from actors.simulate import Simulation, simulate
from aegis.app import daemon_tree
from aegis.errors import NotFound
from aegis.journal.reader import LedgerReader
from aegis.protocol import terminals as api
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.inboxes import ReadInbox, WaitInbox
from aegis.state.root import StatePaths
from aegis.terminals.meta import load_settings
from aegis.terminals.settings import TerminalFiles
from tests.chaos.checking.matching import tokens_in
from tests.chaos.histories.tree import SHELL_FILES
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import ProcessDied, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.reproducible import reproducible

T = TypeVar("T")

STATE = StatePaths(Path("/"))
"""The root directory exists on the real machine as well, as a shell's directory must."""

TERMINALS = STATE.terminals
EMPTY: Image = {"/": None, "/.aegis": None, "/.aegis/state": None}
READER = "reviewer"

SETTLES_S = 3.0
"""The time, in seconds, in which a started daemon has written and sent everything pending."""


@attrs.frozen(kw_only=True)
class FoundTerminal:
    """The data of a daemon about one terminal. ``columns`` is None if it is not open."""

    life: str
    columns: int | None
    subscribers: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]
    damaged: int


OF_BEFORE = ".old@"
"""The end of the tokens of commands that ran before the scenario began."""


@attrs.frozen(kw_only=True)
class Found:
    """The state of a daemon: its terminals, the reader's messages, earlier processes.

    ``failed`` are terminals that it could not start, ``doomed`` the remains of a purge. ``tokens``
    are the tokens of earlier commands of which any file of a terminal holds a word: an invalid slot
    of a note may hold one of a later command, and is shown to no client.
    """

    shelves: Mapping[str, FoundTerminal]
    failed: tuple[str, ...]
    messages: tuple[Mapping[str, Any], ...]
    left: tuple[str, ...]
    doomed: tuple[str, ...]
    tokens: tuple[str, ...]


@attrs.frozen
class Place:
    """A machine, and real directories for the start-up files of its shells."""

    simulation: Simulation
    machine: Machine
    scratch: Path

    @asynccontextmanager
    async def daemon(self, disk: SimulatedDisk) -> AsyncIterator[System]:
        """Return a daemon on this disk; it dies with the process of the disk."""
        host = SimulatedHost(self.machine, self.scratch)
        disk.on_death = host.kill
        tree = daemon_tree(
            STATE, flusher=SimulatedFlusher(disk), host=host, shell_file_limit=SHELL_FILES
        )
        async with self.simulation.open_system(tree) as system:
            yield system

    async def killed_when(self, disk: SimulatedDisk, work: Callable[[System], Awaitable[T]]) -> T:
        """Return the result of ``work`` on a daemon that is killed right after it."""
        found = []
        try:
            async with self.daemon(disk) as system:
                found.append(await work(system))
                raise disk.die()
        except* ProcessDied:
            if not found:
                raise
        return found[0]

    async def examine(self, disk: SimulatedDisk) -> Found:
        """Return the state of the next daemon on this disk; it is then killed."""
        before = {each.pid for each in self.machine.alive}

        async def look(system: System) -> Found:
            await trio.sleep(SETTLES_S)
            left = tuple(str(each.info) for each in self.machine.alive if each.pid in before)
            return await found_by(system, disk, left)

        return await self.killed_when(disk, look)


@asynccontextmanager
async def place(simulation: Simulation, chance: Random) -> AsyncIterator[Place]:
    """Run a machine inside the block."""
    with reproducible(chance), TemporaryDirectory() as scratch:
        async with trio.open_nursery() as nursery:
            yield Place(simulation, Machine(nursery, chance), Path(scratch))
            nursery.cancel_scope.cancel()


def recovered(disk: SimulatedDisk) -> Found:
    """Return the state of a daemon after a loss of power: no earlier process is left."""

    async def play(simulation: Simulation) -> Found:
        async with place(simulation, simulation.chance) as here:
            return await here.examine(disk)

    return simulate(play, seed=_seed_of(cached_image(disk.model))).value


async def ask(system: System, request: Any) -> Any:
    """Send a request to the actor for this kind of request. Raises ``AegisError``."""
    to = "inbox-router" if isinstance(request, ReadInbox | WaitInbox) else "terminal-directory"
    return await system.ref(f"root/{to}").ask(request, timeout=120)


def _seed_of(image: Image) -> int:
    """Return a seed for an image: two incarnations on different images draw different names."""
    return zlib.crc32(repr(sorted(image.items())).encode())


async def found_by(system: System, disk: SimulatedDisk, left: Iterable[str]) -> Found:
    """Return the replies of this daemon to its clients, and the files beside its terminals."""
    listed = (await ask(system, api.ListTerminals())).result
    names = disk.list_directory(TERMINALS) if disk.is_directory(TERMINALS) else []
    open_now = {each.name: each for each in listed if each.state != "failed"}
    shelves = {}
    for name in sorted({*open_now, *(name for name in names if not name.startswith("."))}):
        shelves[name] = await _shelf(system, disk, name, open_now.get(name))
    read = ReadInbox(from_handle=READER, unread=False, limit=1000)
    messages: Any = to_plain(await ask(system, read))["messages"]
    return Found(
        shelves=shelves,
        failed=tuple(sorted(each.name for each in listed if each.state == "failed")),
        # In the order of each terminal; the order between two terminals is not promised.
        messages=tuple(sorted(map(_undated, messages), key=lambda each: str(each["sender"]))),
        left=tuple(left),
        doomed=tuple(name for name in names if name.startswith(".")),
        tokens=tokens_below(TERMINALS, cached_image(disk.model)),
    )


def tokens_below(directory: Path, image: Image) -> tuple[str, ...]:
    """Return the tokens of earlier commands in all files below a directory, sorted."""
    files = [data for path, data in image.items() if data and Path(path).is_relative_to(directory)]
    found = {each for data in files for each in tokens_in(data.decode(errors="ignore"))}
    return tuple(sorted(each for each in found if each.endswith(OF_BEFORE)))


async def _shelf(
    system: System, disk: SimulatedDisk, name: str, info: api.TerminalInfo | None
) -> FoundTerminal:
    files = TerminalFiles(TERMINALS / name)
    settings = load_settings(disk, files, STATE.root)
    try:
        reading = await ask(system, api.ReadRecords(name=name, since_seq=-1))
    except NotFound:
        reading = api.RecordList(result=[])
    plain: Any = to_plain(reading)["result"]
    return FoundTerminal(
        life="" if settings is None else settings.life,
        columns=None if info is None else info.cols,
        subscribers=() if info is None else tuple(info.subscribers),
        records=tuple(map(without_the_moment, plain)),
        damaged=LedgerReader(files.ledger, disk=disk).onward(0).damaged_count,
    )


def _undated(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a wake without its time, which is that of its record."""
    return {key: each for key, each in message.items() if key not in ("timestamp", "text")}


def without_the_moment(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record without the time at which its kill was found: it differs per recovery."""
    return {**record, "finished_at": None} if record["killed_by_restart"] else record

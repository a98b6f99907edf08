"""A directory of terminals with workers: systems of one process, connected as processes are.

A worker that is killed here leaves what a real one leaves: its shells lose their terminals, and
whatever they started goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

import attrs
import trio
import trio.testing

from actors import Actor, ActorCrashed, ChildSpec, Ref, Request, SupervisorSpec, System, open_system
from actors.messages import message_classes
from actors.nodes.links.vocabulary import Vocabulary
from actors.nodes.peer import PeerProcess
from actors.nodes.workers.hosted_system import hosted_system
from aegis import errors
from aegis.errors import AegisError
from aegis.journal.flusher import Flusher
from aegis.journal.old_files import ARCHIVE_BYTES
from aegis.journal.raw_log import LIMIT_BYTES
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_table import OwnedProcess
from aegis.protocol import terminals as api
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.terminals.directory.directory import DirectoryMessage, EndAllTerminals, TerminalDirectory
from aegis.terminals.directory.hosting import TerminalHost, host_tree
from aegis.terminals.directory.placed_subtrees import WORKERS
from aegis.terminals.front_port import FrontMessage
from aegis.terminals.shell.messages import ShellMessage
from tests.actors.nodes.pair import MemoryWire, wires
from tests.e2e.harness import GUARD_S, PLAIN_BASHRC, processes_with

T = TypeVar("T")

DIRECTORY = "root/late/directory"
INBOX = "root/inbox"


def _answers(cls: type) -> Iterator[type]:
    """The classes that a request is answered with."""
    for above in cls.__mro__:
        for base in getattr(above, "__orig_bases__", ()):
            yield from (each for each in get_args(base) if attrs.has(each))


def _vocabulary() -> Vocabulary:
    unions: Iterable[Any] = (DirectoryMessage, FrontMessage, ShellMessage, Deliver)
    told = {cls for union in unions for cls in message_classes(union)} | TerminalHost.accepts()
    answers = {answer for cls in told for answer in _answers(cls)}
    refusals = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, AegisError)
    ]
    return Vocabulary(sorted(told | answers, key=lambda cls: cls.__name__), refusals)


VOCABULARY = _vocabulary()


class Inbox(Actor[Deliver]):
    """Takes all that comes. ``ids`` are those of what came, in their order."""

    def __init__(self, *, ids: list[str]) -> None:
        self._ids = ids

    async def receive(self, message: Deliver) -> None:
        if message.id not in self._ids:
            self._ids.append(message.id)
        self.reply(message, Receipt(id=message.id, status="queued", position=1))


class WorkerProcesses(OsProcessHost):
    """The machine as a worker sees it; one that is dead ends nothing any more."""

    is_dead = False

    async def all_processes(self) -> Sequence[OwnedProcess]:
        return () if self.is_dead else await super().all_processes()


@attrs.define(eq=False)
class Worker:
    """One life of a worker."""

    peer: PeerProcess
    host: WorkerProcesses
    wire: MemoryWire
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    ended: trio.Event = attrs.field(factory=trio.Event)
    system: System | None = None


@attrs.define(eq=False)
class Daemon:
    """The directory with its workers. ``wakes`` are the ids of what came to the inbox."""

    root: Path
    system: System
    nursery: trio.Nursery
    wakes: list[str]
    workers: dict[str, Worker] = attrs.field(factory=dict)

    @property
    def directory(self) -> Ref[Any]:
        return self.system.ref(DIRECTORY)

    async def spawn(self, name: str, **arguments: Any) -> api.TerminalInfo:
        request = api.SpawnTerminal(name=name, env={"HOME": str(self.root)}, **arguments)
        return await self.directory.ask(request, timeout=GUARD_S)

    async def infos(self) -> dict[str, api.TerminalInfo]:
        found = await self.directory.ask(api.ListTerminals(), timeout=GUARD_S)
        return {info.name: info for info in found.result}

    async def ask(self, name: str, request: Request[T]) -> T:
        """As clients do: the front is asked where there is one, else the directory."""
        return await self.owner(name).ask(request, timeout=GUARD_S)

    def owner(self, name: str) -> Ref[Any]:
        front = self.system.registry.find("terminal", name)
        return self.directory if front is None or front.is_stopped else front

    async def run(self, name: str, cmd: str, timeout: float = GUARD_S) -> api.CommandRecord:
        return await self.ask(name, api.RunCommand(name=name, cmd=cmd, timeout=timeout))

    async def records(self, name: str) -> list[api.CommandRecord]:
        """By the directory, which waits for a terminal that is being started again."""
        request = api.ReadRecords(name=name, since_seq=-1)
        while True:
            try:
                return (await self.directory.ask(request, timeout=GUARD_S)).result
            except ActorCrashed:
                continue

    # Workers.

    async def start_worker(self, name: str) -> None:
        """Return when it has terminals."""
        above, below = wires()
        peer = PeerProcess(
            self.system,
            name=f"worker {name}",
            root=f"{WORKERS}/{name}",
            vocabulary=VOCABULARY,
            exports=lambda group, _: group == "service",
        )
        worker = self.workers[name] = Worker(peer, WorkerProcesses(), above)
        peer.begin()
        self.nursery.start_soon(self._live, name, worker, below)
        self.nursery.start_soon(peer.carry, above)
        await peer.ready.wait()

    async def _live(self, name: str, worker: Worker, wire: MemoryWire) -> None:
        spec = SupervisorSpec(
            name=name,
            children=host_tree(
                node=name,
                path=f"{WORKERS}/{name}",
                inboxes=INBOX,
                directory=DIRECTORY,
                flusher=Flusher(),
                shell_file_limit=1024,
                raw_log_bytes=LIMIT_BYTES,
                archive_bytes=ARCHIVE_BYTES,
                host=worker.host,
            ),
        )
        with worker.scope:
            async with hosted_system(
                wire,
                spec,
                above=WORKERS,
                vocabulary=VOCABULARY,
                exports=lambda group, _: group != "service",
            ) as worker.system:
                await trio.sleep_forever()
        worker.ended.set()

    async def kill_worker(self, name: str) -> None:
        """As by a signal 9; the daemon hears of it when it is dead."""
        worker = self.workers.pop(name)
        worker.host.is_dead = True
        worker.wire.cut()
        worker.scope.cancel()
        with trio.CancelScope(shield=True):
            await worker.ended.wait()
        worker.peer.end("killed by signal 9", crashed=True)


@asynccontextmanager
async def open_daemon(
    root: Path, *workers: str, started: Sequence[str] | None = None, restore: bool = True
) -> AsyncIterator[Daemon]:
    """A daemon that has these ``workers``; those in ``started`` (None: all) are up."""
    (root / ".bashrc").write_text(PLAIN_BASHRC)
    wakes: list[str] = []
    spec = SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("inbox", Inbox, ids=wakes),
            SupervisorSpec(name="terminals", dynamic=True),
            SupervisorSpec(name="late", dynamic=True),
        ),
    )
    with trio.fail_after(2 * GUARD_S):
        async with trio.open_nursery() as nursery, open_system(spec) as system:
            daemon = Daemon(root, system, nursery, wakes)
            for name in workers if started is None else started:
                await daemon.start_worker(name)
            late = system.supervisor("root/late")
            await late.start_child(
                ChildSpec.of(
                    "directory",
                    TerminalDirectory,
                    root=root,
                    directory=root / "terminals",
                    workspace=root / "workspace.json",
                    restore=restore,
                    supervisor="root/terminals",
                    flusher=Flusher(),
                    inboxes=INBOX,
                    shell_file_limit=1024,
                    host=OsProcessHost(),
                    workers=workers,
                )
            )
            yield daemon
            await daemon.directory.ask(EndAllTerminals(), timeout=GUARD_S)
            # Not after a failure: the system's end would raise Cancelled in its place.
            nursery.cancel_scope.cancel()


def shells(daemon: Daemon, name: str = "") -> list[str]:
    """The live processes of a terminal, or of all."""
    return processes_with(f"AEGIS_TERMINAL={daemon.root}/{name}")


async def printed(daemon: Daemon, name: str, line: str) -> None:
    """Wait until the raw log has this line, which from then on survives the worker."""
    raw = daemon.root / "terminals" / name / "raw.log"
    while f"{line}\r\n".encode() not in await trio.to_thread.run_sync(raw.read_bytes):
        await trio.testing.wait_all_tasks_blocked(0.01)


async def state_is(daemon: Daemon, name: str, state: str) -> api.TerminalInfo:
    """Wait until the list shows this."""
    with trio.fail_after(GUARD_S):
        while (info := (await daemon.infos())[name]).state != state:
            await trio.testing.wait_all_tasks_blocked(0.01)
    return info

"""A whole daemon inside the test's own process, where a plan of faults can be armed at any moment.

Its tree is the one of ``aegis-actors up``, with real files, shells and sockets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio
import trio.testing

from actors import ActorCrashed, LifeCycleEvent, Node, Ref, Request, System, open_system
from aegis import app, lifetime
from aegis.agents.directory.programs import Programs
from aegis.configuration.sections import Configuration
from aegis.journal.flusher import Flusher
from aegis.keyring import Keyring
from aegis.path_text import text_of_path
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.protocol import terminals as api
from aegis.servers.access.auth import open_keys
from aegis.servers.gateway.open_connections import OpenConnections
from aegis.servers.gateway.sockets import socket_path
from aegis.servers.serving import Address, limits_of_system
from aegis.settings import DaemonSettings
from aegis.state.registration import claim_state
from aegis.state.root import StatePaths
from aegis.workflows.desk import WorkflowSettings
from tests.e2e.harness import GUARD_S, PLAIN_BASHRC

T = TypeVar("T")


@attrs.define
class DaemonInside:
    """A running daemon. ``events`` is what its observer was told.

    What ``on_stop`` gives lasts as long as the terminals are being ended, when all stops.
    """

    root: Path
    home: Path
    state: StatePaths
    system: System
    address: Address
    events: list[LifeCycleEvent]
    on_stop: Callable[[], AbstractContextManager[object]] = nullcontext

    async def spawn(self, name: str, **arguments: Any) -> api.TerminalInfo:
        return await self.directory.ask(
            api.SpawnTerminal(name=name, env={"HOME": str(self.home)}, **arguments),
            timeout=GUARD_S,
        )

    @property
    def directory(self) -> Ref[Any]:
        found = self.system.registry.find("service", "terminals")
        assert found is not None
        return found

    def front(self, name: str) -> Ref[Any]:
        found = self.system.registry.find("terminal", name)
        assert found is not None
        return found

    async def ask(self, name: str, request: Request[T]) -> T:
        """What the terminal answers; after a crash of its front the question is put again."""
        while True:
            try:
                return await self.front(name).ask(request, timeout=GUARD_S)
            except ActorCrashed:
                continue

    async def records(self, name: str) -> list[api.CommandRecord]:
        return (await self.ask(name, api.ReadRecords(name=name, since_seq=-1))).result

    async def has_printed(self, name: str, line: str) -> None:
        """Wait until this line is in the terminal's raw log: the kernel brings it in its time."""
        raw, printed = self.state.terminals / name / "raw.log", f"{line}\r\n".encode()
        with trio.fail_after(GUARD_S):
            while printed not in await trio.to_thread.run_sync(raw.read_bytes):
                await trio.testing.wait_all_tasks_blocked(0.01)

    def node(self, path: str) -> Node:
        """A place of the tree, by its path below the root."""
        node = self.system.tree()
        for part in path.split("/"):
            [node] = [child for child in node.children if child.name == part]
        return node


@asynccontextmanager
async def daemon_inside(directory: Path) -> AsyncIterator[DaemonInside]:
    """A daemon for a root below ``directory``; when it has stopped, nothing of it is left."""
    root, home = directory / "root", directory / "home"
    for each in (root, home):
        each.mkdir(exist_ok=True)
    (home / ".bashrc").write_text(PLAIN_BASHRC)
    settings, state = DaemonSettings(root=root, port=0), StatePaths(root)
    state.directory.mkdir(parents=True, exist_ok=True)
    seals = claim_state(state)
    keys = open_keys(state.directory, seals)
    address = Address("127.0.0.1", 0, socket_path(state.directory), fall_back=False)
    events: list[LifeCycleEvent] = []
    stop = trio.Event()
    keyring = Keyring(keys, address, OpenConnections(limits_of_system()), state, stop, seals)
    programs = Programs(
        configuration=Configuration(),
        keys=keyring,
        scan=ProcessScan(OsProcessHost()),
        root=text_of_path(root),
    )
    tree = app.daemon_tree(
        state,
        flusher=Flusher(),
        host=OsProcessHost(),
        shell_file_limit=1024,
        agents=app.agent_children(
            state,
            flusher=Flusher(),
            programs=programs,
            workflows=WorkflowSettings(root=programs.root, host="here"),
        ),
        servers=(
            app.push_child(state, keyring, Flusher()),
            *app.server_children(root, keyring, stop, Configuration(), programs.rights),
        ),
    )
    async with open_system(tree, observer=events.append) as system:
        app._publish_address(settings, state, keyring, None)
        inside = DaemonInside(root, home, state, system, address, events)
        yield inside
        with inside.on_stop():
            await lifetime.end_terminals(system)

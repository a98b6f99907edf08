"""The terminals of an agent that is not there: real processes, and the calls that it would make."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import SupervisorSpec, System, open_system
from aegis.agents.drivers.cookie import DriverCookies, cookie_of_driver
from aegis.agents.drivers.terminals.service import AgentTerminals, TerminalPlan
from aegis.agents.sessions.command_outputs import CommandOutputs
from aegis.journal.flusher import Flusher
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import ProcessInfo
from aegis.processes.reaper import find_processes
from aegis.protocol.agent_events import AgentEvent, TerminalEnded

GUARD_S = 60.0

KILLED = {"exitCode": None, "signal": "SIGKILL"}


@attrs.frozen(kw_only=True)
class World:
    """Terminals in a system of their own, and the events of their releases."""

    terminals: AgentTerminals
    system: System
    cwd: Path
    events: list[AgentEvent]
    outputs: CommandOutputs

    async def create(self, command: str, **params: Any) -> str:
        """Create a terminal; return its id."""
        result = await self.terminals.serve("terminal/create", {"command": command, **params})()
        (id_,) = result.values()
        assert isinstance(id_, str)
        return id_

    async def call(self, name: str, id_: str, within_s: float = GUARD_S) -> Mapping[str, Any]:
        """Call one of the other methods."""
        with trio.fail_after(within_s):
            return await self.terminals.serve(f"terminal/{name}", {"terminalId": id_})()

    async def wait(self, id_: str, within_s: float = GUARD_S) -> Mapping[str, Any]:
        return await self.call("wait_for_exit", id_, within_s)

    async def output(self, id_: str) -> str:
        return str((await self.call("output", id_))["output"])

    async def printed(self, id_: str, text: str) -> str:
        """Wait until the output contains a text; return the output."""
        with trio.fail_after(GUARD_S):
            while text not in (output := await self.output(id_)):  # noqa: ASYNC110
                await trio.sleep(0.01)
        return output

    async def run(self, command: str, **params: Any) -> tuple[Mapping[str, Any], str]:
        """Run a command to its end; return its status and output."""
        id_ = await self.create(command, **params)
        status = await self.wait(id_)
        return status, await self.output(id_)

    def processes(self) -> list[ProcessInfo]:
        """Return the processes of all terminals, guards included."""
        return find_processes([], DriverCookies(root=str(self.cwd)))

    @property
    def ends(self) -> list[TerminalEnded]:
        return [each for each in self.events if isinstance(each, TerminalEnded)]


@asynccontextmanager
async def terminals_in(cwd: Path, **environment: str) -> AsyncIterator[World]:
    """Serve terminals until the end of the block; no process is left."""
    events: list[AgentEvent] = []
    spec = SupervisorSpec(name="root", children=(SupervisorSpec(name="terminals", dynamic=True),))
    outputs = CommandOutputs(cwd / "state", Flusher())
    plan = TerminalPlan(
        supervisor="root/terminals",
        launch=1,
        cookie=cookie_of_driver(str(cwd), secrets.token_hex(4), 1),
        cwd=str(cwd),
        environment={"PATH": os.environ["PATH"], **environment},
        scan=ProcessScan(OsProcessHost()),
        outputs=outputs,
    )
    async with open_system(spec) as system:
        terminals = AgentTerminals(plan)
        terminals.begin(system, events.append)
        world = World(terminals=terminals, system=system, cwd=cwd, events=events, outputs=outputs)
        yield world
        await terminals.end()
        assert system.supervisor("root/terminals").names == []
    assert world.processes() == []

"""The ACP machine of the driver, connected to a real agent; its terminals are served."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import trio

from aegis.agents.drivers.acp.machine import Acp
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import Beginning, Emit, Failed, Output, Ready, Serve, Write
from aegis.protocol.agent_events import (
    AgentEvent,
    PermissionAnswer,
    RequestOpened,
    Result,
)
from tests.agents_real.line_process import LineProcess

OPTIONS = {
    "claude-acp": AcpOptions(reports_cost=True, session_options=()),
    "codex-acp": AcpOptions(asking_modes=("workspace-write",)),
    "gemini": AcpOptions(auth="gemini-api-key"),
    "kimi": AcpOptions(),
    "opencode": AcpOptions(asking_modes=("build",), reports_cost=True),
}


class MachineFailed(Exception):
    """The machine reported that the agent cannot be used."""


def _allow_once() -> PermissionAnswer:
    return PermissionAnswer(kind="allow_once")


@attrs.define
class MachinePeer:
    """A machine and its process; ``on_request`` answers permissions, or leaves them open."""

    machine: Acp
    child: LineProcess
    directory: Path
    on_request: PermissionAnswer | None = attrs.field(factory=_allow_once)
    outputs: list[Output] = attrs.field(factory=list)
    _turns: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))
    _terminals: dict[str, subprocess.CompletedProcess[bytes]] = attrs.field(factory=dict)

    @property
    def events(self) -> list[AgentEvent]:
        return [each.event for each in self.outputs if isinstance(each, Emit)]

    async def perform(self, outputs: list[Output]) -> None:
        """Carry out the outputs, and those that follow from answers to them."""
        self.outputs += outputs
        for each in outputs:
            match each:
                case Write(frame):
                    await self.child.send(frame)
                case Serve(id=key, method=method, params=params):
                    result = await self.serve(method, dict(params))
                    await self.perform(self.machine.served(key, result, ""))
                case Emit(RequestOpened(id=key)) if self.on_request is not None:
                    await self.perform(self.machine.answer(key, self.on_request))
                case Failed(reason=reason):
                    raise MachineFailed(reason)

    async def until(self, found: Callable[[Output], bool]) -> Output:
        """Pass frames to the machine until an output fits, and return it."""
        while True:
            seen = len(self.outputs)
            await self.perform(self.machine.receive(await self.child.next()))
            for each in self.outputs[seen:]:
                if found(each):
                    return each

    async def begin(self) -> Ready:
        await self.perform(self.machine.begin())
        ready = await self.until(lambda each: isinstance(each, Ready))
        assert isinstance(ready, Ready)
        return ready

    async def turn(self, text: str) -> Result:
        await self.perform(self.machine.send(f"t{next(self._turns)}", text))
        return await self.result()

    async def result(self) -> Result:
        ended = await self.until(lambda each: isinstance(event_of(each), Result))
        event = event_of(ended)
        assert isinstance(event, Result)
        return event

    async def serve(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Serve a terminal whose command ends at once."""
        terminal = str(params.get("terminalId"))
        match method:
            case "terminal/create":
                terminal = f"term_{len(self._terminals) + 1}"
                self._terminals[terminal] = await trio.run_process(
                    ["sh", "-c", params["command"]],
                    cwd=self.directory,
                    capture_stdout=True,
                    check=False,
                )
                return {"terminalId": terminal}
            case "terminal/wait_for_exit":
                return {"exitCode": self._terminals[terminal].returncode, "signal": None}
            case "terminal/output":
                output = self._terminals[terminal].stdout.decode()
                return {"output": output, "truncated": False}
        return {}


def event_of(output: Output) -> AgentEvent | None:
    return output.event if isinstance(output, Emit) else None


def machine_of(cli: str, directory: Path, url: str, conversation: str | None = None) -> Acp:
    beginning = Beginning(cwd=str(directory), mcp_url=url, conversation=conversation)
    return Acp(beginning, OPTIONS[cli])

"""A machine and the test that plays its agent, frame by frame."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from aegis.agents.drivers.acp.machine import Acp
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import (
    AgentFailed,
    Beginning,
    Emit,
    Frame,
    OrderRefused,
    Output,
    Write,
)
from aegis.protocol.agent_events import AgentEvent, RequestOpened
from tests.aegis.agents.drivers.acp.player import URL, first_result
from tests.aegis.agents.drivers.acp.summary import OPTIONS

E = TypeVar("E")

PERMISSION_OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Wire:
    """The wire of one machine: every output so far, and the requests that await a response."""

    def __init__(self, machine: Acp) -> None:
        self.machine = machine
        self.outputs: list[Output] = []
        self.pending: list[Frame] = []

    def note(self, outputs: list[Output]) -> list[Output]:
        self.outputs += outputs
        for each in outputs:
            if isinstance(each, Write) and "id" in each.frame and "method" in each.frame:
                self.pending.append(each.frame)
        return outputs

    def receive(self, **frame: Any) -> list[Output]:
        return self.note(self.machine.receive({"jsonrpc": "2.0", **frame}))

    def update(self, _kind: str, /, **fields: Any) -> list[Output]:
        params = {"sessionId": "ses", "update": {"sessionUpdate": _kind, **fields}}
        return self.receive(method="session/update", params=params)

    def reply(self, method: str, result: dict[str, Any] | None = None) -> list[Output]:
        return self.receive(id=self._take(method)["id"], result=result or {})

    def fail(self, method: str, code: int = -32603, message: str = "broken") -> list[Output]:
        error = {"code": code, "message": message}
        return self.receive(id=self._take(method)["id"], error=error)

    def _take(self, method: str) -> Frame:
        found = next(each for each in self.pending if each["method"] == method)
        self.pending.remove(found)
        return found

    def ask(self, id_: int | str, **params: Any) -> RequestOpened:
        """Ask for a permission and return the request that is shown."""
        call = {"toolCallId": "c1", "title": "touch a", "rawInput": {"command": "touch a"}}
        params = {"toolCall": call, "options": PERMISSION_OPTIONS, "sessionId": "ses", **params}
        outputs = self.receive(id=id_, method="session/request_permission", params=params)
        return only(outputs, RequestOpened)

    def turn(self, uuid: str = "t1", text: str = "do it") -> list[Output]:
        return self.note(self.machine.send(uuid, text))

    @property
    def events(self) -> list[AgentEvent]:
        return events(self.outputs)


def events(outputs: list[Output]) -> list[AgentEvent]:
    return [each.event for each in outputs if isinstance(each, Emit)]


def frames(outputs: list[Output]) -> list[Frame]:
    return [each.frame for each in outputs if isinstance(each, Write)]


def refusals(outputs: list[Output]) -> list[str]:
    return [each.reason for each in outputs if isinstance(each, OrderRefused)]


def failure(outputs: list[Output]) -> AgentFailed:
    (found,) = [each for each in outputs if isinstance(each, AgentFailed)]
    return found


def only(outputs: list[Output], kind: type[E]) -> E:
    (found,) = [each for each in events(outputs) if isinstance(each, kind)]
    return found


def initialized(agent: str) -> dict[str, Any]:
    return copy.deepcopy(first_result(f"acp_{agent}_turn", "initialize"))


def session(agent: str) -> dict[str, Any]:
    return {**copy.deepcopy(first_result(f"acp_{agent}_turn", "session/new")), "sessionId": "ses"}


def machine(agent: str = "claude", options: AcpOptions | None = None, **beginning: Any) -> Acp:
    given = {"cwd": "/w", "mcp_url": URL, **beginning}
    return Acp(Beginning(**given), options or OPTIONS[agent])


def opened(agent: str = "claude", options: AcpOptions | None = None, **beginning: Any) -> Wire:
    """Return the wire of a machine that has sent its session/new."""
    wire = Wire(machine(agent, options, **beginning))
    wire.note(wire.machine.begin())
    wire.reply("initialize", initialized(agent))
    return wire


def ready(agent: str = "kimi", options: AcpOptions | None = None, **beginning: Any) -> Wire:
    """Return the wire of a machine that can take a turn, in the conversation "ses"."""
    wire = opened(agent, options, **beginning)
    result = session(agent)
    wire.reply("session/new", result)
    while wire.pending:
        asked = wire.pending[0]
        for each in result.get("configOptions", []):
            if each["id"] == asked["params"].get("configId"):
                each["currentValue"] = asked["params"]["value"]
        wire.reply(asked["method"], {"configOptions": result.get("configOptions")})
    return wire

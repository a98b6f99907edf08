"""A small client for each of the two protocols, enough to try a CLI."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import attrs
import trio

from tests.agents_real.clis import Cli
from tests.agents_real.line_process import LineProcess
from tests.agents_real.model_server.script import Json

Signal = Callable[[], Awaitable[None]]
"""Returns when a turn is to be interrupted."""


class Refused(Exception):
    """The CLI answered a request with an error."""


@attrs.define
class Turn:
    """One turn, as the client saw it."""

    text: str = ""
    outcome: str = ""
    asked: list[Json] = attrs.field(factory=list)
    """The permissions that were asked for."""


class Peer(Protocol):
    """A session with a CLI."""

    async def begin(self, url: str) -> None:
        """Open the protocol and a session with the MCP server at this URL."""

    async def turn(self, text: str, *, allow: bool = True, interrupt: Signal | None = None) -> Turn:
        """Play one turn to its end; every permission gets the same answer."""


async def _with_interrupt(
    turn: Callable[[], Awaitable[Turn]], when: Signal | None, interrupt: Signal
) -> Turn:
    async def wait_and_interrupt() -> None:
        if when is not None:
            await when()
            await interrupt()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_and_interrupt)
        done = await turn()
        nursery.cancel_scope.cancel()
    return done


@attrs.define
class ClaudePeer:
    """Claude Code over stream-json."""

    child: LineProcess
    _numbers: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    async def begin(self, url: str) -> None:
        servers = {"aegis": {"type": "http", "url": url}}
        fields = {"subtype": "initialize", "mcpServers": servers, "appendSystemPrompt": "PRIMER"}
        name = await self._request(fields)
        while True:
            frame = await self.child.next()
            if frame["type"] == "control_response" and frame["response"]["request_id"] == name:
                break
        if not frame["response"].get("response", {}).get("mcp_servers_applied"):
            raise Refused(str(frame))

    async def _request(self, fields: Json) -> str:
        name = f"r{next(self._numbers)}"
        await self.child.send({"type": "control_request", "request_id": name, "request": fields})
        return name

    async def turn(self, text: str, *, allow: bool = True, interrupt: Signal | None = None) -> Turn:
        name = str(uuid.uuid4())
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        await self.child.send({"type": "user", "message": message, "uuid": name})

        async def stop() -> None:
            await self._request({"subtype": "interrupt"})

        return await _with_interrupt(lambda: self._read_turn(name, allow), interrupt, stop)

    async def _read_turn(self, name: str, allow: bool) -> Turn:
        turn = Turn()
        while True:
            frame = await self.child.next()
            match frame["type"]:
                case "assistant":
                    blocks = frame["message"]["content"]
                    turn.text += "".join(each.get("text", "") for each in blocks)
                case "control_request":
                    turn.asked.append(frame["request"])
                    await self._answer(frame, allow)
                case "result" if name in frame.get("user_message_uuids", ()):
                    turn.outcome = frame["terminal_reason"]
                    return turn

    async def _answer(self, frame: Json, allow: bool) -> None:
        answer: Json = {"behavior": "deny", "message": "Refused by the test."}
        if allow:
            answer = {"behavior": "allow", "updatedInput": frame["request"]["input"]}
        response = {
            "subtype": "success",
            "request_id": frame["request_id"],
            "response": answer,
        }
        await self.child.send({"type": "control_response", "response": response})


@attrs.define
class AcpPeer:
    """An agent over the Agent Client Protocol."""

    cli: Cli
    child: LineProcess
    directory: Path
    session: str = ""
    _numbers: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    async def begin(self, url: str) -> None:
        info = {"name": "aegis", "version": "0"}
        capabilities: Json = {"session": {"configOptions": {"boolean": {}}}}
        await self._call(
            "initialize", protocolVersion=1, clientCapabilities=capabilities, clientInfo=info
        )
        if self.cli.authenticate is not None:
            await self._call("authenticate", methodId=self.cli.authenticate)
        server = {"type": "http", "name": "aegis", "url": url, "headers": []}
        made = await self._call("session/new", cwd=str(self.directory), mcpServers=[server])
        self.session = made["sessionId"]
        if self.cli.mode is not None:
            await self._call(
                "session/set_config_option",
                sessionId=self.session,
                configId="mode",
                value=self.cli.mode,
            )

    async def _call(self, method: str, /, **parameters: object) -> Json:
        return await self._read_answer(await self._request(method, parameters), Turn(), True)

    async def _request(self, method: str, parameters: Json) -> int:
        number = next(self._numbers)
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        await self.child.send(frame)
        return number

    async def turn(self, text: str, *, allow: bool = True, interrupt: Signal | None = None) -> Turn:
        prompt = [{"type": "text", "text": text}]
        parameters = {"sessionId": self.session, "prompt": prompt}
        number = await self._request("session/prompt", parameters)

        async def stop() -> None:
            cancel = {"method": "session/cancel", "params": {"sessionId": self.session}}
            await self.child.send({"jsonrpc": "2.0", **cancel})

        async def read() -> Turn:
            turn = Turn()
            turn.outcome = (await self._read_answer(number, turn, allow))["stopReason"]
            return turn

        return await _with_interrupt(read, interrupt, stop)

    async def _read_answer(self, number: int, turn: Turn, allow: bool) -> Json:
        """Return the result of a request; what comes before it belongs to the turn."""
        while True:
            frame = await self.child.next()
            if "method" in frame and "id" in frame:
                await self._serve(frame, turn, allow)
            elif frame.get("method") == "session/update":
                update = frame["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    turn.text += update["content"].get("text", "")
            elif frame.get("id") == number:
                if "error" in frame:
                    raise Refused(str(frame["error"]))
                result: Json = frame["result"] or {}
                return result

    async def _serve(self, frame: Json, turn: Turn, allow: bool) -> None:
        answer: Json = {"error": {"code": -32601, "message": "not served"}}
        if frame["method"] == "session/request_permission":
            turn.asked.append(frame["params"])
            kind = "allow_once" if allow else "reject_once"
            options = frame["params"]["options"]
            [chosen] = [each["optionId"] for each in options if each["kind"] == kind]
            answer = {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}
        await self.child.send({"jsonrpc": "2.0", "id": frame["id"], **answer})


def peer_of(cli: Cli, child: LineProcess, directory: Path) -> Peer:
    """Return the client for the protocol of a CLI."""
    return AcpPeer(cli, child, directory) if cli.speaks_acp else ClaudePeer(child)

"""The client of ACP's authors, as two editors on one session of ``aegis-actors acp``."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import Team, agents_of, open_request

acp: Any = pytest.importorskip("acp", reason="agent-client-protocol is not installed")

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    if own_daemon.is_running:
        own_daemon.stop()
    assert agents_of(own_daemon) == []


class Face:
    """A client that notes the updates, and asks its person for permissions."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: asyncio.Queue[Any] = asyncio.Queue()
        self.answers: asyncio.Queue[str] = asyncio.Queue()
        self._came = asyncio.Condition()

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        async with self._came:
            self.updates.append(update)
            self._came.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> Any:
        await self.asked.put(tool_call)
        wanted = await self.answers.get()
        [chosen] = [each.option_id for each in options if each.kind == wanted]
        outcome = acp.schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return acp.schema.RequestPermissionResponse(outcome=outcome)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        pass

    def texts(self, kind: str = "agent_message_chunk") -> list[str]:
        return [each.content.text for each in self.updates if each.session_update == kind]

    async def says(self, text: str, kind: str = "agent_message_chunk") -> None:
        async with self._came:
            await asyncio.wait_for(
                self._came.wait_for(lambda: any(text in each for each in self.texts(kind))), GUARD_S
            )


@attrs.frozen
class Connected:
    """A client, its connection, and the process that it has started."""

    face: Face
    agent: Any
    process: Any

    async def prompt(self, text: str) -> str:
        done = await asyncio.wait_for(
            self.agent.prompt(prompt=[acp.text_block(text)], session_id="pm"), GUARD_S
        )
        return str(done.stop_reason)


@asynccontextmanager
async def connected(daemon: DaemonProcess) -> AsyncIterator[Connected]:
    face = Face()
    async with acp.spawn_agent_process(
        face, daemon.program[0], "acp", env=daemon.environment, cwd=daemon.root
    ) as (agent, process):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        await agent.load_session(cwd=str(daemon.root), session_id="pm", mcp_servers=[])
        yield Connected(face, agent, process)


async def off(call: Callable[..., Any], *words: Any) -> Any:
    return await asyncio.to_thread(call, *words)


async def asked(client: Connected) -> Any:
    return await asyncio.wait_for(client.face.asked.get(), GUARD_S)


def test_two_clients_share_a_session_and_its_permissions(team: Team) -> None:
    async def story() -> None:
        async with connected(team.daemon) as one, connected(team.daemon) as other:
            prompt = asyncio.create_task(one.prompt("ASK touch x\nSAY done"))
            await asked(one)
            await asked(other)
            await one.face.answers.put("allow_once")
            assert await prompt == "end_turn"
            await other.face.says("done")
            await other.face.says("answered at another place", "agent_thought_chunk")
            assert "ASK touch x\nSAY done" in other.face.texts("user_message_chunk")
            await other.face.answers.put("reject_once")  # its dialog stays: dropped
            prompt = asyncio.create_task(other.prompt("ASK touch y\nSAY refused"))
            await asked(one)
            await asked(other)
            request = await off(open_request, team)
            answer = ("request", "answer", request["id"], "deny")
            assert (await off(team.daemon.cli, *answer)).returncode == 0
            assert await prompt == "end_turn"
            for each in (one, other):
                await each.face.answers.put("allow_once")
            listed = await one.agent.list_sessions()
            assert [each.title for each in listed.sessions] == ["pm"]

    team.spawn(handle="pm")
    asyncio.run(story())
    assert team.outcomes("pm") == ["completed", "completed"]
    assert team.call("request_list")["requests"] == []


def test_a_killed_client_and_a_killed_daemon(team: Team) -> None:
    async def story() -> None:
        async with connected(team.daemon) as one:
            async with connected(team.daemon) as other:
                lost = asyncio.create_task(other.prompt("ASK touch x\nSAY done"))
                await asked(one)
                await asked(other)
                os.kill(other.process.pid, signal.SIGKILL)
                await one.face.answers.put("allow_once")
                await one.face.says("done")
                lost.cancel()
            prompt = asyncio.create_task(one.prompt("SAY begun\nHANG"))
            await one.face.says("begun")
            await off(team.daemon.kill)
            await off(team.daemon.start, "--port", "0", "--trust")
            with pytest.raises(acp.RequestError, match="interrupted"):
                await prompt
            assert await one.prompt("SAY again") == "end_turn"
            await one.face.says("again")

    team.spawn(handle="pm")
    asyncio.run(story())
    assert team.outcomes("pm") == ["completed", "interrupted", "completed"]

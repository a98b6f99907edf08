"""The driver's machine of the Agent Client Protocol with five real agents, offline."""

from __future__ import annotations

import json

import pytest

from aegis.agents.drivers.harness import Write
from aegis.protocol.agent_events import (
    PermissionAnswer,
    RequestOpened,
    RequestWithdrawn,
    SystemInit,
    ToolResult,
    ToolUse,
)
from tests.agents_real.acp_machine import MachineFailed, MachinePeer, event_of, machine_of
from tests.agents_real.bench import Bench
from tests.agents_real.clis import Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.line_process import started

pytestmark = [pytest.mark.real, pytest.mark.agents]

MOST_TURNS_UNTIL_TOOLS = 8

FORGETFUL = ("gemini",)
"""CLIs that find no conversation of a process that was killed."""


async def test_the_machine_drives_a_real_agent(cli: Cli, bench: Bench) -> None:
    if not cli.speaks_acp:
        pytest.skip("it speaks another protocol")
    try:
        command = bench.namespace.command(*cli.command())
        environment = cli.environment(bench.home, bench.model.url)
    except NotInstalled as error:
        pytest.skip(str(error))
    url = bench.daemon.call("session_new", handle="driven")["url"]
    async with started(command, environment, bench.work) as child:
        peer = MachinePeer(machine_of(cli.name, bench.work, url), child, bench.work)
        ready = await peer.begin()
        assert [each.conversation for each in peer.events if isinstance(each, SystemInit)] == [
            ready.conversation
        ]
        await check_tool(bench, peer)
        await check_permissions(cli, bench, peer)
        await check_interrupts(cli, bench, peer)
        check_frames(peer)
    async with started(command, environment, bench.work) as child:
        machine = machine_of(cli.name, bench.work, url, ready.conversation)
        peer = MachinePeer(machine, child, bench.work)
        if cli.name in FORGETFUL:
            with pytest.raises(MachineFailed, match="did not continue the conversation"):
                await peer.begin()
            return
        assert (await peer.begin()).conversation == ready.conversation
        result = await peer.turn("SAY resumed")
        assert (result.ok, result.text.endswith("resumed")) == (True, True)
        check_frames(peer)


async def check_tool(bench: Bench, peer: MachinePeer) -> None:
    for number in range(MOST_TURNS_UNTIL_TOOLS):
        result = await peer.turn(f"SAY ready {number}")
        assert (result.ok, result.messages) == (True, [f"t{number + 1}"])
        assert f"ready {number}" in result.text
        if any(name.endswith("aegis_term_list") for name in bench.model.requests()[-1]["tools"]):
            break
    result = await peer.turn("CALL aegis_term_list {}\nSAY listed")
    assert (result.ok, "listed" in result.text) == (True, True)
    used = [each for each in peer.events if isinstance(each, ToolUse)]
    done = [each for each in peer.events if isinstance(each, ToolResult)]
    assert {each.id for each in used} == {each.id for each in done}
    assert not any(each.is_error for each in done)


async def check_permissions(cli: Cli, bench: Bench, peer: MachinePeer) -> None:
    allowed, denied = bench.work / "allowed", bench.work / "denied"
    result = await peer.turn(f"{cli.asking.format(file=allowed)}\nSAY made")
    assert (result.ok, "made" in result.text, allowed.exists()) == (True, True, True)
    shown = [each for each in peer.events if isinstance(each, RequestOpened)][-1]
    assert str(allowed) in json.dumps([shown.input, shown.title])
    peer.on_request = PermissionAnswer(kind="deny")
    await peer.turn(f"{cli.asking.format(file=denied)}\nSAY not made")
    assert not denied.exists()


async def check_interrupts(cli: Cli, bench: Bench, peer: MachinePeer) -> None:
    """An interruption ends a turn that asks; the next turn works."""
    peer.on_request = None
    file = bench.work / "interrupted"
    await peer.perform(peer.machine.send("asked", f"{cli.asking.format(file=file)}\nSAY never"))
    await peer.until(lambda each: isinstance(event_of(each), RequestOpened))
    await peer.perform(peer.machine.interrupt())
    result = await peer.result()
    assert (result.messages, result.ok, result.reason) == (["asked"], False, "cancelled")
    assert sum(isinstance(each, RequestWithdrawn) for each in peer.events) == 1
    assert not file.exists()
    peer.on_request = PermissionAnswer(kind="deny")
    result = await peer.turn("SAY continued")
    assert "continued" in result.text


def check_frames(peer: MachinePeer) -> None:
    """No request of the agent was answered twice."""
    written = [each.frame for each in peer.outputs if isinstance(each, Write)]
    answered = [each["id"] for each in written if "method" not in each]
    assert len(set(answered)) == len(answered)

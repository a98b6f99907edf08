"""One session with each agent CLI, offline, with the scripted model and a real daemon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.agents_real.bench import Bench
from tests.agents_real.clis import Cli
from tests.agents_real.footprint import footprint
from tests.agents_real.installed import NotInstalled
from tests.agents_real.line_process import LineProcess, started
from tests.agents_real.model_server.script import Json
from tests.agents_real.peers import Peer, peer_of
from tests.agents_real.results import keep

pytestmark = [pytest.mark.real, pytest.mark.agents]

ENDED = {"completed", "end_turn"}
MOST_TURNS_UNTIL_TOOLS = 8


async def test_it_calls_a_tool_asks_and_can_be_interrupted(cli: Cli, bench: Bench) -> None:
    try:
        command = bench.namespace.command(*cli.command())
        environment = cli.environment(bench.home, bench.model.url)
    except NotInstalled as error:
        pytest.skip(str(error))
    seen: Json = {"package": cli.package.name, "version": cli.package.version}
    url = bench.daemon.call("session_new", handle="tried")["url"]
    began = time.monotonic()
    async with started(command, environment, bench.work) as child:
        peer = peer_of(cli, child, bench.work)
        await peer.begin(url)
        seen["session after"] = f"{time.monotonic() - began:.1f} s"
        await check_tool(bench, peer)
        seen["first tool call after"] = f"{time.monotonic() - began:.1f} s"
        used = footprint(child.process.pid)
        seen["RSS / PSS"] = f"{used.rss} / {used.pss} MiB in {used.processes}"
        seen["denied"] = await check_permissions(cli, bench, peer)
        seen["interrupted"] = await check_interrupt(bench, peer)
        seen["URL"] = check_hidden(cli, child, url)
        seen["ended by"] = await child.end()
    keep(cli.name, seen)


async def check_tool(bench: Bench, peer: Peer) -> None:
    """A tool of the daemon is offered to the model, runs, and its result reaches the model."""
    for number in range(MOST_TURNS_UNTIL_TOOLS):
        turn = await peer.turn(f"SAY ready {number}")
        assert turn.outcome in ENDED
        assert f"ready {number}" in turn.text
        # codex starts MCP servers beside its first turns.
        if any(name.endswith("aegis_term_run") for name in bench.model.requests()[-1]["tools"]):
            break
    bench.daemon.call("term_spawn", name="build")
    turn = await peer.turn(
        'CALL aegis_term_run {"name": "build", "cmd": "echo $((6 * 7))"}\nSAY has run'
    )
    assert turn.outcome in ENDED
    assert "has run" in turn.text
    [record] = bench.daemon.call("term_read", name="build", since_seq=-1)["result"]
    assert (record["cmd"], record["stdout"]) == ("echo $((6 * 7))", "42\n")
    shown = bench.model.requests()[-1]["messages"]
    assert "42" in str([each["results"] for each in shown])


async def check_permissions(cli: Cli, bench: Bench, peer: Peer) -> str:
    """A command runs when it is allowed, and does not when it is denied."""
    allowed, denied = bench.work / "allowed", bench.work / "denied"
    turn = await peer.turn(f"{cli.asking.format(file=allowed)}\nSAY made")
    assert (len(turn.asked), turn.outcome in ENDED) == (1, True)
    assert "made" in turn.text
    assert allowed.exists()
    turn = await peer.turn(f"{cli.asking.format(file=denied)}\nSAY not made", allow=False)
    assert len(turn.asked) == 1
    assert not denied.exists()
    return f"{turn.outcome}, {'with' if 'not made' in turn.text else 'without'} an answer"


async def check_interrupt(bench: Bench, peer: Peer) -> str:
    """An interrupt ends the turn and the request to the model; the next turn works."""

    async def asked() -> None:
        await bench.model.wait_asked("SAY begun")

    turn = await peer.turn("SAY begun\nWAIT 100\nSAY never", interrupt=asked)
    assert turn.outcome not in ENDED
    assert "never" not in turn.text
    after = await peer.turn("SAY continued")
    assert after.outcome in ENDED
    assert "continued" in after.text
    stopped = await bench.model.wait_asked("WAIT 100")
    assert await bench.model.wait_ended(stopped["number"]) == "left"
    return turn.outcome


def check_hidden(cli: Cli, child: LineProcess, secret: str) -> str:
    """No process of the CLI has the secret in an argument or a variable."""
    shown = [
        name
        for pid in child.left()
        for name in ("cmdline", "environ")
        if secret.encode() in Path(f"/proc/{pid}/{name}").read_bytes()
    ]
    assert set(shown) == ({"cmdline"} if cli.shows_url else set())
    return "in cmdline" if shown else "hidden"

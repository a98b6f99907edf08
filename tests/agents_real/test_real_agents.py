"""One session with each agent CLI, offline: its driver, the scripted model, and a real daemon."""

from __future__ import annotations

import itertools
import time

import pytest

from aegis.agents.messages import DriverEnded
from aegis.protocol.agent_events import RequestWithdrawn, ToolResult, ToolUse
from tests.agents_real.bench import Bench
from tests.agents_real.clis import Cli
from tests.agents_real.footprint import footprint, shown_texts
from tests.agents_real.installed import NotInstalled
from tests.agents_real.model_server.script import Json
from tests.agents_real.results import keep
from tests.agents_real.sessions import PRIMER, AgentRefused, RealSession, real_session
from tests.e2e.harness import is_alive

pytestmark = [pytest.mark.real, pytest.mark.agents]

TOOLS_S = 60.0
"""Seconds after which an agent has connected to its MCP server, on a busy machine too."""


@pytest.fixture(autouse=True)
def installed(cli: Cli) -> None:
    """Install the CLI, or skip the test with the reason."""
    try:
        cli.command()
    except NotInstalled as error:
        pytest.skip(str(error))


async def test_it_calls_a_tool_asks_and_can_be_interrupted(cli: Cli, bench: Bench) -> None:
    seen: Json = {"version": cli.package.version}
    url = bench.daemon.call("session_new", handle="tried")["url"]
    began = time.monotonic()
    async with real_session(cli, bench, url) as session:
        seen["ready after"] = f"{time.monotonic() - began:.1f} s"
        await check_tool(bench, session)
        seen["first tool call after"] = f"{time.monotonic() - began:.1f} s"
        used = footprint(session.pids())
        seen["RSS / PSS"] = f"{used.rss} / {used.pss} MiB"
        seen["processes"] = used.processes
        seen["denied"] = await check_permissions(cli, bench, session)
        seen["interrupted"] = await check_interrupt(bench, session)
        await check_interrupt_while_asked(cli, bench, session)
        seen["HTTP 400"] = await check_error(cli, session)
        seen["URL"] = check_hidden(session, url)
        seen["closed after"] = await check_close(session)
    keep(cli.name, "driver", seen)


async def test_after_a_kill_the_conversation_is_resumed_or_refused(cli: Cli, bench: Bench) -> None:
    url = bench.daemon.call("session_new", handle="tried")["url"]
    async with real_session(cli, bench, url) as session:
        turn = await session.turn("SAY something to remember")
        assert turn.result.ok
        conversation = session.conversation
        session.it.kill(session.pids()[0])
        await session.it.log.first(DriverEnded)
    try:
        await check_resumed(cli, bench, url, conversation)
    except AgentRefused as error:
        if not cli.forgets or error.failed.kind != "conversation":
            raise


async def check_resumed(cli: Cli, bench: Bench, url: str, conversation: str) -> None:
    """The conversation continues, and the model is shown its earlier turns."""
    async with real_session(cli, bench, url, conversation) as session:
        turn = await session.turn("SAY resumed")
        assert (turn.result.ok, "resumed" in turn.text) == (True, True)
        assert session.conversation == conversation
        [*_, request] = bench.model.requests()
        assert "something to remember" in str(request["messages"])


async def check_tool(bench: Bench, session: RealSession) -> None:
    """A tool of the daemon is offered to the model, runs, and its result reaches the model."""
    connected_by = time.monotonic() + TOOLS_S
    for number in itertools.count():
        assert time.monotonic() < connected_by, "the agent is not offered our tools"
        turn = await session.turn(f"SAY ready {number}")
        assert turn.result.ok
        assert f"ready {number}" in turn.text
        # codex starts MCP servers beside its first turns.
        if any(name.endswith("aegis_term_run") for name in bench.model.requests()[-1]["tools"]):
            break
    bench.daemon.call("term_spawn", name="build")
    turn = await session.turn(
        'CALL aegis_term_run {"name": "build", "cmd": "echo $((6 * 7))"}\nSAY has run'
    )
    assert turn.result.ok
    assert "has run" in turn.text
    used = {each.id for each in turn.events if isinstance(each, ToolUse)}
    results = [each for each in turn.events if isinstance(each, ToolResult)]
    assert [(each.id in used, each.is_error) for each in results] == [(True, False)]
    [record] = bench.daemon.call("term_read", name="build", since_seq=-1)["result"]
    assert (record["cmd"], record["stdout"]) == ("echo $((6 * 7))", "42\n")
    shown = bench.model.requests()[-1]
    assert "42" in str([each["results"] for each in shown["messages"]])
    assert PRIMER in shown["system"] + str(shown["messages"])


async def check_permissions(cli: Cli, bench: Bench, session: RealSession) -> str:
    """A command runs when it is allowed, and does not when it is denied."""
    allowed, denied = bench.work / "allowed", bench.work / "denied"
    turn = await session.turn(f"{cli.asking.format(file=allowed)}\nSAY made")
    assert (len(turn.asked), turn.result.ok) == (1, True)
    assert str(allowed) in str(turn.asked[0])
    assert "made" in turn.text
    assert allowed.exists()
    turn = await session.turn(f"{cli.asking.format(file=denied)}\nSAY not made", allow=False)
    assert len(turn.asked) == 1
    assert not denied.exists()
    return f"{turn.end}, {'with' if 'not made' in turn.text else 'without'} a text"


async def check_interrupt(bench: Bench, session: RealSession) -> str:
    """An interrupt ends the turn and the request to the model; the next turn works."""

    async def asked() -> None:
        await bench.model.wait_asked("SAY begun")

    turn = await session.turn("SAY begun\nWAIT 100\nSAY never", interrupt=asked)
    assert not turn.result.ok
    assert "never" not in turn.text
    after = await session.turn("SAY continued")
    assert after.result.ok
    assert "continued" in after.text
    stopped = await bench.model.wait_asked("WAIT 100")
    assert await bench.model.wait_ended(stopped["number"]) == "left"
    return turn.end


async def check_interrupt_while_asked(cli: Cli, bench: Bench, session: RealSession) -> None:
    """An interrupt withdraws the open request, and its command does not run."""
    file = bench.work / "interrupted"
    turn = await session.turn(
        f"{cli.asking.format(file=file)}\nSAY never", allow=None, interrupt=session.wait_open
    )
    assert not turn.result.ok
    assert sum(isinstance(each, RequestWithdrawn) for each in turn.events) == 1
    after = await session.turn("SAY continued again", allow=False)
    assert "continued again" in after.text
    assert not file.exists()


async def check_error(cli: Cli, session: RealSession) -> str:
    """A turn that failed because of the model's API is no success, and the next turn works."""
    turn = await session.turn("ERROR 400")
    assert turn.result.ok == cli.hides_errors
    after = await session.turn("SAY recovered")
    assert after.result.ok
    assert "recovered" in after.text
    return turn.end


def check_hidden(session: RealSession, secret: str) -> str:
    """No process of the agent has the secret in an argument or a variable."""
    shown = shown_texts(session.pids())
    assert shown
    assert [place for place, text in shown.items() if secret.encode() in text] == []
    return "hidden"


async def check_close(session: RealSession) -> str:
    """It ends when its driver is closed, and nothing of it is left."""
    pids = session.pids()
    began = time.monotonic()
    ended = await session.it.close()
    assert [pid for pid in pids if is_alive(pid)] == []
    return f"{time.monotonic() - began:.1f} s, exit code {ended.exit_code}"

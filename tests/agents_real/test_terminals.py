"""Commands that agents have their client run: in terminals, with one approval, and shown."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.protocol.agent_events import TerminalEnded, ToolProgress, ToolUse
from tests.agents_real.bench import Bench
from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.sessions import Turn, real_session
from tests.agents_real.team import Team, new_team
from tests.e2e.harness import is_alive
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

RUNNERS = ("kimi",)
"""The CLIs that run their shell commands in a terminal of the client, where it has some."""


AGENT = "tried"

ESCAPE = "(trap '' HUP TERM; env -i setsid sleep 1000 & echo $! > {0}.new; mv {0}.new {0})"
"""Starts a process without the cookie, the session and the signals of its command."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = metafunc.config.getoption("--agent", None) or RUNNERS
    chosen = [each for each in CLIS if each.name in RUNNERS and each.name in wanted]
    metafunc.parametrize("runner", chosen, ids=[each.name for each in chosen])


def ends(turn: Turn) -> list[TerminalEnded]:
    return [each for each in turn.events if isinstance(each, TerminalEnded)]


async def test_a_shell_command_is_run_in_a_terminal_that_its_call_shows(
    runner: Cli, bench: Bench
) -> None:
    try:
        runner.command()
    except NotInstalled as error:
        pytest.skip(str(error))
    url = bench.daemon.call("session_new", handle="tried")["url"]
    async with real_session(runner, bench, url) as session:
        turn = await session.turn("BASH echo a; tty; pwd; exit 3\nSAY done")
        assert (len(turn.asked), turn.text) == (1, "done")
        (use,) = {each.id for each in turn.events if isinstance(each, ToolUse)}
        (end,) = ends(turn)
        assert end.command == "echo a; tty; pwd; exit 3"
        assert (end.output, end.exit_code) == (f"a\nnot a tty\n{bench.work}\n", 3)
        shown = [each for each in turn.events if isinstance(each, ToolProgress) and each.terminal]
        assert [(each.id, each.terminal) for each in shown] == [(use, end.terminal)]

        turn = await session.turn("BASH touch refused\nSAY done", allow=False)
        assert (len(turn.asked), ends(turn)) == (1, [])
        assert not (bench.work / "refused").exists()

        call = 'CALL Shell {"command": "echo begun; sleep 1000", "timeout": 1}\nSAY late'
        (end,) = ends(await session.turn(call))
        assert (end.output, end.signal) == ("begun\n", "SIGTERM")

        async def is_shown() -> None:
            log, before = session.it.log, len(session.it.log.events)
            await log.until(
                lambda: any(
                    isinstance(each, ToolProgress) and each.terminal for each in log.events[before:]
                )
            )

        turn = await session.turn("BASH echo begun; sleep 1000\nSAY no", interrupt=is_shown)
        assert (turn.result.reason, len(ends(turn))) == ("cancelled", 1)
        assert ends(turn)[0].signal == "SIGKILL"


@pytest.fixture
def team(runner: Cli, tmp_path: Path) -> Iterator[Team]:
    """A daemon with a profile of this provider."""
    try:
        profiles = {"asks": {"provider": runner.name, "permission": "ask"}}
        with new_team(tmp_path, [runner], profiles) as made:
            yield made
    except NotInstalled as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("victim", ["agent", "daemon"])
def test_a_kill_in_the_midst_of_a_command_ends_it_and_the_next_one_runs(
    team: Team, victim: str
) -> None:
    file = team.daemon.root / "pid"
    line = f"echo begun; {ESCAPE.format(file.name)}; sleep 1000"
    team.call("spawn", profile="asks", handle=AGENT, prompt=f"BASH {line}\nSAY never")
    allow(team)
    until(file.exists, "the command runs")
    [listed] = team.info(AGENT)["terminals"]
    assert listed["command"] == line
    until(lambda: "begun\n" in shown(team, listed["id"]), "its output is shown")
    pids = [int(file.read_text()), *team.pids()]
    assert len([pid for pid in pids if is_alive(pid)]) > 4
    if victim == "agent":
        os.kill(team.guarded()[0], signal.SIGKILL)
    else:
        team.daemon.kill()
    until(lambda: not any(map(is_alive, pids)), "no process is left")
    if victim == "daemon":
        team.daemon.start("--port", "0", "--trust")
    until(lambda: team.outcomes(AGENT) == ["interrupted"], "the turn is interrupted")
    assert team.info(AGENT)["terminals"] == []
    if victim == "agent":
        [end] = team.events(AGENT, "terminal_ended")
        assert (end["terminal"], end["output"], end["signal"]) == (
            listed["id"],
            "begun\n",
            "SIGKILL",
        )
        assert shown(team, listed["id"]) == "begun\n"

    team.call("handoff", target_handle=AGENT, context="BASH echo more; exit 3\nSAY done")
    allow(team)
    until(lambda: len(team.outcomes(AGENT)) == 2, "the next turn has ended")
    end = team.events(AGENT, "terminal_ended")[-1]
    assert (end["output"], end["exit_code"]) == ("more\n", 3)
    assert end["terminal"] != listed["id"]
    assert shown(team, end["terminal"]) == "more\n"
    assert ("done" in team.text(AGENT), "never" in team.text(AGENT)) == (True, False)
    assert team.outcomes(AGENT)[-1] == "completed"
    team.call("close", handle=AGENT)
    assert team.pids() == []


def allow(team: Team) -> None:
    """Allow the command that the agent asks for."""
    until(lambda: len(team.requests(AGENT)) == 1, "it asks")
    [request] = team.requests(AGENT)
    team.call("request_answer", id=request["id"], digest=request["digest"], answer="allow")


def shown(team: Team, command: str) -> str:
    output: str = team.call("agent_output", handle=AGENT, command=command)["output"]
    return output

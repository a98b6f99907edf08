"""Commands that agents have their client run: in terminals, with one approval, and shown."""

from __future__ import annotations

import pytest

from aegis.protocol.agent_events import TerminalEnded, ToolProgress, ToolUse
from tests.agents_real.bench import Bench
from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.sessions import Turn, real_session

pytestmark = [pytest.mark.real, pytest.mark.agents]

RUNNERS = ("kimi",)
"""The CLIs that run their shell commands in a terminal of the client, where it has some."""


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

"""A checkout that configures an agent: nothing of it acts unless the profile says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from aegis.configuration.agents import AgentSection
from aegis.protocol.agent_events import StartNotice
from tests.agents_real.bench import Bench
from tests.agents_real.clis import Cli
from tests.agents_real.hostile import write_hostile_checkout
from tests.agents_real.installed import NotInstalled
from tests.agents_real.sessions import real_session

pytestmark = [pytest.mark.real, pytest.mark.agents]


@pytest.fixture
def victim(cli: Cli) -> Cli:
    """Return the CLI as its user has it, who has not trusted the directory."""
    try:
        cli.command()
    except NotInstalled as error:
        pytest.skip(str(error))

    def configure(home: Path, url: str) -> dict[str, str]:
        variables = cli.configure(home, url)
        variables.pop("GEMINI_CLI_TRUST_WORKSPACE", None)
        return variables

    return attrs.evolve(cli, configure=configure)


async def test_the_settings_of_a_checkout_run_no_program_and_allow_no_tool(
    victim: Cli, bench: Bench
) -> None:
    evidence = bench.work.parent / "evidence"
    write_hostile_checkout(bench.work, evidence)
    url = bench.daemon.call("session_new", handle="tried")["url"]
    async with real_session(victim, bench, url) as session:
        assert (await session.turn("SAY hello")).result.ok
        command = victim.asking.format(file=evidence / "command")
        turn = await session.turn(f"{command}\nSAY denied", allow=False)
        assert len(turn.asked) == 1
    assert list(evidence.iterdir()) == []


async def test_settings_that_nobody_trusts_are_not_used_by_a_profile_that_wants_them(
    victim: Cli, bench: Bench
) -> None:
    if victim.name == "kimi":
        pytest.skip("kimi reads no settings of a checkout")
    evidence = bench.work.parent / "evidence"
    write_hostile_checkout(bench.work, evidence)
    url = bench.daemon.call("session_new", handle="tried")["url"]
    section = AgentSection(provider=victim.name, project_settings=True)
    async with real_session(victim, bench, url, section=section, is_trusted=False) as session:
        assert (await session.turn("SAY hello")).result.ok
        command = victim.asking.format(file=evidence / "command")
        turn = await session.turn(f"{command}\nSAY denied", allow=False)
        assert len(turn.asked) == 1
        notices = [each.text for each in session.it.log.events if isinstance(each, StartNotice)]
    assert list(evidence.iterdir()) == []
    assert "they are not trusted as they are now" in notices[0]
    assert [each for each in notices if "gemini" in each and "MCP" in each] == notices[1:]
    assert len(notices) == (2 if victim.name == "gemini" else 1)


async def test_a_profile_may_use_the_settings_of_its_checkout(victim: Cli, bench: Bench) -> None:
    if victim.name == "kimi":
        pytest.skip("kimi reads no settings of a checkout")
    evidence = bench.work.parent / "evidence"
    write_hostile_checkout(bench.work, evidence, moves_keys=False)
    url = bench.daemon.call("session_new", handle="tried")["url"]
    section = AgentSection(provider=victim.name, project_settings=True)
    if victim.name == "opencode":
        # It would install packages for a plugin, which fails slowly without a network.
        shutil.rmtree(bench.work / ".opencode")
    async with real_session(victim, bench, url, section=section) as session:
        assert (await session.turn("SAY hello")).result.ok
    assert list(evidence.iterdir())

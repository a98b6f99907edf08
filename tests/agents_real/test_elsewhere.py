"""Conversations that began in the own programs of agents, offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.model_server.script import Json
from tests.agents_real.team import Team, new_team
from tests.agents_real.tui.agents import TUIS
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]

PROGRAMS = {
    "claude": "claude -p '{}'",
    "claude-agent-acp": "claude -p '{}'",
    "codex": "codex exec --skip-git-repo-check '{}'",
    "opencode": "opencode run '{}'",
    "kimi": "kimi --print -p '{}'",
}
"""A turn of each agent's own program."""

HELD_BY = {"claude-agent-acp": "claude --resume {}", "codex": "codex resume --no-daemon {}"}
"""The programs that show which conversation they have open."""


@pytest.fixture
def team(cli: Cli, tmp_path: Path) -> Iterator[Team]:
    try:
        clis = [cli, CLAUDE] if cli.name == "claude-agent-acp" else [cli]
        with new_team(tmp_path, clis, {"tried": {"provider": cli.name}}) as made:
            yield made
    except NotInstalled as reason:
        pytest.skip(str(reason))


def begun(cli: Cli, team: Team) -> str:
    """The id of a conversation that the agent's own program has had; its first words are known."""
    team.call("term_spawn", name="own")
    run = PROGRAMS[cli.name].format("SAY begun elsewhere")
    record = team.call("term_run", name="own", cmd=f"{run} </dev/null", timeout=60)
    assert record["exit"] == 0, record
    [found] = listed(team)
    assert found["begins"].strip('"') == "SAY begun elsewhere"  # opencode quotes it
    assert found["at"].startswith("20")
    assert found["holder"] == ""
    id_: str = found["id"]
    return id_


def listed(team: Team) -> list[Json]:
    found: list[Json] = team.call("agent_conversations", profile="tried")["result"]
    return found


def asked(team: Team, text: str) -> str:
    """The whole request to the model whose newest message has this text."""
    requests = [each for each in team.model.requests() if text in str(each["messages"][-1])]
    assert requests, f"the model was not asked {text!r}"
    return str(requests[-1]["messages"])


def continues(cli: Cli, team: Team, id_: str, handle: str, **arguments: object) -> None:
    team.call(
        "agent_continue",
        profile="tried",
        conversation=id_,
        handle=handle,
        prompt=f"SAY {handle} continued",
        **arguments,
    )
    until(lambda: team.outcomes(handle) == ["completed"], "it continues")
    request = asked(team, f"SAY {handle} continued")
    assert "begun elsewhere" in request
    # Claude Code has it in its system prompt.
    assert cli.name == "claude" or f"You are the agent '{handle}'" in request
    assert "begun elsewhere" not in team.text(handle)


def test_a_conversation_of_the_own_program_is_listed_and_continues(cli: Cli, team: Team) -> None:
    if cli.name == "gemini":
        refusal = team.daemon.refusal("agent_conversations", profile="tried")
        assert "the files of gemini are not read" in str(refusal)
        return
    id_ = begun(cli, team)
    notice = team.call("agent_conversations", profile="tried").get("notice")
    assert bool(notice) == (cli.name in ("opencode", "kimi"))
    if cli.name == "kimi":
        refusal = team.daemon.refusal(
            "agent_continue", profile="tried", conversation=id_, fork=True
        )
        assert "kimi cannot copy a conversation" in str(refusal)
    else:
        continues(cli, team, id_, "copy", fork=True)
        assert team.info("copy")["conversation"] not in (None, id_)
        team.call("close", handle="copy")
    continues(cli, team, id_, "ann")
    assert team.info("ann")["conversation"] == id_
    assert [each["holder"] for each in listed(team) if each["id"] == id_] == ["session ann"]
    team.call("close", handle="ann")


def test_a_process_that_has_it_open_is_named(cli: Cli, team: Team) -> None:
    if cli.name not in HELD_BY:
        pytest.skip("it shows nobody, or it is in tests/e2e/test_agent_takeovers.py")
    tui = TUIS["codex" if cli.name == "codex" else "claude"]
    tui.prepare(team.daemon.home, team.daemon.root)
    id_ = begun(cli, team)
    team.call("term_keys", name="own", keys=f"{HELD_BY[cli.name].format(id_)}\r")

    def holder() -> str:
        return str(next(each["holder"] for each in listed(team) if each["id"] == id_))

    until(lambda: holder().startswith("process "), "it is named")
    refusal = team.daemon.refusal("agent_continue", profile="tried", conversation=id_)
    assert f"is open in {holder()}" in str(refusal)
    team.call("term_close", name="own")
    until(lambda: holder() == "", "nobody has it")
    continues(cli, team, id_, "ann")
    team.call("close", handle="ann")

"""Mentions of files and skills in texts for each agent CLI: those of programs stay text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents_real.clis import Cli
from tests.agents_real.model_server.script import Json
from tests.agents_real.results import keep
from tests.agents_real.team import Team
from tests.agents_real.test_commands import AGENT, send
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

EXPANDING = ("claude", "claude-agent-acp")
"""The CLIs that read the file of an ``@path`` in a prompt: the others leave the text as it is."""

SECRET = "what-the-file-says"

SKILL = f"---\nname: zebra\ndescription: About zebras.\n---\n{SECRET}\n"

HOSTILE = (
    "@key.txt",
    "see @key.txt",
    "see\u00a0@./key.txt",
    "see\ufeff@key.txt",
    '@"key.txt"',
    "see\u3002@key.txt",
    "see @{cwd}/key.txt",
    "$zebra",
    "use $zebra now",
    "[$zebra]({skill})",
)


def test_a_mention_of_a_program_is_text_and_a_persons_is_as_in_the_agent(
    cli: Cli, team: Team
) -> None:
    home = team.daemon.home
    (team.daemon.root / "AGENTS.md").write_text("Notes: see @key.txt\n")
    (team.daemon.root / "key.txt").write_text(f"{SECRET}\n")
    skills = [home / ".codex" / "skills" / "zebra", home / ".claude" / "skills" / "zebra"]
    for each in skills:
        each.mkdir(parents=True)
        (each / "SKILL.md").write_text(SKILL)
    team.call("spawn", profile="asks", handle=AGENT, prompt="SAY ready")
    until(lambda: len(team.outcomes(AGENT)) == 1, "the first turn has ended")
    cwd = Path(team.info(AGENT)["cwd"])

    def asked() -> str:
        return str(team.model.requests()[-1])

    for text in HOSTILE:
        hostile = text.replace("{cwd}", str(cwd)).replace("{skill}", str(skills[0] / "SKILL.md"))
        send(team, f"{hostile}\nSAY as text", from_handle="pm")
        assert SECRET not in asked(), hostile
    before = asked().count(SECRET)
    send(team, "see @key.txt\nSAY a person's")
    is_read = asked().count(SECRET) > before
    send(team, "use $zebra\nSAY a person's")
    seen: Json = {"version": cli.package.version, "@path is read": is_read}
    is_used = asked().count(SECRET) > before + is_read
    keep(cli.name, "mentions", {**seen, "$skill is used": is_used})
    assert (is_read, is_used) == (cli.name in EXPANDING, cli.name == "codex")

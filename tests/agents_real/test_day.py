"""The tutorial of a day: a plan, a take-over and a merge, with Claude Code and a scripted model."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.agents_real.clis import CLIS
from tests.agents_real.installed import NotInstalled
from tests.agents_real.reader import Reader, commands_of
from tests.agents_real.scripts import call, script
from tests.agents_real.team import MODULE, Team, new_team
from tests.agents_real.test_takeover import TUI, Person
from tests.agents_real.test_tutorial import PYTHON, YAML
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "a-day-with-an-agent.md"

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]

PROMPT = "Fix discount()"
PLAN = "# Fix discount()\n\n1. Subtract that part of the price.\n2. Leave total() as it is.\n"
FIXED = "price * (100 - percent) / 100"
COMMIT = "git commit -qam 'Subtract a part of the price'"
PLANS = re.compile(r"/[^\s\"'\\]+/plans/[A-Za-z0-9-]+\.md")
"""The file that Claude Code names for a plan."""


def make_checkout(team: Team) -> None:
    (team.daemon.root / "test_cart.py").unlink()
    (team.daemon.root / ".gitignore").write_text(".aegis.yaml\n")
    for words in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "Ann"),
        ("config", "user.email", "ann@example.org"),
        ("add", "cart.py", ".gitignore"),
        ("commit", "-qm", "A shop"),
    ):
        git(team, *words)


def git(team: Team, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(team.daemon.root), *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def teach_plan(team: Team) -> None:
    """Give the model the rest of its answers: now it is known where the plan and the work are."""
    until(lambda: bool(team.model.requests()), "the model is asked")
    [plan, *_] = PLANS.findall(str(team.model.requests()[-1]))
    cart = str(Path(team.info("ann")["cwd"], "cart.py"))
    edit = call("Edit", file_path=cart, old_string="price - percent", new_string=FIXED)
    team.model.teach(
        {
            PROMPT: script(
                call("Write", file_path=plan, content=PLAN),
                call("ExitPlanMode"),
                call("Read", file_path=cart),
                edit,
                "SAY discount() is fixed.",
            ),
            "Commit it": script(call("Bash", command=COMMIT), "SAY It is committed."),
            "What is left": "SAY Nothing: the fix is committed.",
        }
    )


def take_over(team: Team) -> None:
    """Do by hand what the page says, and leave."""
    person = Person(team, "ann")
    person.says("Commit it")
    person.sees(TUI.asks)
    person.approves()
    person.sees("It is committed.")
    person.enters("/exit", lambda: team.info("ann")["taken_over"] is None)


BEFORE = {
    "aegis-actors agent wait ann --blocked": teach_plan,
    "aegis-actors agent read ann --last 7": take_over,
}
"""What happens before a command of the page, and is no command of it."""


def test_each_command_of_the_day_prints_what_the_page_shows(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    assert PYTHON.findall(text) == [MODULE]
    [configuration] = YAML.findall(text)
    try:
        with new_team(tmp_path, [CLAUDE], yaml.safe_load(configuration)["agents"]) as team:
            make_checkout(team)
            TUI.prepare(team.daemon.home, team.daemon.root)
            # It is asked again until it has the answers.
            team.model.teach({PROMPT: "ERROR 529"})
            reader = Reader(team)
            for command, output in commands_of(text):
                if command in BEFORE:
                    BEFORE[command](team)
                reader.run(command, output)
            assert FIXED in (team.daemon.root / "cart.py").read_text()
            assert git(team, "status", "--porcelain") == ""
            assert team.pids() == []
    except NotInstalled as error:
        pytest.skip(str(error))

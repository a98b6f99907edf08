"""The tutorial with two Claude Code agents, command by command, with a scripted model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.agents_real.clis import CLIS
from tests.agents_real.installed import NotInstalled
from tests.agents_real.model_server.conversation import Book
from tests.agents_real.reader import Reader, commands_of
from tests.agents_real.scripts import call, script
from tests.agents_real.team import MODULE, TESTS, new_team

pytestmark = [pytest.mark.real, pytest.mark.agents]

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "two-real-agents.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]


def book(root: Path) -> Book:
    """Return what the model does for each message of the tutorial."""
    cart = str(root / "cart.py")
    return {
        "Have a builder run pytest": script(
            "SAY I start a builder for that.",
            call("aegis_term_spawn", name="tests"),
            call("aegis_term_subscribe", name="tests"),
            call("aegis_spawn", profile="builder", handle="builder"),
            call(
                "aegis_handoff",
                target_handle="builder",
                context="Run pytest -q on the terminal 'tests' and send me the failures.",
            ),
            "SAY The builder runs the tests. I report when it has answered.",
        ),
        "Run pytest -q on the terminal 'tests'": script(
            call("aegis_term_run", name="tests", cmd="pytest -q"),
            call(
                "aegis_handoff",
                target_handle="pm",
                context="test_discount fails: discount(200, 10) is 190, not 180.",
            ),
            "SAY I have sent the failure to pm.",
        ),
        "run by agent:builder": "SAY The run has ended; I wait for the builder's message.",
        "discount(200, 10) is 190": script(
            call(
                "aegis_handoff",
                target_handle="human",
                context="One of two tests fails: test_discount. discount() subtracts the "
                "percentage itself, not that part of the price.",
            ),
            "SAY I have reported.",
        ),
        "Fix discount()": script(
            call("Read", file_path=cart),
            call(
                "Edit",
                file_path=cart,
                old_string="price - percent",
                new_string="price * (100 - percent) / 100",
            ),
            call("aegis_term_run", name="tests", cmd="pytest -q"),
            "SAY Both tests pass now.",
        ),
    }


def test_each_command_of_the_tutorial_prints_what_the_page_shows(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    assert set(PYTHON.findall(text)) == {MODULE, TESTS}
    [configuration] = YAML.findall(text)
    try:
        with new_team(tmp_path, [CLAUDE], yaml.safe_load(configuration)["agents"]) as team:
            team.model.teach(book(team.daemon.root))
            reader = Reader(team)
            commands = commands_of(text)
            assert len(commands) > 15
            for command, output in commands:
                reader.run(command, output)
            assert team.pids() == []
    except NotInstalled as error:
        pytest.skip(str(error))

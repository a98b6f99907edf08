"""The tutorial with two Claude Code agents, command by command, with a scripted model."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.agents_real.clis import CLIS
from tests.agents_real.installed import NotInstalled
from tests.agents_real.model_server.conversation import Book
from tests.agents_real.scripts import call, script
from tests.agents_real.team import MODULE, TESTS, Team, new_team
from tests.e2e.harness import GUARD_S

pytestmark = [pytest.mark.real, pytest.mark.agents]

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "two-real-agents.md"
PROJECT = "/tmp/shop"

BLOCK = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]

LOOKING = tuple(
    f"aegis-actors {verb}"
    for verb in ("agent list", "agent read", "request list", "term read", "request show")
)
"""Commands that may be repeated until an agent is as far as the page."""

SKIPPED = r"(?:.*\n)*?"
ID = re.compile(r"\b(?=\w*[0-9])[0-9a-f]{12}\b")
"""The id of a request."""

DIFFERING = (
    (r"^(\\ )+\d+\\ (?=\S)", r" *\\d+ "),  # the seq of an entry
    (r"\d{4}\\-\d\d\\-\d\dT[\d:\\.]+Z", r"\\S+Z"),
    (r"\b\d+\\\.\d\ds", r"\\d+\\.\\d\\ds"),
    (r"(?<=\\ )\d+s(\\ )+", r"\\d+s +"),  # the age of a request
    (r"handoff:[0-9a-f]{32}", r"handoff:[0-9a-f]{32}"),
    (r"(landed|queued)(.*position.:)\d", r"(?:landed|queued)\2\\d"),
    (r"…$", ".*"),
)
"""Parts of an output, as ``re.escape`` writes them, and the patterns for them."""


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


def commands_of(text: str) -> list[tuple[str, str]]:
    """Return each command of a page and the output below it."""
    blocks = [block for block in BLOCK.findall(text) if block.startswith("$ ")]
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)]
    found = [part.partition("\n") for part in parts if part.startswith("aegis-actors ")]
    return [(command, output) for command, _, output in found]


class Reader:
    """A reader of the tutorial: runs its commands in order, with the ids of this run."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._ids: dict[str, str] = {}

    def run(self, command: str, expected: str) -> None:
        """Run a command until its output is as the page shows it; one that acts, only once."""
        words = self._with_ids(command)
        pattern = self._pattern(expected)
        deadline = time.monotonic() + GUARD_S
        while True:
            output = self._output(words)
            found = pattern.fullmatch(output)
            if found or not command.startswith(LOOKING) or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        assert found is not None, f"$ {words}\n{output}\nis not what the page shows:\n{expected}"
        self._ids |= {name[1:]: id_ for name, id_ in found.groupdict().items()}

    def _output(self, words: str) -> str:
        done = subprocess.run(
            ["bash", "-c", words],
            env=self._team.daemon.environment,
            cwd=self._team.daemon.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        return done.stdout + done.stderr

    def _with_ids(self, command: str) -> str:
        for shown, id_ in self._ids.items():
            command = re.sub(rf"\b{shown[:4]}\b", id_, command)
        return command

    def _pattern(self, expected: str) -> re.Pattern[str]:
        """Return the pattern of an output: ids, times and paths differ from run to run."""
        lines = [self._line(line) for line in expected.splitlines()]
        text = "".join(line if line == SKIPPED else f"{line}\n" for line in lines)
        seen: set[str] = set()

        def capture(match: re.Match[str]) -> str:
            shown = match[0]
            if shown in self._ids:
                return self._ids[shown]
            if shown in seen:
                return f"(?P=i{shown})"
            seen.add(shown)
            return f"(?P<i{shown}>[0-9a-f]{{12}})"

        return re.compile(ID.sub(capture, text))

    def _line(self, line: str) -> str:
        if line == "…":
            return SKIPPED
        if line.endswith("…"):
            # The path of the project decides where it is cut.
            line = f"{line[:-1].partition(PROJECT)[0]}…"
        found = re.escape(line).replace(re.escape(PROJECT), re.escape(str(self._team.daemon.root)))
        for pattern, differing in DIFFERING:
            found = re.sub(pattern, differing, found)
        return found

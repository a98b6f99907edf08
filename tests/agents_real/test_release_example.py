"""The worked example of a release, command by command, with real CLIs and a scripted model."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS
from tests.agents_real.installed import NotInstalled
from tests.agents_real.model_server.conversation import Book
from tests.agents_real.model_server.script import Json
from tests.agents_real.reader import Reader, commands_of
from tests.agents_real.scripts import call, script
from tests.agents_real.team import Team, team_in
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "release"
PAGE = EXAMPLE / "README.md"
FILE = re.compile(r"^```(?:python|yaml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

CHOSEN = [cli for cli in CLIS if cli.name in ("claude", "gemini")]

REVIEW = "Release 1.2 of this project is due."
TESTS = "Release 1.2, run the tests:"
CHANGELOG = "Release 1.2, write the changelog:"


def append(section: str, text: str) -> str:
    """Return the line that appends to the canvas, by a tool that is not in the working set."""
    given = {"name": "release", "section": section, "text": text}
    return call("aegis_call", tool="aegis_canvas_append_to_section", arguments=given)


BOOK: Book = {
    REVIEW: "SAY release",
    TESTS: script(
        call("aegis_term_spawn", name="tests"),
        call("aegis_term_run", name="tests", cmd="pytest -q"),
        append("Tests", "1.2: 2 passed"),
        "SAY Both tests pass.",
    ),
    CHANGELOG: script(
        call("aegis_canvas_read", name="release"),
        append("Changelog", "1.2: discount() takes a part of the price."),
        "SAY The changelog has a line for 1.2.",
    ),
}

SET_UP = (
    ["init", "-q"],
    ["config", "user.name", "A. Reader"],
    ["config", "user.email", "reader@example.org"],
    ["add", "."],
    ["commit", "-qm", "A shop"],
)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A daemon in a copy of the example, which is a repository."""

    def prepare(root: Path) -> None:
        shutil.copytree(EXAMPLE, root, dirs_exist_ok=True)
        (root / "README.md").unlink()
        for words in SET_UP:
            subprocess.run(["git", *words], cwd=root, check=True)

    try:
        with team_in(tmp_path, CHOSEN, prepare) as made:
            made.model.teach(BOOK)
            yield made
    except NotInstalled as error:
        pytest.skip(str(error))


class ReleaseReader(Reader):
    """A reader who kills the daemon where the page does."""

    def run(self, command: str, expected: str) -> None:
        if command.startswith("kill -9 "):
            self._team.daemon.kill()
        elif command == "aegis-actors up":
            self._team.daemon.start("--port", "0", "--trust")
        else:
            super().run(command, expected)


def test_the_page_shows_the_files_of_the_example() -> None:
    text = PAGE.read_text("utf-8")
    plugin = (EXAMPLE / "plugins" / "release.py").read_text("utf-8")
    configuration = (EXAMPLE / ".aegis.yaml").read_text("utf-8")
    shown = FILE.findall(text)
    assert len(shown) >= 2
    for block in shown:
        assert block in plugin or block in configuration
    assert configuration in shown


def test_each_command_of_the_example_prints_what_the_page_shows(team: Team) -> None:
    reader = ReleaseReader(team)
    commands = commands_of(PAGE.read_text("utf-8"), ("aegis-actors ", "kill ", "cat ", "git "))
    assert sum(command.startswith("kill -9 ") for command, _ in commands) == 1
    assert len(commands) > 10
    for command, output in commands:
        reader.run(command, output)
    check_done_once(team)


def check_done_once(team: Team, *, attempts: int = 1) -> None:
    """Each step was done once, each end told once, and each line is on the canvas once."""
    assert (team.daemon.root / "release.md").read_text().splitlines() == [
        "## Tests",
        "",
        "1.2: 2 passed",
        "",
        "## Changelog",
        "",
        "1.2: discount() takes a part of the price.",
    ]
    [record] = team.call("term_read", name="tests", since_seq=-1)["result"]
    assert (record["cmd"], record["exit"]) == ("pytest -q", 0)
    assert asked(team, REVIEW) == {"claude": 1, "gemini": 1}
    tasks = team.call("task_list")["result"]
    assert sorted((each["status"], each["attempt"]) for each in tasks) == sorted(
        [("completed", 1), ("completed", attempts)]
    )
    # A message about an end is sent once the end is stored: a moment after it is shown.
    until(lambda: messages(team, "workflow:release") != [], "the end of the workflow is reported")
    ends = [each["task_id"] for each in messages(team, "queue:work")]
    # The end of the other task was the answer of the command that waited for it.
    assert ends == [min(each["task_id"] for each in tasks)]
    [end] = messages(team, "workflow:release")
    assert "1.2 is tagged" in end["body"]
    assert git(team, "tag").split() == ["v1.2"]
    assert git(team, "log", "--format=%s").splitlines() == ["Release 1.2", "A shop"]
    until(lambda: team.call("list_sessions")["result"] == [], "all sessions are closed")
    until(lambda: team.pids() == [], "all programs have ended")


def messages(team: Team, sender: str) -> list[Json]:
    """Return the messages of a sender to a person."""
    found = team.call("inbox_read", from_handle="human")["messages"]
    return [each for each in found if each["sender"] == sender]


def asked(team: Team, phrase: str) -> dict[str, int]:
    """Return how often the CLIs asked the model about a prompt, by the wire of the provider."""
    found: dict[str, int] = {}
    for each in team.model.requests():
        newest = each["messages"][-1]
        if newest["role"] == "user" and any(phrase in text for text in newest["texts"]):
            name = "gemini" if "gemini" in each["model"] else "claude"
            found[name] = found.get(name, 0) + 1
    return found


def git(team: Team, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=team.daemon.root, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_kill_in_the_middle_of_a_task_begins_the_task_again_and_nothing_else(team: Team) -> None:
    """The worker has written nothing yet: the first attempt waits for its model."""
    team.model.teach({**BOOK, CHANGELOG: f"WAIT 600\n{BOOK[CHANGELOG]}"})
    id_ = run(team)
    until(lambda: asked(team, CHANGELOG) == {"claude": 1}, "the second worker asks its model")
    team.daemon.kill()
    team.model.teach(BOOK)
    team.daemon.start("--port", "0", "--trust")
    until(lambda: questions(team) != [], "the workflow asks")
    [question] = questions(team)
    team.daemon.cli("request", "answer", question["id"], "allow", "--set", "Tag 1.2?=yes")
    until(lambda: status(team, id_)["ended"], "the workflow has ended")
    assert status(team, id_)["status"] == "completed"
    assert asked(team, CHANGELOG) == {"claude": 2}
    check_done_once(team, attempts=2)


def test_a_kill_while_the_reviewers_vote_costs_their_votes_and_holds_the_release(
    team: Team,
) -> None:
    team.model.teach({**BOOK, REVIEW: f"WAIT 600\n{BOOK[REVIEW]}"})
    id_ = run(team)
    until(lambda: asked(team, REVIEW) == {"claude": 1, "gemini": 1}, "both reviewers are asked")
    team.daemon.kill()
    team.model.teach(BOOK)
    team.daemon.start("--port", "0", "--trust")
    until(lambda: status(team, id_)["ended"], "the workflow has ended")
    assert status(team, id_)["status"] == "completed"
    assert "held back" in status(team, id_)["result"]
    assert asked(team, REVIEW) == {"claude": 1, "gemini": 1}  # no turn was sent again
    assert git(team, "tag") == ""
    until(lambda: team.call("list_sessions")["result"] == [], "all sessions are closed")


def test_a_kill_in_the_step_leaves_it_interrupted_until_a_person_has_looked(team: Team) -> None:
    """A hook of the repository holds the commit, so the kill is in the middle of the step."""
    hook = team.daemon.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\n: >holding\nwhile [ ! -e go ]; do sleep 0.1; done\n")
    hook.chmod(0o755)
    id_ = run(team)
    until(lambda: questions(team) != [], "the workflow asks")
    team.daemon.cli("request", "answer", questions(team)[0]["id"], "allow", "--set", "Tag 1.2?=yes")
    until(lambda: (team.daemon.root / "holding").exists(), "the step has begun")
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    until(lambda: status(team, id_)["ended"], "the workflow has ended")
    assert status(team, id_)["status"] == "failed"
    assert "StepInterrupted" in status(team, id_)["error"]
    assert git(team, "tag") == ""
    # The person sees that there is no tag, and has the workflow continue at the step.
    (team.daemon.root / "go").touch()
    team.daemon.cli("workflow", "resume", id_)
    until(lambda: status(team, id_)["status"] == "completed", "it is completed")
    assert git(team, "tag").split() == ["v1.2"]
    assert asked(team, REVIEW) == {"claude": 1, "gemini": 1}


def run(team: Team) -> str:
    id_: str = team.call("run_workflow", name="release", kwargs={"version": "1.2"})["workflow_id"]
    return id_


def questions(team: Team) -> list[Json]:
    return [each for each in team.requests() if each["kind"] == "question"]


def status(team: Team, id_: str) -> Json:
    return team.call("workflow_status", workflow_id=id_)

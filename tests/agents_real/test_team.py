"""Two Claude Code processes and an agent of another provider work together, offline."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.footprint import shown_texts
from tests.agents_real.installed import NotInstalled
from tests.agents_real.model_server.conversation import Book
from tests.agents_real.model_server.script import Json
from tests.agents_real.scripts import call, script
from tests.agents_real.team import Team, new_team
from tests.e2e.harness import GUARD_S, is_alive
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "drive-agents-from-python.md"
EXAMPLE = re.compile(r"^```python\n(.*?)^```$.*?^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)

TASK = "Have a builder run the tests, have a reviewer look at the result, and report to me."


BOOK: Book = {
    TASK: script(
        call("aegis_term_spawn", name="tests"),
        call("aegis_term_subscribe", name="tests"),
        call("aegis_spawn", profile="builder", handle="builder"),
        call("aegis_handoff", target_handle="builder", context="Run `pytest -q` on 'tests'."),
        "SAY A builder runs the tests.",
    ),
    "Run `pytest -q` on 'tests'.": script(
        call("aegis_term_run", name="tests", cmd="pytest -q"),
        call(
            "aegis_handoff", target_handle="pm", context="test_discount fails, test_total passes."
        ),
        "SAY The project manager has the result.",
    ),
    "run by agent:builder": "SAY The tests have ended.",
    "test_discount fails, test_total passes.": script(
        call("aegis_spawn", profile="reviewer", handle="reviewer"),
        call("aegis_handoff", target_handle="reviewer", context="Review the run on 'tests'."),
        "SAY A reviewer looks at it.",
    ),
    "Review the run on 'tests'.": script(
        call("aegis_term_read", name="tests"),
        call("aegis_handoff", target_handle="pm", context="The verdict: discount() is wrong."),
        "SAY The project manager has my verdict.",
    ),
    "The verdict: discount() is wrong.": script(
        call("aegis_handoff", target_handle="human", context="The report: fix discount()."),
        "SAY I have reported.",
    ),
}


@pytest.fixture
def permission() -> str:
    """The permission of all profiles, unless a test is parametrized by it."""
    return "ask"


@pytest.fixture
def team(other: Cli, permission: str, tmp_path: Path) -> Iterator[Team]:
    """A daemon whose reviewer is an agent of another provider."""
    providers = {"pm": "claude", "builder": "claude", "reviewer": other.name}
    profiles = {
        name: {"provider": provider, "permission": permission, "accepts_from": [*providers]}
        for name, provider in providers.items()
    }
    try:
        with new_team(tmp_path, (CLAUDE, other), profiles) as made:
            made.model.teach(BOOK)
            yield made
            check_stopped(made)
    except NotInstalled as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("permission", ["ask", "full"])
def test_by_the_command_line_a_person_launches_one_and_answers_all(
    team: Team, permission: str
) -> None:
    cli(team, "agent", "launch", "pm", TASK, "--handle", "pm")
    until(lambda: answered(team), "the project manager has reported")
    check_work(team)
    if permission == "ask":
        check_requests(team)
    else:
        assert team.requests(state="all") == []


def test_by_the_program_of_the_documentation(team: Team) -> None:
    [(program, printed)] = EXAMPLE.findall(PAGE.read_text("utf-8"))
    assert TASK in program
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**team.daemon.environment, "PYTHONPATH": str(ROOT)},
        cwd=team.daemon.root,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == printed
    assert [each["state"] for each in sessions(team)] == ["closed"] * 3
    check_terminal(team)
    check_requests(team)


def sessions(team: Team) -> list[Json]:
    found: list[Json] = team.call("list_sessions", closed=True)["result"]
    return found


def answered(team: Team) -> bool:
    """Allow the requests that are open, by the command line; return whether the report is here."""
    for request in team.requests():
        cli(team, "request", "answer", request["id"], "allow")
    return bool(reports(team))


def reports(team: Team) -> list[Json]:
    messages: list[Json] = team.call("inbox_read", from_handle="human")["messages"]
    return [each for each in messages if each["sender"] == "agent:pm"]


def check_work(team: Team) -> None:
    """The ledgers and the transcripts have the whole story."""
    until(lambda: all(has_ended(team, each) for each in sessions(team)), "all turns have ended")
    check_terminal(team)
    check_turns(team)
    check_secrets(team)


def has_ended(team: Team, info: Json) -> bool:
    """Return whether a session is idle and the end of its last turn is stored."""
    ends = len(team.outcomes(info["handle"]))
    return (info["state"], info["turn"]) == ("idle", ends)


def check_terminal(team: Team) -> None:
    """The builder ran the tests once, and the reviewer's model was shown the record."""
    [record] = team.call("term_read", name="tests", since_seq=-1)["result"]
    assert (record["cmd"], record["writer"], record["exit"]) == ("pytest -q", "agent:builder", 1)
    assert "1 failed, 1 passed" in record["stdout"]
    shown = [each for each in team.model.requests() if "Review the run" in str(each["messages"])]
    assert "1 failed, 1 passed" in str(shown[-1]["messages"])


def check_turns(team: Team) -> None:
    """Each message opened one turn of its receiver or was part of one, and all turns ended well."""
    spawned = {each["handle"]: each["spawned_by"] for each in sessions(team)}
    assert spawned == {"pm": "human", "builder": "pm", "reviewer": "pm"}
    assert senders(team, "builder") == ["agent:pm"]
    assert senders(team, "reviewer") == ["agent:pm"]
    received = senders(team, "pm")
    assert received[0] == "human"
    assert sorted(received[1:]) == ["agent:builder", "agent:reviewer", "term:tests"]
    for handle in spawned:
        assert set(team.outcomes(handle)) == {"completed"}
    for text in ("The tests have ended.", "A reviewer looks at it.", "I have reported."):
        assert team.text("pm").count(text) <= 1
    assert "I have reported." in team.text("pm")
    [report] = reports(team)
    assert report["body"] == "The report: fix discount()."


def senders(team: Team, handle: str) -> list[str]:
    """Return the senders of the messages that became turns, in order."""
    texts = [each["text"] for each in team.entries(handle, "turn_opened")]
    found = [re.findall(r"^> from (\S+) · ", text, re.MULTILINE) for text in texts]
    return [sender for each in found for sender in each]


def check_requests(team: Team) -> None:
    """A person allowed the run of the builder; each answer acted, once."""
    closed = team.requests(state="closed")
    assert [each["by"] for each in closed] == ["human"] * len(closed)
    assert None not in [each["applied"] for each in closed]
    runs = [each for each in closed if each["handle"] == "builder"]
    assert [each["input"] for each in runs] == [{"name": "tests", "cmd": "pytest -q"}]
    assert team.requests() == []


def check_secrets(team: Team) -> None:
    """No process has the key of a session in an argument or a variable."""
    urls = [team.call("session_new", handle=each["handle"])["url"] for each in sessions(team)]
    keys = [url.rpartition("/")[2].encode() for url in urls]
    shown = shown_texts(team.pids())
    assert len(shown) > 2 * len(keys)
    assert [name for name, text in shown.items() if any(key in text for key in keys)] == []


def check_stopped(team: Team) -> None:
    """The command line closes each session, and no process of an agent is left."""
    pids = team.pids()
    for each in sessions(team):
        if each["state"] != "closed":
            cli(team, "agent", "stop", each["handle"])
    assert [pid for pid in pids if is_alive(pid)] == []
    assert team.pids() == []


def cli(team: Team, *words: str) -> str:
    done = team.daemon.cli(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout

"""The output of an agent's command by its id: while it runs, after its release, after a kill."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import aegis
from aegis.client.stream_kinds import Gap
from aegis.protocol.agent_streams import CommandOutputItem
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agent_terminals import says
from tests.e2e.test_agents import STAND_IN, Team, agents_of
from tests.resources.waiting import until

pytestmark = pytest.mark.real

LONG = "seq -f 'line %g of a long output' 6000"
LINES = "".join(f"line {number} of a long output\n" for number in range(1, 6001))
"""More than the transcript keeps of a command."""

GATED = "echo begun; printf half; while [ ! -e go ]; do sleep 0.05; done; echo; exit 3"


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    profile = {
        "provider": "acp",
        "permission": "full",
        "command": [sys.executable, str(STAND_IN), "acp"],
        "asking_mode": "default",
    }
    yield Team(own_daemon, more={"acp-full": profile})
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def test_the_whole_output_is_kept_by_its_id_through_a_kill_of_the_daemon(team: Team) -> None:
    handle = team.spawn(f"LEAVE {LONG}\nTERM {LONG}", profile="acp-full")
    team.has_outcomes(handle, "completed")
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    found = team.call("agent_output", handle=handle, command="term_1_2")
    assert found["output"] == LINES
    assert (found["command"], found["exit_code"], found["released"]) == (LONG, 0, True)
    rest = team.call("agent_output", handle=handle, command="term_1_2", cursor=len(LINES) - 5)
    assert (rest["output"], rest["begin"]) == ("tput\n", len(LINES) - 5)
    shown = team.daemon.cli("agent", "output", handle, "term_1_2")
    assert (shown.stdout, shown.returncode) == (LINES, 0)
    assert "[exit 0]" in shown.stderr
    team.call("close", handle=handle)
    assert team.call("agent_output", handle=handle, command="term_1_2")["output"] == LINES
    team.call("agent_purge", handle=handle)
    refusal = team.daemon.refusal("agent_output", handle=handle, command="term_1_2")
    assert refusal.code == "not_found"


def test_a_kill_while_an_output_is_stored_leaves_no_file(team: Team) -> None:
    handle = team.spawn("TERM echo x", profile="acp-full")
    team.has_outcomes(handle, "completed")
    commands = team.daemon.state.directory / "agents" / team.info(handle)["id"] / "commands"
    team.daemon.kill()
    (commands / "term_1_2.jsonl.new").write_bytes(b"a part")
    team.daemon.start("--port", "0", "--trust")
    team.info(handle)
    assert [each.name for each in commands.iterdir()] == ["term_1_1.jsonl"]


def test_the_output_of_a_running_command_is_read_and_followed(team: Team) -> None:
    handle = team.spawn(f"OPEN {GATED}", profile="acp-full")
    says(team, handle, "opened term_1_1")

    def now() -> tuple[str, str, bool]:
        found = team.call("agent_output", handle=handle, command="term_1_1")
        return found["output"], found["line"], found["has_ended"]

    until(lambda: now() == ("begun\n", "half", False), "it has printed")
    assert team.call("agent_output", handle=handle, command="term_1_1")["command"] == GATED
    shown = team.daemon.cli("agent", "output", handle, "term_1_1")
    assert shown.stdout == "begun\nhalf\n"
    assert f"agent output --follow {handle} term_1_1" in shown.stderr
    words = [*team.daemon.program, "agent", "output", "--follow", handle, "term_1_1"]
    root = team.daemon.root
    follower = subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE, text=True)
    assert follower.stdout is not None
    assert follower.stdout.readline() == "begun\n"
    with aegis.connect_sync(root) as client:
        watching = client.agents.command_output(handle, "term_1_1")
        first = next(watching)
        assert (first, type(first)) == (CommandOutputItem(text="begun\n", line="half"), type(first))
        (Path(root) / "go").touch()
        assert follower.stdout.readline() == "half\n"
        ended = next(watching)
        while not (isinstance(ended, CommandOutputItem) and ended.has_ended):
            ended = next(watching)
        assert (ended.line, ended.exit_code) == ("", 3)
        team.call("close", handle=handle)
        left = [each for each in watching if isinstance(each, Gap) or each.text]
        assert left == []
    assert follower.communicate(timeout=GUARD_S)[0] == ""
    assert follower.returncode == 0


def test_a_follower_that_lags_behind_the_release_still_gets_the_end(team: Team) -> None:
    end = "seq -f 'line %g of a long output' 60000; echo; echo THE END; exit 3"
    handle = team.spawn(f"TERM while [ ! -e go ]; do sleep 0.02; done; {end}", profile="acp-full")
    until(lambda: team.info(handle)["terminals"], "the command runs")
    with aegis.connect_sync(team.daemon.root) as client:
        watching = client.agents.command_output(handle, "term_1_1")
        first = next(watching)
        (Path(team.daemon.root) / "go").touch()
        team.has_outcomes(handle, "completed")  # nothing is read meanwhile
        items = [first, *watching]
    outputs = [each for each in items if isinstance(each, CommandOutputItem)]
    assert (outputs[-1].has_ended, outputs[-1].exit_code) == (True, 3)
    assert "".join(each.text for each in outputs).endswith("of a long output\n\nTHE END\n")
    words = [*team.daemon.program, "agent", "output", "--follow", handle, "term_1_1"]
    again = subprocess.run(words, cwd=team.daemon.root, capture_output=True, text=True, check=True)
    assert again.stdout.endswith("\nTHE END\n")


def test_a_command_that_is_not_kept_is_refused_in_one_sentence(team: Team) -> None:
    handle = team.spawn("SAY x", profile="acp-full")
    refusal = team.daemon.refusal("agent_output", handle=handle, command="term_1_1")
    assert (refusal.code, "has no open command 'term_1_1'" in str(refusal)) == ("not_found", True)
    refusal = team.daemon.refusal("agent_output", handle=handle, command="../../transcript")
    assert refusal.code == "invalid_request"
    refusal = team.daemon.refusal("agent_output", handle="nobody", command="term_1_1")
    assert refusal.code == "not_found"
    done = team.daemon.cli("agent", "output", handle, "term_1_1", "--json")
    assert json.loads(done.stdout or done.stderr)["error"]["code"] == "not_found"


def test_a_session_url_in_an_output_is_hidden(team: Team) -> None:
    handle = team.spawn("TERM echo http://127.0.0.1/mcp/s/abcdef0123456789", profile="acp-full")
    team.has_outcomes(handle, "completed")
    found = team.call("agent_output", handle=handle, command="term_1_1")
    assert found["output"] == "http://127.0.0.1/mcp/s/\u2039secret\u203a\n"

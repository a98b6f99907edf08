"""One session of a daemon with each agent CLI, offline, from its launch to its close."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.agents_real.clis import Cli
from tests.agents_real.footprint import shown_texts
from tests.agents_real.model_server.script import Json
from tests.agents_real.results import keep
from tests.agents_real.team import Team
from tests.e2e.harness import is_alive
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

AGENT = "tried"


def test_a_session_from_its_launch_to_its_close(cli: Cli, team: Team) -> None:
    seen: Json = {"version": cli.package.version}
    began = time.monotonic()
    team.call("spawn", profile="asks", handle=AGENT, prompt="SAY something to remember")
    ended(team, 1)
    seen["first turn after"] = f"{time.monotonic() - began:.1f} s"
    seen["our tools"] = check_tools(team)
    seen["a denial"] = check_permissions(cli, team)
    check_interrupts(cli, team)
    check_secrets(team)
    seen["after kill -9"] = check_kill(team)
    seen["closed after"] = check_close(team)
    keep(cli.name, "daemon", seen)


def ended(team: Team, number: int) -> str:
    """Wait for the end of the turn with this number; return its outcome."""
    until(lambda: len(team.outcomes(AGENT)) >= number, f"turn {number} has ended")
    return team.outcomes(AGENT)[number - 1]


def send(team: Team, text: str) -> int:
    """Send a message that becomes a turn of its own; return the number of the turn."""
    until(lambda: team.info(AGENT)["state"] in ("idle", "dormant"), "it is idle")
    number: int = team.info(AGENT)["turn"] + 1
    team.call("handoff", target_handle=AGENT, context=text, from_handle="pm")
    return number


def one_request(team: Team) -> Json:
    """Wait until a request is open; return it."""
    until(lambda: len(team.requests(AGENT)) == 1, "a request is open")
    return team.requests(AGENT)[0]


def answer(team: Team, decision: str) -> Json:
    """Answer the open request by the command line; return it as it is then."""
    request = one_request(team)
    done = team.daemon.cli("request", "answer", request["id"], decision)
    assert done.returncode == 0, done.stderr
    [closed] = team.call("request_list", id=request["id"])["requests"]
    assert (closed["state"], closed["by"]) == ("answered", "human")
    assert closed["applied"] is not None
    return request


def check_tools(team: Team) -> str:
    """Reading needs no person. A command on a terminal does, or is refused."""
    team.call("term_spawn", name="build")
    team.call("term_run", name="build", cmd="echo $((6 * 7))")
    turn = send(team, 'CALL aegis_term_read {"name": "build"}\nSAY has read')
    assert ended(team, turn) == "completed"
    assert team.requests(AGENT, "all") == []
    assert "42" in str(team.model.requests()[-1]["messages"])
    assert "has read" in team.text(AGENT)
    turn = send(team, 'CALL aegis_term_run {"name": "build", "cmd": "echo shared"}\nSAY has run')
    until(lambda: bool(team.requests(AGENT)) or len(team.outcomes(AGENT)) >= turn, "its fate")
    asks = bool(team.requests(AGENT))
    if asks:
        assert "aegis_term_run" in answer(team, "allow")["tool"]
    ended(team, turn)
    records = team.call("term_read", name="build", since_seq=-1)["result"]
    ran = [each["writer"] for each in records if each["cmd"] == "echo shared"]
    assert ran == ([f"agent:{AGENT}"] if asks else [])
    return "asks for changes" if asks else "refused: it does not ask"


def check_permissions(cli: Cli, team: Team) -> str:
    """A command of the agent's own runs when a person allows it, and not when it is denied."""
    allowed, denied = team.daemon.root / "allowed", team.daemon.root / "denied"
    turn = send(team, f"{cli.asking.format(file=allowed)}\nSAY made")
    assert str(allowed) in str(answer(team, "allow")["input"])
    assert ended(team, turn) == "completed"
    assert allowed.exists()
    turn = send(team, f"{cli.asking.format(file=denied)}\nSAY not made")
    answer(team, "deny")
    outcome = ended(team, turn)
    assert not denied.exists()
    has_text = "not made" in team.text(AGENT)
    return f"{outcome}, {'with' if has_text else 'without'} a text"


def check_interrupts(cli: Cli, team: Team) -> None:
    """An interrupt ends the turn, and withdraws its request; the next turn works."""
    turn = send(team, "SAY begun\nWAIT 100\nSAY never")
    until(lambda: "WAIT 100" in str(team.model.requests()[-1]["messages"]), "the model is asked")
    team.call("interrupt", handle=AGENT)
    assert ended(team, turn) == "cancelled"
    file = team.daemon.root / "interrupted"
    turn = send(team, f"{cli.asking.format(file=file)}\nSAY never")
    request = one_request(team)
    team.call("interrupt", handle=AGENT)
    assert ended(team, turn) == "cancelled"
    until(lambda: state_of(team, request) == "withdrawn", "the request of the turn is withdrawn")
    turn = send(team, "SAY continued")
    assert ended(team, turn) == "completed"
    # Not of the interrupted turns: on a busy machine claude-agent-acp asks the model once more
    # before it handles the cancellation.
    text = team.text(AGENT, turn)
    assert ("never" in text, "continued" in text) == (False, True)
    assert not file.exists()


def state_of(team: Team, request: Json) -> str:
    [found] = team.call("request_list", id=request["id"])["requests"]
    return str(found["state"])


def check_secrets(team: Team) -> None:
    """No process of the agent has the key of the session in an argument or a variable."""
    key = team.call("session_new", handle=AGENT)["url"].rpartition("/")[2].encode()
    shown = shown_texts(team.pids())
    assert len(shown) > 2
    assert [place for place, text in shown.items() if key in text] == []


def check_kill(team: Team) -> str:
    """A killed agent interrupts its turn, which is reported and not repeated; it continues."""
    turn = send(team, "SAY begun again\nWAIT 100\nSAY never")
    until(lambda: "begun again" in str(team.model.requests()[-1]["messages"]), "it is asked")
    os.kill(team.agent(), signal.SIGKILL)
    assert ended(team, turn) == "interrupted"
    until(lambda: is_reported(team), "its sender is notified")
    assert ended(team, send(team, "SAY back again")) == "completed"
    assert "back again" in team.text(AGENT)
    assert len(team.entries(AGENT, "turn_opened")) == turn + 1
    shown = team.model.requests()[-1]
    assert "something to remember" in shown["system"] + str(shown["messages"])
    rungs = [each["rung"] for each in team.entries(AGENT, "started")]
    return "resumed" if rungs[-1] < 3 else "a new conversation with the last texts"


def is_reported(team: Team) -> bool:
    """Return whether the newest message to the sender reports a turn that was interrupted."""
    messages = team.call("inbox_read", from_handle="pm")["messages"]
    newest = messages[-1:]
    return [each["sender"] for each in newest] == ["substrate"] and "interrupted" in str(newest)


def check_close(team: Team) -> str:
    """Nothing is left of a closed session."""
    pids = team.pids()
    began = time.monotonic()
    done = team.daemon.cli("agent", "stop", AGENT)
    assert done.returncode == 0, done.stderr
    seconds = time.monotonic() - began
    assert [pid for pid in pids if is_alive(pid)] == []
    assert team.pids() == []
    return f"{seconds:.1f} s"

"""Questions of agents to the person by aegis_ask_human, through a whole daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

import aegis
from aegis.client.line import ClientError
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.e2e.test_agents import Team, open_request
from tests.e2e.test_telegram import Chat, ChatDaemon
from tests.e2e.tmux import interface
from tests.fakes.telegram import bot_api
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

TRANSCRIPT, ROSTER = "transcript.jsonl", "sessions.jsonl"
COLOUR = {"question": "Which colour?", "options": ["Red", "Blue"]}


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    started = Team(own_daemon)
    yield started
    own_daemon.stop()


def asked(team: Team, handle: str, **arguments: object) -> dict[str, Any]:
    """Ask as ``handle`` and do not wait."""
    return team.call("ask_human", from_handle=handle, **({**COLOUR, "wait_s": 0} | arguments))


def answered(team: Team, request: dict[str, Any], answer: str = "allow", **values: str) -> str:
    """Answer a request as the person; return the outcome."""
    given = {"values": {COLOUR["question"]: values["text"]}} if values else {}
    reply = team.call(
        "request_answer", id=request["id"], digest=request["digest"], answer=answer, **given
    )
    outcome: str = reply["outcome"]
    return outcome


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_that_waits_gets_the_answer_of_the_command_line(
    own_daemon: DaemonProcess, era: str
) -> None:
    team = Team(own_daemon)
    replies: list[Any] = []
    own_daemon.call("session_new", handle="pm")

    async def ask(client: Any) -> None:
        result = await client.call_tool("aegis_ask_human", COLOUR)
        replies.append(result.structured_content)

    with trio.fail_after(GUARD_S):
        async with connect_mcp_to(own_daemon, era, "pm") as client, trio.open_nursery() as nursery:
            nursery.start_soon(ask, client)
            request = await trio.to_thread.run_sync(open_request, team)
            assert (request["kind"], request["handle"]) == ("question", "pm")
            assert (request["tool"], request["needs_person"]) == ("ask_human", True)
            assert replies == []
            words = ("request", "answer", request["id"], "allow", "--set", "1=Blue")
            done = await trio.to_thread.run_sync(own_daemon.cli, *words)
            assert done.returncode == 0, done
        async with connect_mcp_to(own_daemon, era, "pm") as client:
            read = await client.call_tool("aegis_inbox_read", {})
            messages = (read.structured_content or {})["messages"]
    assert replies == [{"request_id": request["id"], "state": "answered", "answer": "Blue"}]
    assert messages == []  # the caller has the answer
    own_daemon.stop()


def test_an_open_question_survives_a_kill_and_its_answer_comes_as_a_message(team: Team) -> None:
    first = asked(team, "pm")
    assert (first["state"], first["answer"]) == ("open", None)
    assert asked(team, "PM") == first  # the same question waits for the same answer
    other = asked(team, "pm", question="Another?")
    assert other["request_id"] != first["request_id"]
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    [request] = team.call("request_list", id=first["request_id"])["requests"]
    assert request["state"] == "open"
    assert answered(team, request, text="a green one") == "applied"
    until(lambda: len(team.inbox("pm")) == 1, "the answer is a message")
    [message] = team.inbox("pm")
    assert message["sender"] == "human"
    assert message["body"].endswith(f"(request {first['request_id']}):\na green one")
    again = asked(team, "pm")
    assert again["request_id"] != first["request_id"]  # it can be asked again
    [second] = team.call("request_list", id=again["request_id"])["requests"]
    assert answered(team, second, "deny") == "applied"
    until(lambda: len(team.inbox("pm")) == 2, "the refusal is a message")
    assert "the person declined to answer" in team.inbox("pm")[1]["body"]


def test_a_question_of_a_session_outlives_its_turn_and_ends_with_it(team: Team) -> None:
    ann = team.spawn("SAY hello")
    team.has_turns(ann, 1)
    asked(team, ann)
    team.send(ann, "SAY more")
    team.has_turns(ann, 2)
    request = open_request(team)
    assert (request["handle"], request["turn"]) == (ann, None)
    assert request["session"] == team.info(ann)["id"]
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    assert open_request(team)["id"] == request["id"]
    team.call("rename", old_handle=ann, new_handle="zoe")
    assert open_request(team)["handle"] == "zoe"
    assert answered(team, request, text="SAY it is Blue") == "applied"
    team.has_turns("zoe", 3)
    assert team.texts("zoe")[-1] == "it is Blue"
    asked(team, "zoe")
    last = open_request(team)
    team.call("close", handle="zoe")
    until(lambda: not team.call("request_list")["requests"], "the question is withdrawn")
    assert answered(team, last, text="Blue") == "withdrawn"
    [closed] = team.call("request_list", id=last["id"])["requests"]
    assert closed["withdrawn"] == "its session was closed"


def test_a_session_that_rests_on_its_question_is_shown_as_waiting_in_every_face(
    tmp_path: Path,
) -> None:
    with bot_api() as api:
        chat = Chat(ChatDaemon(tmp_path), api)
        ann = chat.spawn("SAY hello", handle="ann")
        chat.has_turns(ann, 1)
        with interface(chat.daemon, tmp_path / "tmux") as window:
            window.shows("ann")
            asked(chat, ann)
            request = open_request(chat)
            chat.is_in(ann, "blocked")
            waits = chat.info(ann)["blocked"]
            assert (waits["kind"], waits["title"]) == ("question", "Which colour?")
            assert (waits["request_id"], waits["in_turn"]) == (request["id"], False)
            for words in (("status",), ("agent", "list"), ("agent", "show", ann)):
                shown = chat.daemon.cli(*words).stdout
                assert "🟡 blocked" in shown
                assert "question: Which colour?" in shown
            window.shows("🟡 ann*")
            window.press("M-1")
            window.shows("waits for you: question: Which colour?", "F2 answers")
            api.write("/list")
            chat.shows("🟡 ann - blocked: Which colour?")
            chat.daemon.kill()
            chat.start()
            chat.is_in(ann, "blocked")  # a session without a process waits too
            assert answered(chat, open_request(chat), text="SAY it is Blue") == "applied"
            chat.has_turns(ann, 2)
            chat.is_in(ann, "idle")
            window.shows("ann · idle")
        chat.daemon.stop()


@pytest.mark.parametrize(
    "place",
    [
        *(f"ledger.append.{when}[{TRANSCRIPT}]" for when in ("before", "after")),
        *(f"ledger.append.{when}[{ROSTER}]" for when in ("before", "after")),
        *(f"ledger.append.{when}[requests.jsonl]" for when in ("before", "after")),
        "actor.receive.after[AgentSession]",
    ],
)
def test_a_kill_while_its_session_is_closed_leaves_no_question_open(team: Team, place: str) -> None:
    ann = team.spawn("SAY hello", handle="ann")
    team.has_turns(ann, 1)
    asked(team, ann)
    request = open_request(team)
    team.daemon.stop()
    team.daemon.launch("--port", "0", "--trust", faults=f"{place}@1=kill")
    if team.daemon.wait_ready():
        with suppress(ClientError, OSError, ValueError):
            team.call("close", handle=ann)
    assert team.daemon.wait_dead(GUARD_S)
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    if team.info(ann)["state"] != "closed":  # the close was not stored, and nobody was told it was
        assert open_request(team)["id"] == request["id"]
        team.call("close", handle=ann)
    until(lambda: not team.call("request_list")["requests"], "the question is withdrawn")
    assert answered(team, request, text="Blue") == "withdrawn"
    [closed] = team.call("request_list", id=request["id"])["requests"]
    assert closed["withdrawn"] == "its session was closed"
    assert team.inbox(ann) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_its_url_is_revoked_leaves_no_question_open(team: Team, when: str) -> None:
    team.call("session_new", handle="Pm")
    first = asked(team, "pm")["request_id"]
    team.daemon.stop()
    point = f"ledger.append.{when}[requests.jsonl]@1=kill"
    team.daemon.launch("--port", "0", "--trust", faults=point)
    assert team.daemon.wait_ready()
    with suppress(ClientError, OSError, ValueError):
        team.call("session_revoke", handle="PM")
    assert team.daemon.wait_dead(GUARD_S)
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    assert team.call("session_list")["handles"] == []
    until(lambda: not team.call("request_list")["requests"], "the question is withdrawn")
    [closed] = team.call("request_list", id=first)["requests"]
    assert closed["withdrawn"] == "its session URL was revoked"
    # The revocation is over: a question of the next session with this handle stays.
    keys = team.daemon.root / ".aegis/state/keys.json"
    until(lambda: "revoked" not in keys.read_text(), "the note is dropped")
    team.call("session_new", handle="pm")
    second = asked(team, "pm")["request_id"]
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    assert [each["id"] for each in team.call("request_list")["requests"]] == [second]


def test_a_kill_while_its_session_is_renamed_leaves_no_old_handle(team: Team) -> None:
    ann = team.spawn("SAY hello", handle="ann")
    team.has_turns(ann, 1)
    asked(team, ann)
    request = open_request(team)
    team.daemon.stop()
    team.daemon.launch(
        "--port", "0", "--trust", faults="ledger.append.before[requests.jsonl]@1=kill"
    )
    assert team.daemon.wait_ready()
    with suppress(ClientError, OSError, ValueError):
        team.call("rename", old_handle=ann, new_handle="zoe")
    assert team.daemon.wait_dead(GUARD_S)
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    until(lambda: open_request(team)["handle"] == "zoe", "the request shows the new handle")
    assert open_request(team)["id"] == request["id"]


async def test_a_question_ends_with_the_session_url_and_its_caller_learns_it(
    own_daemon: DaemonProcess,
) -> None:
    team = Team(own_daemon)
    answers: list[Any] = []

    async def ask() -> None:
        async with aegis.connect(team.daemon.root, handle="pm") as agent:
            answers.append(await agent.requests.ask("Which colour?", options=["Red"]))

    with trio.fail_after(GUARD_S):
        async with trio.open_nursery() as nursery:
            team.call("session_new", handle="pm")
            nursery.start_soon(ask)
            await trio.to_thread.run_sync(open_request, team)
            team.call("session_revoke", handle="pm")
    assert (answers[0].state, answers[0].answer) == ("withdrawn", None)
    own_daemon.stop()


def test_the_command_line_asks_as_a_handle_and_only_as_one(team: Team) -> None:
    asking = team.daemon.cli("--as", "pm", "request", "ask", "Go on?", "--wait", "0")
    assert asking.returncode == 1
    request = open_request(team)
    assert f"request {request['id']} is open" in asking.stderr
    refused = team.daemon.cli("request", "ask", "Go on?")
    assert refused.returncode != 0
    assert "you are the person; say in --as HANDLE which agent asks" in refused.stderr
    assert json.loads(team.daemon.cli("request", "list", "--json").stdout)["requests"]


def test_a_worker_with_an_open_question_is_not_done(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon, queues={"build": {"agent": "asks", "max_parallel": 1}})
    payload = "ASK make\nSAY first"
    task = team.call("enqueue", queue="build", payload=payload, from_handle="pm")["task_id"]

    def status() -> dict[str, Any]:
        return team.call("task_status", task_id=task)

    permission = open_request(team)
    worker = status()["worker"]
    asked(team, worker)
    assert answered(team, permission) == "applied"
    team.has_turns(worker, 1)
    assert answered(team, open_request(team), text="SAY second") == "applied"
    until(lambda: status()["status"] == "completed", "the task is completed")
    assert status()["result"] == "second"
    own_daemon.stop()

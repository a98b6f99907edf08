"""Agent sessions of a real daemon, with a stand-in for the agent's program."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import yaml

from tests.e2e.harness import GUARD_S, DaemonProcess, command_of, is_alive, processes_with
from tests.resources.waiting import until

pytestmark = pytest.mark.real

STAND_IN = Path(__file__).parents[1] / "fakes" / "agents" / "main.py"


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def agents_of(daemon: DaemonProcess) -> list[int]:
    """The processes of agents of this root, by their cookie."""
    begin = f"AEGIS_TERMINAL={daemon.root}//"
    return [int(each.split()[0]) for each in processes_with(begin)]


class Team:
    """A daemon whose profiles start stand-ins, and calls of it under several handles."""

    def __init__(
        self,
        daemon: DaemonProcess,
        faults: str = "",
        more: dict[str, dict[str, Any]] | None = None,
        limits: dict[str, int] | None = None,
        queues: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.daemon = daemon
        profiles = (more or {}) | {
            name: {
                "provider": "claude",
                "permission": permission,
                "command": [sys.executable, str(STAND_IN), "claude"],
            }
            for name, permission in (("asks", "ask"), ("writes", "write"), ("all", "full"))
        }
        configuration = {"agents": profiles, "default_agent": "asks", "limits": limits or {}}
        configuration |= {"queues": queues} if queues else {}
        (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
        daemon.start("--port", "0", "--trust", faults=faults)

    def call(self, command: str, /, **arguments: object) -> dict[str, Any]:
        return self.daemon.call(command, **arguments)

    def spawn(self, prompt: str | None = None, **arguments: object) -> str:
        given = {} if prompt is None else {"prompt": prompt}
        handle: str = self.call("spawn", **given, **arguments)["handle"]
        return handle

    def send(self, handle: str, text: str, sender: str = "pm") -> None:
        self.call("handoff", target_handle=handle, context=text, from_handle=sender)

    def info(self, handle: str) -> dict[str, Any]:
        return self.daemon.look("agent_show", handle=handle)

    def is_in(self, handle: str, state: str) -> None:
        until(lambda: self.info(handle)["state"] == state, f"{handle} is {state}")

    def rests(self, handle: str) -> None:
        """Wait until no message waits and no turn runs, nor one that is opened and not sent yet."""
        assert self.call("agent_wait", handle=handle, timeout=GUARD_S)["outcome"] != "timeout"

    def entries(self, handle: str, *kinds: str) -> list[dict[str, Any]]:
        found = self.daemon.look("session_read", handle=handle, last_n=1000)["result"]
        return [each["fields"] | {"seq": each["seq"]} for each in found if each["kind"] in kinds]

    def outcomes(self, handle: str) -> list[str]:
        return [each["outcome"] for each in self.entries(handle, "turn_ended")]

    def has_outcomes(self, handle: str, *outcomes: str) -> None:
        self._until(handle, lambda: self.outcomes(handle) == [*outcomes], f"they end as {outcomes}")

    def has_turns(self, handle: str, number: int) -> None:
        self._until(handle, lambda: len(self.outcomes(handle)) == number, f"{number} have ended")

    def _until(self, handle: str, holds: Callable[[], bool], what: str) -> None:
        try:
            until(holds, f"turns of {handle}: {what}")
        except AssertionError as error:
            error.add_note(f"its turns end as {self.outcomes(handle)}: {self.info(handle)}")
            raise

    def texts(self, handle: str) -> list[str]:
        """The texts of the agent; the stand-in says the headers of messages too."""
        events = [each["event"] for each in self.entries(handle, "event")]
        texts = [each["text"] for each in events if each["type"] == "assistant_text"]
        return [each for each in texts if not each.startswith("> from ")]

    def inbox(self, handle: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.call("inbox_read", from_handle=handle)["messages"]
        return messages

    def agent(self) -> int:
        """The process of the only agent's program, not of its guard."""
        pids = [each for each in agents_of(self.daemon) if "claude" in command_of(each)]
        [pid] = [each for each in pids if "guard.py" not in command_of(each)]
        return pid


def open_request(team: Team) -> dict[str, Any]:
    """The only open request, once it is shown."""

    def requests() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = team.call("request_list")["requests"]
        return found

    until(lambda: len(requests()) == 1, "the request is shown")
    return requests()[0]


def test_a_prompt_becomes_the_first_turn_and_a_message_the_next(team: Team) -> None:
    handle = team.spawn("SAY hello")
    team.has_outcomes(handle, "completed")
    team.send(handle, "SAY again")
    team.has_outcomes(handle, "completed", "completed")
    assert team.texts(handle) == ["hello", "again"]
    opened = team.entries(handle, "turn_opened")
    assert [each["turn"] for each in opened] == [1, 2]
    assert opened[0]["text"].startswith("> from human · ")
    assert opened[1]["text"].startswith("> from agent:pm · ")
    # It is taken out of the inbox a moment after the turn that it opened has ended.
    until(lambda: not team.call("inbox_read", from_handle=handle)["messages"], "it is taken out")
    assert team.info(handle)["state"] == "idle"


def test_a_transcript_shows_the_texts_of_a_turn_that_has_not_ended(team: Team) -> None:
    handle = team.spawn("SAY first\nHANG")
    until(lambda: team.texts(handle) == ["first"], "the text is there")
    assert team.outcomes(handle) == []


def test_messages_during_a_turn_become_one_turn_with_both_headers(team: Team) -> None:
    handle = team.spawn("HANG")
    team.is_in(handle, "working")
    team.send(handle, "SAY one", "ann")
    team.send(handle, "SAY two", "bob")
    until(lambda: team.info(handle)["waiting"] == 2, "both wait")
    team.call("interrupt", handle=handle)
    team.has_outcomes(handle, "cancelled", "completed")
    text = team.entries(handle, "turn_opened")[1]["text"]
    assert (text.count("> from agent:ann"), text.count("> from agent:bob")) == (1, 1)
    assert team.texts(handle) == ["one", "two"]


@pytest.mark.parametrize("of", ["agent", "guard"])
def test_a_killed_agent_interrupts_its_turn_says_so_and_is_resumed(team: Team, of: str) -> None:
    handle = team.spawn("HANG", from_handle="pm")
    team.is_in(handle, "working")
    agent = team.agent()
    guard = int(Path(f"/proc/{agent}/stat").read_text().split()[3])
    os.kill(agent if of == "agent" else guard, signal.SIGKILL)
    team.has_outcomes(handle, "interrupted")
    until(lambda: len(team.inbox("pm")) == 1, "the sender is notified")
    [message] = team.inbox("pm")
    assert (message["sender"], message["status"]) == ("substrate", "error")
    assert "turn 1" in message["body"]
    team.is_in(handle, "idle")
    team.send(handle, "SAY back")
    team.has_outcomes(handle, "interrupted", "completed")
    assert [each["rung"] for each in team.entries(handle, "started")] == [1, 1]
    assert not is_alive(agent)


def test_a_killed_daemon_loses_no_message_and_repeats_no_turn(team: Team) -> None:
    handle = team.spawn("HANG", from_handle="pm")
    team.is_in(handle, "working")
    team.send(handle, "SAY later")
    agent = team.agent()
    team.daemon.kill()
    until(lambda: not is_alive(agent), "the guard has ended the agent")
    team.daemon.start("--port", "0", "--trust")
    team.has_outcomes(handle, "interrupted", "completed")
    assert team.texts(handle) == ["later"]
    opened = team.entries(handle, "turn_opened")
    assert [each["text"].splitlines()[1] for each in opened] == ["HANG", "SAY later"]
    until(lambda: team.inbox("pm") != [], "the sender is notified")
    assert [each["status"] for each in team.inbox("pm")] == ["error"]


def test_each_of_more_messages_than_are_read_at_a_time_is_delivered_once_in_order(
    team: Team,
) -> None:
    handle = team.spawn("HANG")
    team.is_in(handle, "working")
    sent = ["HANG", *(f"SAY {number}" for number in range(1, 1_250))]
    for each in sent[:-1]:
        team.send(handle, each)
    until(lambda: team.info(handle)["waiting"] == len(sent) - 1, "all wait")
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    team.has_outcomes(handle, "interrupted")
    team.is_in(handle, "working")
    team.send(handle, sent[-1])  # while earlier ones are unread

    def left() -> int:
        taken = sum(len(each["messages"]) for each in team.entries(handle, "turn_opened")[1:])
        waiting: int = team.info(handle)["waiting"]
        return len(sent) - taken - waiting

    until(lambda: left() == 0, "each has a turn or waits")
    team.call("interrupt", handle=handle)
    team.rests(handle)
    assert set(team.outcomes(handle)[2:]) == {"completed"}
    texts = [each["text"] for each in team.entries(handle, "turn_opened")[1:]]
    lines = "\n\n".join(texts).splitlines()
    assert [each for each in lines if each and not each.startswith("> ")] == sent
    until(lambda: not team.inbox(handle), "all are read")


def test_sessions_are_dormant_after_a_restart_and_their_handles_are_kept(team: Team) -> None:
    handle = team.spawn("SAY hello", handle="builder")
    team.has_outcomes(handle, "completed")
    assert team.daemon.stop() == 0
    assert agents_of(team.daemon) == []
    team.daemon.start("--port", "0", "--trust")
    [info] = team.call("list_sessions")["result"]
    assert (info["handle"], info["state"], info["turn"]) == ("builder", "dormant", 1)
    assert agents_of(team.daemon) == []


def test_a_permission_is_a_request_and_its_answer_goes_to_the_agent(team: Team) -> None:
    handle = team.spawn("ASK touch x\nSAY done")
    team.is_in(handle, "blocked")
    request = open_request(team)
    assert (request["handle"], request["kind"], request["tool"]) == (handle, "permission", "Bash")
    assert request["input"] == {"command": "touch x"}

    def blocked_by() -> str | None:
        blocker: str | None = team.info(handle)["blocked"]["request_id"]
        return blocker

    until(lambda: blocked_by() == request["id"], "the agent names what blocks it")
    named = {"id": request["id"], "digest": request["digest"]}
    assert team.call("request_answer", **named, answer="allow")["outcome"] == "applied"
    late = team.call("request_answer", **named, answer="deny")
    assert late["outcome"] == "already_answered"
    team.has_outcomes(handle, "completed")
    [closed] = team.call("request_list", state="closed")["requests"]
    assert (closed["state"], closed["by"], bool(closed["applied"])) == ("answered", "human", True)


def acp_profile(permission: str) -> dict[str, Any]:
    command = [sys.executable, str(STAND_IN), "acp"]
    return {
        "provider": "acp",
        "permission": permission,
        "asking_mode": "default",
        "command": command,
    }


@pytest.mark.parametrize(
    ("profile", "order", "is_passed_on"),
    [("asks", "ASK rm x", False), ("acp", "ASK rm x", True), ("acp", "TERM rm x", False)],
)
def test_the_message_of_a_refusal_reaches_the_agent_once(
    own_daemon: DaemonProcess, profile: str, order: str, is_passed_on: bool
) -> None:
    team = Team(own_daemon, more={"acp": acp_profile("ask")})
    handle = team.spawn(f"{order}\nSAY done", profile=profile)
    request = open_request(team)["id"]
    reason = "SAY use another way"
    done = own_daemon.cli("request", "answer", request, "deny", "--message", reason)
    assert done.returncode == 0, done.stderr
    team.has_outcomes(handle, *(["completed"] * (1 + is_passed_on)))
    opened = team.entries(handle, "turn_opened")
    assert [reason in each["text"] for each in opened] == [False, True][: 1 + is_passed_on]
    if is_passed_on:
        assert opened[1]["text"].startswith("> from human · ")
        assert team.texts(handle)[-1] == "use another way"
    again = own_daemon.cli("request", "answer", request, "deny", "--message", reason)
    assert again.returncode == 1
    own_daemon.kill()
    own_daemon.start("--port", "0", "--trust")
    team.send(handle, "SAY next")
    team.has_turns(handle, 2 + is_passed_on)
    assert "next" in team.texts(handle)[-1]


def test_an_acp_agent_that_asks_nobody_runs_nothing_over_its_own_url(
    own_daemon: DaemonProcess,
) -> None:
    profiles = {f"acp-{each}": acp_profile(each) for each in ("read", "ask", "write", "full")}
    team = Team(own_daemon, more=profiles)
    spawn = 'aegis_term_spawn {"name": "NAME"}'
    for permission, runs in (("read", False), ("ask", False), ("write", False), ("full", True)):
        name = f"of-{permission}"
        order = spawn.replace("NAME", name)
        handle = team.spawn(f"MCP {order}", profile=f"acp-{permission}")
        team.has_outcomes(handle, "completed")
        said = team.texts(handle)[-1]
        assert ("is not allowed" in said or "needs the approval" in said) is not runs, said
        listed = [each["name"] for each in team.call("term_list")["result"]]
        assert (name in listed) is runs, permission
    handle = team.spawn("MCP aegis_status {}\nMCP aegis_term_list {}", profile="acp-ask")
    team.has_outcomes(handle, "completed")


def test_a_call_that_a_person_allowed_is_run_once_and_no_other(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon, more={"acp": acp_profile("ask")})
    one, other = ('aegis_term_spawn {"name": "one"}', 'aegis_term_spawn {"name": "two"}')
    handle = team.spawn(f"PERMIT {one}\nMCP {other}\nMCP {one}\nMCP {one}", profile="acp")
    request = open_request(team)
    named = {"id": request["id"], "digest": request["digest"]}
    team.call("request_answer", **named, answer="allow")
    team.has_outcomes(handle, "completed")
    _, *results = team.texts(handle)
    assert ["needs the approval" in each for each in results] == [True, False, True]
    assert [each["name"] for each in team.call("term_list")["result"]] == ["one"]


def test_a_shell_command_that_a_person_allowed_allows_no_tool_that_it_names(
    own_daemon: DaemonProcess,
) -> None:
    team = Team(own_daemon, more={"acp": acp_profile("ask")})
    handle = team.spawn(
        'ASK grep -r aegis_term_spawn .\nMCP aegis_term_spawn {"name": "one"}', profile="acp"
    )
    request = open_request(team)
    named = {"id": request["id"], "digest": request["digest"]}
    team.call("request_answer", **named, answer="allow")
    team.has_outcomes(handle, "completed")
    assert "needs the approval" in team.texts(handle)[-1]
    assert team.call("term_list")["result"] == []


@pytest.mark.parametrize(
    ("order", "ways"),
    [
        ("ASK touch x", ["allow", "deny", "cancel"]),
        (
            'QUESTION {"questions": [{"question": "Which?", "options": [{"label": "A"}]}]}',
            ["allow --set 1=VALUE", "deny", "cancel"],
        ),
        (
            'FORM {"type": "object", "properties": {"a b": {"type": "string"}}}',
            ["allow --set 'a b=VALUE'", "deny", "cancel"],
        ),
    ],
)
def test_each_way_to_answer_that_is_shown_works(team: Team, order: str, ways: list[str]) -> None:
    handle = team.spawn()
    for number, way in enumerate(ways, 1):
        team.send(handle, f"{order}\nSAY done")
        id_ = open_request(team)["id"]
        shown = team.daemon.cli("request", "show", id_)
        lines = [each.strip() for each in (shown.stdout + shown.stderr).splitlines()]
        offered = [each for each in lines if each.startswith("aegis-actors request answer")]
        assert offered == [f"aegis-actors request answer {id_} {each}" for each in ways]
        words = shlex.split(way.replace("VALUE", "A"))
        done = team.daemon.cli("request", "answer", id_, *words)
        assert done.returncode == 0, (way, done.stderr)
        team.has_turns(handle, number)


def test_a_request_is_withdrawn_with_the_death_of_its_agent(team: Team) -> None:
    handle = team.spawn("ASK touch x")
    team.is_in(handle, "blocked")
    request = open_request(team)
    os.kill(team.agent(), signal.SIGKILL)
    team.has_outcomes(handle, "interrupted")
    until(lambda: team.call("request_list")["requests"] == [], "it is withdrawn")
    named = {"id": request["id"], "digest": request["digest"]}
    assert team.call("request_answer", **named, answer="allow")["outcome"] == "withdrawn"


def test_an_agent_goes_on_when_nobody_answers_in_time(own_daemon: DaemonProcess) -> None:
    command = [sys.executable, str(STAND_IN), "claude"]
    profile = {"provider": "claude", "command": command, "answer_within_s": 1}
    team = Team(own_daemon, more={"alone": profile})
    handle = team.spawn("ASK touch x\nSAY done", profile="alone")
    team.has_outcomes(handle, "completed")
    until(lambda: team.call("request_list")["requests"] == [], "the request is withdrawn")
    [closed] = team.call("request_list", state="closed")["requests"]
    assert (closed["state"], closed["withdrawn"], closed["by"]) == (
        "withdrawn",
        "nobody answered",
        None,
    )
    assert "nobody answered the request in time" in own_daemon.cli("agent", "read", handle).stdout


def test_a_profile_answers_first_and_the_transcript_says_why(team: Team) -> None:
    handle = team.spawn("ASK ls\nSAY done", profile="all")
    team.has_outcomes(handle, "completed")
    assert team.call("request_list", state="all")["requests"] == []
    [decided] = team.entries(handle, "decided")
    assert decided["answer"]["kind"] == "allow_once"
    assert "approved" in decided["why"]


def test_a_closed_session_leaves_no_process_and_its_handle_is_not_given_again(team: Team) -> None:
    handle = team.spawn("HANG", handle="builder")
    team.is_in(handle, "working")
    assert team.call("close", handle=handle)["state"] == "closed"
    assert agents_of(team.daemon) == []
    until(lambda: team.call("list_sessions")["result"] == [], "it is not listed")
    [closed] = team.call("list_sessions", closed=True)["result"]
    assert closed["state"] == "closed"
    error = team.daemon.refusal("spawn", handle="Builder")
    assert error.code == "already_exists"
    assert "no handle is given twice" in str(error)
    assert team.daemon.refusal("interrupt", handle=handle).code == "not_found"


def test_a_session_reaches_only_its_own_children_and_no_higher_profile(team: Team) -> None:
    mine = team.spawn(handle="mine", from_handle="human")
    other = team.spawn(handle="other")
    child = team.call("spawn", from_handle=mine, handle="child")["handle"]
    assert team.info(child)["spawned_by"] == mine
    for verb in ("close", "interrupt", "session_read"):
        error = team.daemon.refusal(verb, handle=other, from_handle=mine)
        assert error.code == "forbidden", verb
    team.call("session_read", handle=child, from_handle=mine)
    team.call("session_read", handle=mine, from_handle=mine)
    team.send(child, "SAY hello child")
    team.send(other, "SAY hello other")
    for handle in (child, other):
        team.has_outcomes(handle, "completed")

    def found(**wanted: object) -> list[str]:
        reply = team.call("history", kind="transcript", word="hello", **wanted)
        return sorted({each["name"] for each in reply["result"] if each["outcome"] == "text"})

    assert found() == ["child", "other"]
    assert found(from_handle=mine) == ["child"]
    assert found(from_handle=child) == ["child"]
    assert found(from_handle=mine, name=other) == []
    team.call("rename", old_handle=child, new_handle="grown")
    assert found(name=child) == ["grown"]
    team.call("close", handle=child)
    assert found(name="grown") == ["grown"]
    error = team.daemon.refusal("spawn", profile="all", from_handle=mine)
    assert error.code == "forbidden"
    assert "permission" in str(error)


def test_a_session_cannot_spawn_without_bound(team: Team) -> None:
    parent = team.spawn(handle="top")
    for depth in range(1, 4):
        parent = team.call("spawn", from_handle=parent, handle=f"level{depth}")["handle"]
    error = team.daemon.refusal("spawn", from_handle=parent)
    assert error.code == "unavailable"
    assert "limits.spawn_depth" in str(error)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ({"profile": "nobody"}, "not_found", "there is no profile 'nobody'"),
        ({"handle": "human"}, "invalid_request", "reserved"),
        ({"workspace": "nowhere"}, "not_found", "there is no workspace 'nowhere'"),
    ],
)
def test_a_bad_spawn_is_refused_in_one_sentence_and_leaves_nothing(
    team: Team, arguments: dict[str, object], code: str, words: str
) -> None:
    error = team.daemon.refusal("spawn", **arguments)
    assert (error.code, words in str(error)) == (code, True)
    assert team.call("list_sessions", closed=True)["result"] == []


LARGE = 17 * 2**20
"""Bytes of a text that make a frame larger than the limit."""


def raw_frames(team: Team, *frames: dict[str, Any]) -> str:
    """Return the order to send these frames as they are."""
    path = team.daemon.root.with_name("raw")
    path.write_text("".join(f"{json.dumps(each)}\n" for each in frames))
    return f"RAW {path}"


@pytest.mark.long
@pytest.mark.parametrize("family", ["claude", "acp"])
def test_an_item_that_is_too_large_is_reported_and_the_session_goes_on(
    own_daemon: DaemonProcess, family: str
) -> None:
    command = [sys.executable, str(STAND_IN), family]
    profile: dict[str, Any] = {"provider": family, "permission": "ask", "command": command}
    profile |= {"asking_mode": "default"} if family == "acp" else {}
    team = Team(own_daemon, more={"sends": profile})
    frames: list[dict[str, Any]]
    if family == "claude":
        read = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.pdf"}}
        found = {"type": "tool_result", "tool_use_id": "t1", "content": "x" * LARGE}
        run = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "x" * LARGE}}
        frames = [
            {"type": "assistant", "message": {"id": "m", "content": [read]}},
            {"type": "user", "message": {"content": [found]}},
            {"type": "control_request", "request_id": "r1", "request": run},
        ]
    else:
        image = {"type": "image", "mimeType": "image/png", "data": "A" * LARGE}
        shown = {"toolCallId": "t1", "content": [{"type": "content", "content": image}]}
        updates = [
            {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read a.png"},
            {"sessionUpdate": "tool_call_update", "status": "completed", **shown},
        ]
        write = {"sessionId": "ses_1", "path": "/a", "content": "x" * LARGE}
        frames = [
            {"method": "session/update", "params": {"sessionId": "ses_1", "update": each}}
            for each in updates
        ]
        frames.append({"id": 77, "method": "fs/write_text_file", "params": write})
    handle = team.spawn(f"{raw_frames(team, *frames)}\nSAY after it", profile="sends")
    team.has_outcomes(handle, "completed")
    events = [each["event"] for each in team.entries(handle, "event")]
    large = [(each["kind"], each["size"] > LARGE) for each in events if each["type"] == "too_large"]
    second = "user" if family == "claude" else "session/update"
    third = "control_request" if family == "claude" else "fs/write_text_file"
    assert large == [(second, True), (third, True)]
    assert [each["id"] for each in events if each["type"] == "tool_result"] == ["t1"]
    assert team.call("request_list", state="all")["requests"] == []
    team.send(handle, "SAY next")
    team.has_outcomes(handle, "completed", "completed")
    assert team.texts(handle) == ["after it", "next"]
    assert len(team.entries(handle, "started")) == 1
    assert "too large, 17.0 MiB" in own_daemon.cli("agent", "read", handle).stdout


@pytest.mark.parametrize("family", ["claude", "acp"])
@pytest.mark.parametrize("program", ["no-such-agent", "/nonexistent/agent", "./no-such-agent"])
def test_a_program_that_is_not_installed_is_refused_with_the_remedy(
    own_daemon: DaemonProcess, family: str, program: str
) -> None:
    mode = {"asking_mode": "default"} if family == "acp" else {}
    profile = {"provider": family, "command": [program], **mode}
    team = Team(own_daemon, more={"missing": profile})
    for prompt in ({}, {"prompt": "SAY hello"}):
        error = own_daemon.refusal("spawn", profile="missing", **prompt)
        assert (error.code, f"{program!r} of the profile 'missing'" in str(error)) == (
            "not_found",
            True,
        )
        assert "install it" in str(error)
    done = own_daemon.cli("agent", "launch", "missing", "SAY hello")
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "install it" in done.stderr
    assert team.call("list_sessions", closed=True)["result"] == []
    problems = {each["profile"]: each["problem"] for each in team.call("list_agents")["result"]}
    assert "install it" in problems["missing"]
    assert problems["asks"] == ""


def test_a_closed_session_takes_no_message_until_it_is_resumed(team: Team) -> None:
    closed = team.spawn("SAY hello", handle="bob")
    team.has_outcomes(closed, "completed")
    team.call("rename", old_handle="bob", new_handle="rob")
    team.call("close", handle="rob")
    for handle, by in (("bob", None), ("rob", None), ("rob", "pm")):
        error = team.daemon.refusal(
            "handoff", target_handle=handle, context="SAY x", from_handle=by
        )
        assert (error.code, "'rob' is closed and reads no messages" in str(error)) == (
            "unavailable",
            True,
        )
        assert "agent launch --resume rob" in str(error)
    for words in (("agent", "send", "rob", "SAY x"), ("inbox", "send", "rob", "SAY x")):
        done = team.daemon.cli(*words)
        assert (done.returncode != 0, "is closed and reads no messages" in done.stderr) == (
            True,
            True,
        ), words
    assert team.daemon.cli("agent", "launch", "--resume", "rob").returncode == 0
    team.send("rob", "SAY again")
    team.has_outcomes("rob", "completed", "completed")
    team.call("close", handle="rob")
    team.call("agent_purge", handle="rob")
    assert team.daemon.refusal("handoff", target_handle="rob", context="x").code == "not_found"


@pytest.mark.long
def test_no_secret_is_in_an_argument_or_the_environment_of_the_agents_tree(team: Team) -> None:
    handle = team.spawn("SPAWN setsid\nHANG")
    team.is_in(handle, "working")
    url = team.call("session_new", handle=handle)["url"]
    secrets = [url.rsplit("/", 1)[1].encode(), team.daemon.endpoint.token.encode()]
    # The guard, the agent, and the program that it starts in its turn.
    until(lambda: len(agents_of(team.daemon)) >= 3, "the agent starts a program")
    for pid in agents_of(team.daemon):
        for name in ("cmdline", "environ"):
            content = Path(f"/proc/{pid}/{name}").read_bytes()
            assert not any(secret in content for secret in secrets), (pid, name)
    transcript = json.dumps(team.call("session_read", handle=handle, last_n=1000))
    assert url not in transcript
    team.call("close", handle=handle)


def test_what_an_earlier_daemon_and_its_guard_left_is_ended_at_the_start(team: Team) -> None:
    handle = team.spawn("STAY\nSPAWN setsid\nHANG")
    team.is_in(handle, "working")
    until(lambda: len(agents_of(team.daemon)) >= 3, "the agent starts a program")
    pids = agents_of(team.daemon)
    [guard] = [each for each in pids if "guard.py" in command_of(each)]
    os.kill(guard, signal.SIGSTOP)  # it cannot see the daemon's end
    team.daemon.kill()
    assert all(is_alive(each) for each in pids)
    team.daemon.start("--port", "0", "--trust")
    assert not any(is_alive(each) for each in pids)
    team.has_outcomes(handle, "interrupted")


@pytest.mark.parametrize("place", ["[AgentSession]@2", "[AgentSession]@4", "[Driver]@2"])
def test_an_actor_that_crashes_costs_at_most_the_turn_and_says_so(
    own_daemon: DaemonProcess, place: str
) -> None:
    team = Team(own_daemon, faults=f"actor.receive.before{place}=crash")
    handle = team.spawn("SAY one", from_handle="pm")
    team.has_turns(handle, 1)
    for number in range(2, 5):
        team.send(handle, f"SAY {number}")
        team.has_turns(handle, number)
    opened = [each["text"] for each in team.entries(handle, "turn_opened")]
    assert [each.splitlines()[1] for each in opened] == ["SAY one", "SAY 2", "SAY 3", "SAY 4"]
    assert '"crashed"' in own_daemon.log
    assert set(team.outcomes(handle)) <= {"completed", "interrupted"}
    lost = team.outcomes(handle).count("interrupted")
    assert lost <= 1
    until(lambda: len(team.inbox("pm")) >= lost, "the sender is notified")
    assert len(team.inbox("pm")) == lost
    team.call("close", handle=handle)
    assert agents_of(own_daemon) == []
    own_daemon.kill()  # its log has the crash that was ordered


def test_no_verb_hands_on_what_an_agent_would_have_a_terminal_obey(team: Team) -> None:
    evil = "\x1b]0;evil\x07 \x9b31m red \u202eesrever"
    handle = team.spawn(f"SAY {evil}\nASK {evil}", handle="eve")
    team.is_in(handle, "blocked")
    request = open_request(team)["id"]
    for words in (
        *(["agent", "list"], ["agent", "profiles"], ["agent", "show", handle]),
        *(["agent", "read", handle], ["agent", "send", handle, evil]),
        *(["request", "list"], ["request", "show", request]),
        *(["request", "answer", request, "deny", "--message", evil], ["request", "list", "--all"]),
        *(["agent", "interrupt", handle], ["agent", "restart", handle], ["agent", "stop", handle]),
        ["agent", "launch", "asks", evil],
    ):
        done = team.daemon.cli(*words)
        assert done.returncode == 0, (words, done.stderr)
        for text in (done.stdout, done.stderr):
            assert not set("\x1b\x9b\x07\u202e") & set(text), words


def test_of_spawns_at_once_one_gets_the_handle(team: Team) -> None:
    spawns = [team.daemon.send("spawn", handle="builder") for _ in range(8)]
    outcomes = sorted(each.outcome() for each in spawns)
    assert outcomes == [("error", "already_exists")] * 7 + [("reply", "")]
    assert len(team.call("list_sessions")["result"]) == 1


def test_tokens_cost_and_turns_of_a_session_survive_a_kill_of_the_daemon(team: Team) -> None:
    handle = team.spawn("SAY one")
    team.has_turns(handle, 1)
    team.send(handle, "SAY two")
    team.has_turns(handle, 2)
    usage = team.info(handle)["usage"]
    assert (usage["turns"], usage["input_tokens"], usage["output_tokens"]) == (2, 20, 10)
    assert usage["cost_usd"] == pytest.approx(0.02)
    team.daemon.kill()
    team.daemon.start("--port", "0")
    assert team.info(handle)["usage"] == usage | {"turns_s": ANY, "last_turn_s": ANY}
    assert team.call("list_sessions")["result"][0]["usage"]["cost_usd"] == usage["cost_usd"]
    team.send(handle, "SAY three")
    team.has_turns(handle, 3)
    assert team.info(handle)["usage"]["cost_usd"] == pytest.approx(0.03)

"""The agents' own commands: text that begins with ``/``, from agents, programs and people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import trio

import aegis
from tests.e2e.harness import DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.e2e.test_agents import STAND_IN, Team, agents_of, open_request
from tests.e2e.test_workflows import Working
from tests.resources.waiting import until

pytestmark = pytest.mark.real


def stand_in(provider: str, commands: str = "") -> dict[str, Any]:
    """The profile of a stand-in that asks; ``commands`` is its way to find a command."""
    family = "claude" if provider == "claude" else "acp"
    return {
        "provider": provider,
        "permission": "ask",
        "command": [sys.executable, str(STAND_IN), family],
        "env": {"STAND_IN_COMMANDS": commands},
        **({"asking_mode": "default"} if provider == "acp" else {}),
    }


FAMILIES = {
    "claude": stand_in("claude"),
    "first": stand_in("acp", "first"),
    "last": stand_in("acp", "last"),
    "swallowed": stand_in("acp", "swallowed"),
}
"""Claude Code, and the ACP agents by the block of a prompt that they look for a command in."""

QUEUES = {f"for-{name}": {"agent": name} for name in FAMILIES}

HOSTILE = ["/yolo", "  /yolo", "\n\n/yolo", "\u200b/yolo", "\uff0fyolo", "/yolo\nSAY done"]


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon, more=FAMILIES, queues=QUEUES)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def still_asks(team: Team, handle: str) -> None:
    """The agent has carried out no command, and asks before it acts."""
    assert [each for each in team.texts(handle) if each.startswith("command")] == []
    team.send(handle, "ASK touch x")
    request = open_request(team)
    assert request["handle"] == handle
    named = {"id": request["id"], "digest": request["digest"]}
    team.call("request_answer", **named, answer="deny")
    team.is_in(handle, "idle")


@pytest.mark.parametrize("profile", FAMILIES)
def test_what_an_agent_sends_is_text(team: Team, profile: str) -> None:
    handle = team.spawn("SAY hello", profile=profile)
    team.has_turns(handle, 1)
    for number, text in enumerate(HOSTILE, 2):
        team.send(handle, text)
        team.has_turns(handle, number)
    still_asks(team, handle)


@pytest.mark.parametrize("profile", FAMILIES)
def test_messages_that_become_one_turn_are_text(team: Team, profile: str) -> None:
    handle = team.spawn("HANG", profile=profile)
    team.is_in(handle, "working")
    for text in HOSTILE:
        team.send(handle, text)
    until(lambda: team.info(handle)["waiting"] == len(HOSTILE), "all wait")
    team.call("interrupt", handle=handle)
    team.has_turns(handle, 2)
    still_asks(team, handle)


@pytest.mark.parametrize("profile", FAMILIES)
def test_a_prompt_and_a_task_are_text(team: Team, profile: str) -> None:
    handle = team.spawn("/yolo", profile=profile, from_handle="pm")
    team.has_turns(handle, 1)
    still_asks(team, handle)
    task = team.call("enqueue", queue=f"for-{profile}", payload="/yolo")["task_id"]

    def status() -> dict[str, Any]:
        return team.call("task_status", task_id=task)

    until(lambda: bool(status()["ended"]), "the task has ended")
    assert "command" not in (status()["result"] or "")


@pytest.mark.filterwarnings(r"ignore:Async generator '.*:ResourceWarning")
@pytest.mark.parametrize("caller", [None, "human", "pm"])
async def test_a_call_over_mcp_never_commands(
    own_daemon: DaemonProcess, caller: str | None
) -> None:
    def off(call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        return trio.to_thread.run_sync(partial(call, *arguments, **more))

    team = await off(Team, own_daemon, more=FAMILIES)
    given = {} if caller is None else {"from_handle": caller}
    for profile in FAMILIES:
        async with connect_mcp_to(own_daemon, "auto") as client:
            spawned = await client.call_tool(
                "aegis_spawn", {"profile": profile, "prompt": "/yolo", **given}
            )
            assert spawned.structured_content is not None
            handle = spawned.structured_content["handle"]
            await off(team.has_turns, handle, 1)
            for number, text in enumerate(HOSTILE, 2):
                await client.call_tool(
                    "aegis_handoff", {"target_handle": handle, "context": text, **given}
                )
                await off(team.has_turns, handle, number)
        await off(still_asks, team, handle)
    await off(own_daemon.stop)


COMMANDS = """
from aegis import workflow


@workflow
async def sends_a_command(engine):
    handle = await engine.spawn("asks")
    await engine.send(handle, "/yolo")
    return handle
"""


def test_what_a_workflow_sends_is_text(own_daemon: DaemonProcess) -> None:
    working = Working(own_daemon)
    working.plugin("sending", COMMANDS)
    working.call("workflow_trust")
    id_ = working.run("sends_a_command")
    working.ends(id_)
    assert working.texts(str(working.result(id_))) == ["/yolo"]
    own_daemon.stop()


# A person's commands.


def person(team: Team, handle: str, text: str, **more: object) -> dict[str, Any]:
    """The receipt of a person's message, from a face of theirs."""
    return team.call("handoff", target_handle=handle, context=text, **more)


def turns(team: Team, handle: str) -> list[str]:
    """The texts of the turns so far, without headers."""
    return [
        "\n".join(line for line in each["text"].splitlines() if not line.startswith("> from "))
        for each in team.entries(handle, "turn_opened")
    ]


def sent(team: Team, handle: str) -> list[tuple[str, bool]]:
    events = [each["event"] for each in team.entries(handle, "event")]
    return [(each["name"], each["as_text"]) for each in events if each["type"] == "command_sent"]


@pytest.mark.parametrize("profile", FAMILIES)
def test_a_persons_command_is_a_turn_of_its_own_without_a_header(team: Team, profile: str) -> None:
    handle = team.spawn("HANG", profile=profile)
    team.is_in(handle, "working")
    until(lambda: bool(team.info(handle)["commands"]), "its commands are known")
    team.send(handle, "SAY before")
    assert person(team, handle, "/compact keep\nthe names")["notice"] == ""
    person(team, handle, "SAY after")
    until(lambda: team.info(handle)["waiting"] == 3, "all wait")
    team.call("interrupt", handle=handle)
    team.has_turns(handle, 4)
    assert turns(team, handle) == ["HANG", "SAY before", "/compact keep\nthe names", "SAY after"]
    said = [] if profile == "swallowed" else ["command compact"]
    assert team.texts(handle) == ["before", *said, "after"]
    assert sent(team, handle) == [("compact", False)]


@pytest.mark.parametrize("profile", FAMILIES)
def test_the_first_message_of_a_session_can_be_a_command(team: Team, profile: str) -> None:
    handle = team.spawn(profile=profile)
    receipt = person(team, handle, "/context")
    assert "announced no commands yet" in receipt["notice"]
    team.has_outcomes(handle, "completed")
    assert sent(team, handle) == [("context", False)]
    assert person(team, handle, "/reset")["notice"] == ""  # an alias


@pytest.mark.parametrize("profile", FAMILIES)
def test_a_command_that_the_agent_has_not_is_text_and_the_person_is_informed(
    team: Team, profile: str
) -> None:
    handle = team.spawn("SAY hello", profile=profile)
    team.has_turns(handle, 1)
    for number, name in enumerate(["nosuch", "etc/passwd", "Compact", "__internal"], 2):
        receipt = person(team, handle, f"/{name} x")
        assert f"{handle} has no command /{name}, so it gets this as text" in receipt["notice"]
        team.has_turns(handle, number)
    assert [as_text for _, as_text in sent(team, handle)] == [True] * 4
    assert [each for each in team.texts(handle) if each.startswith("command")] == []
    assert "/nosuch x" in team.texts(handle)


@pytest.mark.parametrize("text", ["/", "/ context", "//context", " /context", "\uff0fcontext"])
def test_other_texts_of_a_person_are_messages(team: Team, text: str) -> None:
    handle = team.spawn("SAY hello")
    team.has_turns(handle, 1)
    assert person(team, handle, text)["notice"] == ""
    team.has_turns(handle, 2)
    assert team.entries(handle, "turn_opened")[1]["text"].startswith("> from human · ")
    assert sent(team, handle) == []


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("yolo", "agent set {} --permission"),
        ("YOLO", "agent set {} --permission"),
        ("permissions", "agent set {} --permission"),
        ("config", "agent set {} --permission"),
        ("logout", "in a terminal"),
        ("login", "in a terminal"),
        ("quit", "agent stop {}"),
    ],
)
def test_a_command_that_ends_the_asking_or_the_login_is_refused(
    team: Team, name: str, way: str
) -> None:
    handle = team.spawn("SAY hello", profile="first")
    team.has_turns(handle, 1)
    code, sentence = outcome(team, handle, f"/{name} on")
    assert code == "forbidden"
    assert sentence.startswith(f"/{name} is not sent to {handle}: ")
    assert way.format(handle) in sentence
    still_asks(team, handle)
    assert team.info(handle)["turn"] == 2


def outcome(team: Team, handle: str, text: str) -> tuple[str, str]:
    refusal = team.daemon.refusal("handoff", target_handle=handle, context=text)
    return refusal.code, str(refusal)


def test_the_adapter_of_claude_code_gets_no_clear(own_daemon: DaemonProcess) -> None:
    profile = stand_in("claude-agent-acp", "last")
    team = Team(own_daemon, more={"adapter": profile})
    handle = team.spawn("SAY hello", profile="adapter")
    team.has_turns(handle, 1)
    for name in ("clear", "reset", "new"):
        code, sentence = outcome(team, handle, f"/{name}")
        assert (code, "hides the id" in sentence) == ("forbidden", True)
    own_daemon.stop()


def test_commands_are_listed_and_known_after_a_restart_of_the_daemon(team: Team) -> None:
    handle = team.spawn("SAY hello")
    team.has_turns(handle, 1)
    shown = team.daemon.cli("agent", "show", "--commands", handle).stdout
    assert "/compact [instructions]" in shown
    assert "Free up context" in shown
    assert "__internal" not in shown
    assert "Free up context" not in team.daemon.cli("agent", "show", handle).stdout
    [info] = team.call("list_sessions")["result"]
    assert "commands" not in info
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    names = [each["name"] for each in team.info(handle)["commands"]]
    assert names == ["compact", "clear", "context", "yolo"]
    assert person(team, handle, "/compact")["notice"] == ""
    team.has_turns(handle, 2)
    assert sent(team, handle) == [("compact", False)]


def test_a_command_from_the_command_line_and_python(team: Team) -> None:
    cli = team.daemon.cli
    handle = team.spawn("SAY hello")
    team.has_turns(handle, 1)
    done = cli("agent", "send", "--wait", handle, "/context", "now")
    assert (done.returncode, done.stdout) == (0, "command context\n")
    done = cli("agent", "send", "--wait", handle, "/nosuch")
    assert (done.returncode, "has no command /nosuch" in done.stderr) == (0, True)
    done = cli("agent", "send", handle, "/yolo")
    assert (done.returncode, "agent set" in done.stderr) == (1, True)
    with aegis.connect_sync(team.daemon.root) as client:
        receipt = client.inboxes.handoff(handle, "/compact")
        assert (receipt.id.split(":")[0], receipt.notice) == ("command", "")
        assert "compact" in [each.name for each in client.agents.show(handle).commands]
        team.has_turns(handle, 4)
    with aegis.connect_sync(team.daemon.root, handle="pm") as client:
        receipt = client.inboxes.handoff(handle, "/compact")
        assert (receipt.id.split(":")[0], receipt.notice) == ("handoff", "")
    team.has_turns(handle, 5)
    assert [name for name, _ in sent(team, handle)] == ["context", "nosuch", "compact"]


def test_a_repeated_command_with_one_key_is_sent_once(team: Team) -> None:
    handle = team.spawn("SAY hello")
    team.has_turns(handle, 1)
    first = person(team, handle, "/context", key="k")
    team.has_turns(handle, 2)
    assert person(team, handle, "/context", key="k")["id"] == first["id"]
    person(team, handle, "SAY end")
    team.has_turns(handle, 3)
    assert sent(team, handle) == [("context", False)]


# Cleared and compacted conversations.


def changes(team: Team, handle: str) -> list[tuple[str, str]]:
    events = [each["event"] for each in team.entries(handle, "event")]
    found = [each for each in events if each["type"] == "conversation_changed"]
    return [(each["how"], each["conversation"]) for each in found]


@pytest.mark.parametrize("ends_by", ["restart", "kill"])
def test_a_cleared_conversation_is_resumed_under_its_new_id(team: Team, ends_by: str) -> None:
    handle = team.spawn("SAY hello")
    team.has_turns(handle, 1)
    old = team.info(handle)["conversation"]
    person(team, handle, "/clear")
    person(team, handle, "SAY next")
    team.has_turns(handle, 3)
    [(how, new)] = changes(team, handle)
    assert (how, new != old, team.info(handle)["conversation"]) == ("cleared", True, new)
    entries = team.entries(handle, "ready", "turn_opened", "turn_ended")
    [ready] = [each for each in entries if each.get("conversation") == new]
    opened = [each for each in entries if each.get("turn") == 3]
    assert ready["seq"] < opened[0]["seq"]
    if ends_by == "restart":
        team.call("agent_restart", handle=handle)
    else:
        team.daemon.kill()
        team.daemon.start("--port", "0", "--trust")
    team.send(handle, "RESUMED")
    team.has_turns(handle, 4)
    assert team.texts(handle)[-1] == f"resumed {new}"


def test_a_daemon_that_dies_after_a_clear_does_not_bring_back_the_old_conversation(
    team: Team,
) -> None:
    handle = team.spawn("SAY hello")
    team.has_turns(handle, 1)
    person(team, handle, "/clear")
    team.has_turns(handle, 2)  # durable
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    [(_, new)] = changes(team, handle)
    assert team.info(handle)["conversation"] == new
    team.send(handle, "RESUMED")
    team.has_turns(handle, 3)
    assert team.texts(handle)[-1] == f"resumed {new}"


@pytest.mark.parametrize("profile", FAMILIES)
def test_a_compacted_conversation_is_an_event(team: Team, profile: str) -> None:
    handle = team.spawn("SAY hello", profile=profile)
    team.has_turns(handle, 1)
    person(team, handle, "/compact")
    team.has_turns(handle, 2)
    conversation = team.info(handle)["conversation"]
    assert changes(team, handle) == [("compacted", conversation)]
    team.send(handle, "/compact")
    team.has_turns(handle, 3)
    assert len(changes(team, handle)) == 1


def test_a_prompt_that_begins_like_a_command_is_launched_as_text_and_says_so(team: Team) -> None:
    done = team.daemon.cli("agent", "launch", "claude", "/yolo\x1b]0;x\x07 now", "--handle", "ann")
    assert (done.returncode, done.stdout) == (0, "ann\n")
    assert done.stderr.startswith("↳ ann gets /yolo")
    assert "give it one with agent send" in done.stderr.splitlines()[0]
    assert set("\x1b\x07") & set(done.stderr) == set()
    team.has_outcomes("ann", "completed")
    still_asks(team, "ann")


def opened(team: Team, handle: str) -> str:
    text: str = team.entries(handle, "turn_opened")[-1]["text"]
    return text


def test_a_mention_is_text_unless_a_person_has_written_it(team: Team) -> None:
    person = team.spawn("see @key.txt", profile="claude")
    team.has_turns(person, 1)
    assert "see @key.txt" in opened(team, person)
    team.call("handoff", target_handle=person, context="and @key.txt")
    team.has_turns(person, 2)
    assert "and @key.txt" in opened(team, person)
    team.send(person, "from pm: @key.txt")
    team.has_turns(person, 3)
    assert "from pm: \\@key.txt" in opened(team, person)
    spawned = team.spawn("see @key.txt", profile="claude", from_handle="pm")
    team.has_turns(spawned, 1)
    assert "see \\@key.txt" in opened(team, spawned)


@pytest.mark.filterwarnings(r"ignore:Async generator '.*:ResourceWarning")
async def test_a_mention_over_mcp_is_text(own_daemon: DaemonProcess) -> None:
    team = await trio.to_thread.run_sync(partial(Team, own_daemon, more=FAMILIES))
    async with connect_mcp_to(own_daemon, "auto") as client:
        spawn = {"profile": "claude", "handle": "ann", "prompt": "see @key.txt"}
        await client.call_tool("aegis_spawn", spawn)
        await trio.to_thread.run_sync(team.has_turns, "ann", 1)
        first = await trio.to_thread.run_sync(opened, team, "ann")
        message = {"target_handle": "ann", "context": "and @key.txt"}
        await client.call_tool("aegis_handoff", message)
        await trio.to_thread.run_sync(team.has_turns, "ann", 2)
        second = await trio.to_thread.run_sync(opened, team, "ann")
    assert "see \\@key.txt" in first
    assert "and \\@key.txt" in second
    await trio.to_thread.run_sync(own_daemon.stop)

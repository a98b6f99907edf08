"""Sessions as threads of editors: ``aegis-actors acp``, with a stand-in for the agent."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aegis.agents.drivers.test_images import png
from tests.e2e.editor import Editor
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    if own_daemon.is_running:
        own_daemon.stop()
    assert agents_of(own_daemon) == []


def test_an_editor_opens_a_thread_and_prompts(team: Team) -> None:
    with Editor(team.daemon, "--profile", "writes") as editor:
        begun = editor.begin()
        assert begun["protocolVersion"] == 1
        assert begun["agentCapabilities"]["loadSession"] is True
        assert begun["agentCapabilities"]["promptCapabilities"]["image"] is True
        new = editor.call("session/new", cwd=str(team.daemon.root), mcpServers=[])
        assert new["modes"]["currentModeId"] == "write"
        [info] = team.call("list_sessions")["result"]
        assert (info["id"], info["permission"]) == (new["sessionId"], "write")
        session = new["sessionId"]
        assert editor.stops(editor.prompt(session, "SAY hello")) == "end_turn"
        assert editor.texts().count("hello") == 1
        assert editor.texts("user_message_chunk") == []
        until(lambda: bool(editor.updates("available_commands_update")), "commands are announced")
        assert editor.close() == 0
    assert team.info(info["handle"])["state"] == "idle"


def test_each_text_of_a_new_session_comes_once(team: Team) -> None:
    with Editor(team.daemon) as editor:
        editor.begin()
        editor.call("session/list")
        for number in range(8):
            new = editor.call("session/new", cwd=editor.cwd, mcpServers=[])["sessionId"]
            assert editor.stops(editor.prompt(new, f"SAY text {number}")) == "end_turn"
            assert editor.texts().count(f"text {number}") == 1


def test_a_handle_is_a_thread_with_its_history(team: Team) -> None:
    handle = team.spawn("SAY before", handle="pm")
    team.has_outcomes(handle, "completed")
    team.send(handle, "SAY news", "ann")
    team.has_outcomes(handle, "completed", "completed")
    with Editor(team.daemon, "--handle", "pm") as editor:
        session = editor.open()
        assert session == team.info(handle)["id"]
        editor.says("news")
        assert "before" in editor.texts()
        assert editor.texts("user_message_chunk") == ["SAY before", "[agent:ann] SAY news"]
        at = len(editor.frames)
        team.send(handle, "SAY later", "bob")
        editor.says("later", since=at)
        editor.says("[agent:bob] SAY later", "user_message_chunk", at)


def test_a_load_replays_before_it_answers_and_asks_again(team: Team) -> None:
    handle = team.spawn("SAY before\nASK touch x", handle="pm")
    request = open_request(team)
    with Editor(team.daemon) as editor:
        editor.begin()
        call = editor.start("session/load", sessionId="pm", cwd="/", mcpServers=[])
        answer = editor.answer(call)
        at = editor.frames.index(answer)
        before = [each["params"]["update"] for each in editor.frames[:at] if "method" in each]
        kinds = [each["sessionUpdate"] for each in before]
        assert kinds.index("user_message_chunk") < kinds.index("tool_call")
        asked = editor.asked()
        assert editor.frames.index(asked) > at
        call_ids = {each["toolCallId"] for each in before if each["sessionUpdate"] == "tool_call"}
        assert asked["params"]["toolCall"]["toolCallId"] in call_ids
        assert asked["params"]["toolCall"]["rawInput"] == request["input"]
        editor.choose(asked, "allow_once")
        team.has_outcomes(handle, "completed")
    found = team.call("request_list", state="closed")["requests"]
    assert [(each["state"], each["by"]) for each in found] == [("answered", "human")]


def test_each_prompt_is_a_turn_of_its_own_and_a_cancel_ends_only_that(team: Team) -> None:
    handle = team.spawn("HANG", handle="pm")
    team.is_in(handle, "working")
    with Editor(team.daemon) as one, Editor(team.daemon) as other:
        for editor in (one, other):
            editor.open("pm")
        first = one.prompt("pm", "SAY one\nHANG")
        until(lambda: team.info(handle)["waiting"] == 1, "it waits")
        team.send(handle, "SAY between", "ann")
        second = other.prompt("pm", "SAY two")
        third = other.prompt("pm", "SAY three")
        until(lambda: team.info(handle)["waiting"] == 4, "all wait")
        # Neither ends the turn of somebody else, nor a prompt of another editor.
        other.send(method="session/cancel", params={"sessionId": "pm"})
        assert (other.stops(second), other.stops(third)) == ("cancelled", "cancelled")
        assert team.info(handle)["state"] == "working"
        team.call("interrupt", handle=handle)
        one.says("one")
        fourth = other.prompt("pm", "SAY four")
        other.send(method="session/cancel", params={"sessionId": "none"})
        one.send(method="session/cancel", params={"sessionId": "pm"})
        assert one.stops(first) == "cancelled"
        assert other.stops(fourth) == "end_turn"
        texts = other.texts("user_message_chunk")
        assert "SAY one\nHANG" in texts
        assert "SAY four" not in texts
    team.has_turns(handle, 6)
    ended = team.outcomes(handle)
    assert sorted(ended) == ["cancelled"] * 4 + ["completed"] * 2
    assert "two" not in team.texts(handle)
    opened = team.entries(handle, "turn_opened")
    assert [len(each["messages"]) for each in opened] == [1] * 6
    # Who prompts in an editor sees the end there, and gets no message of it.
    assert [each for each in team.inbox("human") if "is done" in each["body"]] == []


def test_the_first_answer_wins_and_the_dialogs_of_others_close(team: Team) -> None:
    handle = team.spawn(handle="pm")
    with Editor(team.daemon) as one, Editor(team.daemon) as other:
        for editor in (one, other):
            editor.open("pm")
        call = one.prompt("pm", "ASK touch x\nSAY done")
        asked, asked_too = one.asked(), other.asked()
        one.choose(asked, "allow_once")
        assert one.stops(call) == "end_turn"
        gone = other.wait(lambda each: each.get("method") == "$/cancel_request")
        assert gone["params"]["requestId"] == asked_too["id"]
        other.says("human answered at another place", "agent_thought_chunk")
        other.choose(asked_too, "reject_once")  # too late, and dropped
        at = len(one.frames), len(other.frames)
        call = other.prompt("pm", "ASK touch y")
        one.asked(at[0])
        other.asked(at[1])
        request = open_request(team)
        done = team.daemon.cli("request", "answer", request["id"], "deny")
        assert done.returncode == 0, done.stderr
        assert other.stops(call) == "end_turn"
        for editor, since in zip((one, other), at, strict=True):
            editor.wait(lambda each: each.get("method") == "$/cancel_request", since)
    assert team.outcomes(handle) == ["completed", "completed"]


def test_a_thread_that_is_opened_again_is_replayed_and_asks_again(team: Team) -> None:
    team.spawn(handle="pm")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        call = editor.prompt("pm", "SAY first\nASK touch x")
        asked = editor.asked()
        at = len(editor.frames)
        editor.call("session/load", sessionId="pm", cwd="/", mcpServers=[])
        editor.says("SAY first", "user_message_chunk", at)
        editor.says("first", since=at)
        again = editor.asked(at)
        assert again["id"] != asked["id"]
        withdrawn = editor.wait(lambda each: each.get("method") == "$/cancel_request", at)
        assert withdrawn["params"]["requestId"] == asked["id"]
        editor.choose(asked, "reject_once")  # dropped
        editor.send(id=again["id"], result={"outcome": {"outcome": "cancelled"}})
        editor.says("stays open", "agent_thought_chunk", at)
        call_twice = {"sessionId": "pm", "prompt": [{"type": "text", "text": "SAY x"}]}
        editor.send(id=call, method="session/prompt", params=call_twice)
        refused = editor.wait(lambda each: "error" in each, at)
        assert "not answered yet" in refused["error"]["message"]
        at = len(editor.frames)
        editor.call("session/close", sessionId="pm")
        # Its prompt is cancelled with it, and the session lives on.
        team.has_outcomes("pm", "cancelled")
        assert editor.error("session/close", sessionId="pm")["code"] == -32002
    assert team.info("pm")["state"] == "idle"
    until(lambda: team.call("request_list")["requests"] == [], "the request is withdrawn")


def test_an_editor_that_is_killed_leaves_its_turn_and_its_question(team: Team) -> None:
    handle = team.spawn(handle="pm")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        editor.prompt("pm", "ASK touch x\nSAY done")
        editor.asked()
    request = open_request(team)
    with Editor(team.daemon) as editor:
        editor.open("pm")
        asked = editor.asked()
        assert asked["params"]["toolCall"]["rawInput"] == request["input"]
        editor.choose(asked, "allow_once")
        team.has_outcomes(handle, "completed")


def test_a_killed_daemon_ends_the_prompt_honestly_and_the_editor_goes_on(team: Team) -> None:
    handle = team.spawn(handle="pm")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        call = editor.prompt("pm", "SAY first\nHANG")
        editor.says("first")
        team.daemon.kill()
        team.daemon.start("--port", "0", "--trust")
        error = editor.answer(call)["error"]
        assert "interrupted" in error["message"]
        assert editor.stops(editor.prompt("pm", "SAY again")) == "end_turn"
        editor.says("again")
    assert team.outcomes(handle) == ["interrupted", "completed"]


def test_a_cancelled_prompt_that_waits_is_not_sent_after_a_kill_of_the_daemon(team: Team) -> None:
    handle = team.spawn("SAY busy\nHANG", handle="pm")
    until(lambda: team.texts(handle) == ["busy"], "it works")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        call = editor.prompt("pm", "SAY never")
        until(lambda: team.info(handle)["waiting"] == 1, "it waits")
        editor.send(method="session/cancel", params={"sessionId": "pm"})
        assert editor.stops(call) == "cancelled"
        editor.kill()
        team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    team.send(handle, "SAY after")
    team.has_outcomes(handle, "interrupted", "cancelled", "completed")
    assert team.texts(handle) == ["busy", "after"]


IMPATIENT = """
from aegis.acp import agent
from aegis.cli.main import main
agent.PATIENCE_S, agent.GONE_S = 0.2, 5.0
main()
"""
"""``aegis-actors``, whose editors wait a few seconds for the daemon."""


def test_a_cancel_while_the_daemon_is_away_for_long_reaches_it_when_it_returns(team: Team) -> None:
    handle = team.spawn(handle="pm")
    with Editor(team.daemon, program=[sys.executable, "-c", IMPATIENT]) as editor:
        editor.open("pm")
        running = editor.prompt("pm", "SAY first\nHANG")
        editor.says("first")
        waiting, kept = editor.prompt("pm", "HANG\nSAY never"), editor.prompt("pm", "SAY kept")
        until(lambda: team.info(handle)["waiting"] == 2, "they wait")
        team.daemon.kill()
        for each in (running, waiting):
            editor.send(method="$/cancel_request", params={"requestId": each})
        assert (editor.stops(running), editor.stops(waiting)) == ("cancelled", "cancelled")
        assert "does not run any more" in editor.answer(kept)["error"]["message"]
        team.daemon.start("--port", "0", "--trust")
        # The daemon may begin the turn before the editor has connected: then it is interrupted.
        until(lambda: team.texts(handle)[-1] == "kept", "the next prompt has its turn")
    assert team.texts(handle) == ["first", "kept"]
    assert sorted(team.outcomes(handle)[:2]) == ["cancelled", "interrupted"]


def test_settings_are_modes_and_options(team: Team) -> None:
    handle = team.spawn(handle="pm")
    with Editor(team.daemon) as editor, Editor(team.daemon) as other:
        editor.open("pm")
        other.open("pm")
        editor.call("session/set_mode", sessionId="pm", modeId="read")
        assert team.info(handle)["permission"] == "read"
        changed = other.wait(
            lambda each: each.get("params", {}).get("update", {}).get("currentModeId") == "read"
        )
        assert changed["params"]["update"]["sessionUpdate"] == "current_mode_update"
        options = editor.call(
            "session/set_config_option", sessionId="pm", configId="mode", value="write"
        )["configOptions"]
        assert [each["currentValue"] for each in options if each["id"] == "mode"] == ["write"]
        wrong = editor.error("session/set_mode", sessionId="pm", modeId="yolo")
        assert wrong == {
            "code": -32602,
            "message": "a mode must be one of read, plan, ask, write, full",
        }


LISTED = [
    {"value": "default", "resolvedModel": "stand-in", "supportedEffortLevels": ["low", "high"]},
    {"value": "small", "displayName": "Small", "resolvedModel": "stand-in-small"},
]


def options_in(result: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["currentValue"] for each in result["configOptions"]}


def test_the_models_efforts_and_thinking_of_the_agent_are_options(
    own_daemon: DaemonProcess,
) -> None:
    lists = {
        "provider": "claude",
        "command": [sys.executable, str(STAND_IN), "claude"],
        "env": {"STAND_IN_MODELS": json.dumps(LISTED)},
    }
    team = Team(own_daemon, more={"lists": lists})

    def chooses(editor: Editor, option: str, value: str) -> dict[str, str]:
        call = {"sessionId": session, "configId": option, "value": value}
        return options_in(editor.call("session/set_config_option", **call))

    with Editor(team.daemon, "--profile", "lists") as editor:
        session = editor.open()
        assert editor.stops(editor.prompt(session, "SAY one")) == "end_turn"
        settings = {"mode": "ask", "model": "default", "effort": "default", "thinking": "on"}
        editor.wait(lambda each: options_of(each) == settings)
        details = team.call("agent_show", handle=team.call("list_sessions")["result"][0]["handle"])
        assert [each["name"] for each in details["models"]] == ["default", "small"]
        refused = editor.error(
            "session/set_config_option", sessionId=session, configId="model", value="large"
        )
        assert "it offers 'default', 'small', and full names" in refused["message"]
        assert chooses(editor, "effort", "high")["effort"] == "high"
        assert chooses(editor, "thinking", "off")["thinking"] == "off"
        assert editor.stops(editor.prompt(session, "SAY two")) == "end_turn"
        team.daemon.kill()
        team.daemon.start("--port", "0", "--trust")
    with Editor(team.daemon) as editor:
        editor.begin()
        loaded = editor.call("session/load", sessionId=session, cwd=editor.cwd, mcpServers=[])
        assert options_in(loaded) == settings | {"effort": "high", "thinking": "off"}


def options_of(frame: dict[str, Any]) -> dict[str, str]:
    update = frame.get("params", {}).get("update", {})
    return options_in(update) if "configOptions" in update else {}


def test_a_command_of_a_person_is_the_agents_own(team: Team) -> None:
    handle = team.spawn("SAY hi", handle="pm")
    team.has_turns(handle, 1)
    with Editor(team.daemon) as editor:
        editor.open("pm")
        listed = editor.wait(
            lambda each: "availableCommands" in each.get("params", {}).get("update", {})
        )
        names = [each["name"] for each in listed["params"]["update"]["availableCommands"]]
        assert "compact" in names
        assert editor.stops(editor.prompt("pm", "/context")) == "end_turn"
        editor.says("command context")
        refused = editor.answer(editor.prompt("pm", "/yolo"))["error"]["message"]
        assert "yolo" in refused


def prompt_of(editor: Editor, *blocks: dict[str, Any]) -> int:
    return editor.start("session/prompt", sessionId="pm", prompt=list(blocks))


def test_files_of_a_prompt_are_text_and_paths(team: Team) -> None:
    handle = team.spawn(handle="pm")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        link = {"type": "resource_link", "uri": "file:///tmp/a%20b.py#L1-3", "name": "a b.py"}
        resource = {"uri": "file:///tmp/c.py", "text": "print('```')\n"}
        call = prompt_of(
            editor,
            {"type": "text", "text": "SAY look at "},
            link,
            {"type": "resource", "resource": resource},
        )
        assert editor.stops(call) == "end_turn"
    [opened] = team.entries(handle, "turn_opened")
    assert (
        "SAY look at /tmp/a b.py#L1-3/tmp/c.py\n\n[file: /tmp/c.py, 13 bytes]\n" in opened["text"]
    )
    assert "````\nprint('```')\n````" in opened["text"]


def test_images_of_a_prompt_reach_the_agent(team: Team) -> None:
    team.spawn(handle="pm")
    picture = png(40, 30)
    image = {
        "type": "image",
        "data": base64.b64encode(picture).decode(),
        "mimeType": "image/jpeg",  # its content counts
    }
    blob = {"uri": "file:///tmp/b.png", "mimeType": "image/png", "blob": image["data"]}
    with Editor(team.daemon) as editor:
        editor.open("pm")
        text = {"type": "text", "text": "SAY seen"}
        assert editor.stops(prompt_of(editor, text, image)) == "end_turn"
        assert editor.stops(prompt_of(editor, {"type": "resource", "resource": blob})) == "end_turn"
        digest = hashlib.sha256(picture).hexdigest()[:8]
        shown = [each for each in editor.texts() if each.startswith("[image: ")]
        assert [digest in each for each in shown] == [True] * len(shown)
        assert len(shown) >= 2
        assert "seen" in editor.texts()
        broken = image | {"data": base64.b64encode(b"text").decode()}
        refused = editor.answer(prompt_of(editor, text, broken))["error"]["message"]
        assert "is no PNG, JPEG, GIF or WebP image" in refused
        wrong = editor.answer(prompt_of(editor, image | {"data": "no base64!"}))["error"]
        assert wrong == {"code": -32602, "message": "the data of an image must be base64"}
    assert team.call("inbox_read", from_handle="human")["messages"] == []

"""Editors of ``aegis-actors acp`` that send what no editor should."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editor import Editor
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import Team, agents_of
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    if own_daemon.is_running:
        own_daemon.stop()
    assert agents_of(own_daemon) == []


BROKEN = {
    b"{broken": -32700,
    b"\xff\xfe": -32700,
    b"{}": -32600,
    b"[1, 2]": -32600,
    b"7": -32600,
    b'{"jsonrpc": "2.0", "id": null, "method": "initialize"}': -32600,
    b'{"jsonrpc": "2.0", "id": {}, "method": "initialize"}': -32600,
    b'{"jsonrpc": "2.0", "id": true, "method": "initialize"}': -32600,
    b'{"jsonrpc": "2.0", "id": 5, "method": 7}': -32600,
    b'{"id": 5}': -32600,
    b'{"id": 1, "id": 2, "method": "initialize"}': -32700,
    b'{"id": NaN}': -32700,
    b"[" * 100_000: -32700,
    b'{"a":' * 100_000: -32600,
    b'{"id": 9, "method": "' + b"x" * (17 * 1024 * 1024) + b'"}': -32600,
}
"""Lines that are no call, with the code of their error."""


def test_lines_that_are_no_call_are_refused_and_the_next_is_read(team: Team) -> None:
    with Editor(team.daemon) as editor:
        for line, code in BROKEN.items():
            at = len(editor.frames)
            editor.write(line + b"\n")
            error = editor.wait(lambda each: "error" in each, at)["error"]
            assert error["code"] == code, line[:60]
            assert 0 < len(error["message"]) < 400
        editor.write(b"\n\r\n   \n")
        late: list[dict[str, Any]] = [{"result": {}}, {"id": 99, "result": {}}, {"error": 5}]
        for odd in late:
            editor.send(**odd)  # nobody waits for it
        editor.send(method="session/cancel", params=[1])
        editor.send(method="nothing/known", params={"a": 1})
        assert editor.begin()["protocolVersion"] == 1


def test_methods_that_are_unknown_or_too_early_are_refused(team: Team) -> None:
    with Editor(team.daemon) as editor:
        early = editor.error("session/new", cwd="/", mcpServers=[])
        assert (early["code"], "call initialize" in early["message"]) == (-32600, True)
        editor.begin()
        assert editor.begin()["protocolVersion"] == 1
        assert editor.error("session/fly")["code"] == -32601
        assert editor.error("x" * 100_000)["code"] == -32601
        for cwd in ("", "here", None, 5, "~/x"):
            wrong = editor.error("session/new", cwd=cwd, mcpServers=[])
            assert wrong == {"code": -32602, "message": "cwd must be an absolute path"}
        outside = editor.error("session/new", cwd="/", mcpServers=[])
        assert (outside["code"], "not below the root" in outside["message"]) == (-32602, True)
        missing = editor.error("session/new", cwd=f"{editor.cwd}/no", mcpServers=[])
        assert (missing["code"], "is no directory" in missing["message"]) == (-32002, True)
        for session in ("nobody", "x" * 150, "a b", "../x"):
            unknown = editor.error("session/load", sessionId=session, cwd="/", mcpServers=[])
            assert (unknown["code"], "there is no session" in unknown["message"]) == (-32002, True)
        wrong_ids: list[Any] = [None, 5, "", "x" * 10_000, {}]
        for wrong_id in wrong_ids:
            assert editor.error("session/load", sessionId=wrong_id)["code"] == -32602
        for method in ("prompt", "set_mode", "close", "set_config_option"):
            unopened = editor.error(f"session/{method}", sessionId="nobody")
            assert (unopened["code"], "session/load first" in unopened["message"]) == (
                -32002,
                True,
            )
        for cursor in ("-1", "x", "9" * 50, "\u0665"):
            assert editor.error("session/list", cursor=cursor)["code"] == -32602
    assert team.call("list_sessions")["result"] == []


def test_prompts_without_a_text_and_too_long_ones_are_refused(team: Team) -> None:
    team.spawn(handle="pm")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        text = {"type": "text", "text": "x" * 262_145}
        untyped, number = [{"type": "text"}], [{"type": "text", "text": 5}]
        wrong_prompts: list[Any] = [None, [], "x", [{}], [5], untyped, number]
        for prompt in wrong_prompts:
            assert editor.error("session/prompt", sessionId="pm", prompt=prompt)["code"] == -32602
        long = editor.error("session/prompt", sessionId="pm", prompt=[text])
        assert "262144" in long["message"]
        many = [{"type": "text", "text": "x"}] * 1_001
        assert editor.error("session/prompt", sessionId="pm", prompt=many)["code"] == -32602
        for value in (None, 5, "", "yolo", "full\u202e"):
            wrong = editor.error(
                "session/set_config_option", sessionId="pm", configId="mode", value=value
            )
            assert wrong["code"] == -32602
        odd = editor.error("session/set_config_option", sessionId="pm", configId="x", value="y")
        assert "mode, model, effort and thinking" in odd["message"]
        half = editor.answer(editor.prompt("pm", "SAY \ud800"))["error"]["message"]
        assert "the session did not get the prompt" in half
        assert editor.stops(editor.prompt("pm", "HALF\nSAY fine \u0000 end")) == "end_turn"
        assert "half ?" in editor.texts() or "half \ufffd" in editor.texts()


def test_prompts_and_cancels_that_come_at_once_keep_their_order(team: Team) -> None:
    team.spawn(handle="pm")
    with Editor(team.daemon) as editor:
        editor.open("pm")

        def line(id_: int | None, method: str, text: str = "") -> bytes:
            prompt = [{"type": "text", "text": text}]
            params = {"sessionId": "pm", **({"prompt": prompt} if text else {})}
            called = {} if id_ is None else {"id": id_}
            return json.dumps({**called, "method": method, "params": params}).encode() + b"\n"

        numbers = range(1000, 1012)
        editor.write(b"".join(line(each, "session/prompt", f"SAY {each}") for each in numbers))
        answers = [editor.answer(each)["result"]["stopReason"] for each in numbers]
        assert answers == ["end_turn"] * 12
        said = [each for each in editor.texts() if each.isdecimal()]
        assert said == [str(each) for each in numbers]
        for at in range(1012, 1022):  # cancelled before it was begun, or in its turn
            prompt = line(at, "session/prompt", f"SAY begun {at}\nHANG")
            editor.write(prompt + line(None, "session/cancel"))
            assert editor.answer(at)["result"]["stopReason"] == "cancelled"
        editor.write(line(1022, "session/prompt", "SAY end"))
        assert editor.answer(1022)["result"]["stopReason"] == "end_turn"


def test_no_more_prompts_wait_than_the_limit(team: Team) -> None:
    handle = team.spawn("HANG", handle="pm")
    team.is_in(handle, "working")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        calls = [editor.prompt("pm", f"SAY {number}") for number in range(17)]
        refused = editor.wait(lambda each: "error" in each)
        assert "16 prompts wait already" in refused["error"]["message"]
        calls.remove(refused["id"])
        until(lambda: team.info(handle)["waiting"] == 16, "they wait")
        editor.send(method="$/cancel_request", params={"requestId": calls[3]})
        assert editor.stops(calls[3]) == "cancelled"
        editor.send(method="session/cancel", params={"sessionId": "pm"})
        assert {editor.stops(each) for each in calls} == {"cancelled"}
        team.call("interrupt", handle=handle)
        team.has_turns(handle, 17)
        assert team.outcomes(handle) == ["cancelled"] * 17


def test_a_closed_session_is_replayed_and_takes_no_prompt(team: Team) -> None:
    handle = team.spawn("SAY before", handle="pm")
    team.has_turns(handle, 1)
    team.call("rename", old_handle="pm", new_handle="lead")
    session = team.info("lead")["id"]
    with Editor(team.daemon) as editor:
        editor.open("pm")  # its former handle
        assert editor.stops(editor.prompt("pm", "SAY renamed")) == "end_turn"
        hanging = editor.prompt("pm", "SAY more\nHANG")
        editor.says("more")
        team.call("rename", old_handle="lead", new_handle="boss")
        waiting = editor.prompt("pm", "SAY waits")
        until(lambda: team.info("boss")["waiting"] == 1, "it waits")
        team.call("close", handle="boss")
        assert editor.stops(hanging) == "cancelled"
        assert "closed" in editor.answer(waiting)["error"]["message"]
        again = editor.answer(editor.prompt("pm", "SAY x"))["error"]["message"]
        assert "agent launch --resume boss" in again
    with Editor(team.daemon) as editor:
        editor.open(session)
        said = [each for each in editor.texts() if not each.startswith("> from ")]
        assert said == ["before", "renamed", "more"]
        assert editor.call("session/list")["sessions"] == []
        refused = editor.answer(editor.prompt(session, "SAY x"))["error"]["message"]
        assert "agent launch --resume boss" in refused
        resumed = team.daemon.cli("agent", "launch", "--resume", "boss", "--wait", "SAY back")
        assert resumed.returncode == 0
        editor.says("back")
        assert editor.stops(editor.prompt(session, "SAY here")) == "end_turn"


def test_without_a_daemon_each_call_says_what_to_do_and_later_works(team: Team) -> None:
    team.daemon.stop()
    with Editor(team.daemon) as editor:
        editor.begin()
        for method in ("session/new", "session/load", "session/list"):
            error = editor.error(method, cwd=editor.cwd, mcpServers=[], sessionId="pm")
            assert "aegis-actors up" in error["message"], error
        team.daemon.start("--port", "0", "--trust")
        session = editor.call("session/new", cwd=editor.cwd, mcpServers=[])["sessionId"]
        assert editor.stops(editor.prompt(session, "SAY hello")) == "end_turn"
        [listed] = editor.call("session/list", cwd=editor.cwd)["sessions"]
        assert listed["sessionId"] == session
        assert editor.call("session/list", cwd="/tmp")["sessions"] == []


def test_a_handle_that_does_not_exist_and_wrong_usage(team: Team) -> None:
    with Editor(team.daemon, "--handle", "nobody") as editor:
        editor.begin()
        error = editor.error("session/new", cwd=editor.cwd, mcpServers=[])
        assert (error["code"], "nobody" in error["message"]) == (-32002, True)
    with Editor(team.daemon, "--profile", "none") as editor:
        editor.begin()
        error = editor.error("session/new", cwd=editor.cwd, mcpServers=[])
        assert (error["code"], "none" in error["message"]) == (-32002, True)
    for words in (["--handle", "a", "--profile", "b"], ["--as", "pm"], []):
        done = team.daemon.cli("acp", *words)
        assert (done.returncode, done.stdout) == (2, ""), words


def test_a_question_without_usable_labels_is_asked_as_far_as_it_can_be(team: Team) -> None:
    handle = team.spawn(handle="pm")
    options: list[dict[str, Any]] = [{"label": "Red", "description": "like a rose"}]
    options += [{"description": "no label"}, {"label": 3, "description": "a number"}]
    question = {"question": "Which?", "header": "Colour", "multiSelect": False}
    given = json.dumps({"questions": [{**question, "options": options}]})
    with Editor(team.daemon) as editor:
        editor.open("pm")
        call = editor.prompt("pm", f"QUESTION {given}")
        asked = editor.asked()
        assert [each["name"] for each in asked["params"]["options"]] == ["Red", "Decline"]
        editor.choose(asked, "allow_once")
        assert editor.stops(call) == "end_turn"
        assert editor.close() == 0
    team.has_outcomes(handle, "completed")


def test_a_terminal_agent_is_no_thread(team: Team) -> None:
    team.call("agent_launch", cmd="cat", handle="typed")
    with Editor(team.daemon) as editor:
        editor.begin()
        error = editor.error("session/load", sessionId="typed", cwd="/", mcpServers=[])
        assert "aegis-actors term attach typed" in error["message"]
        assert editor.call("session/list")["sessions"] == []


def test_an_editor_that_reads_slowly_gets_everything_and_holds_nobody_up(team: Team) -> None:
    handle = team.spawn(handle="pm")
    process = subprocess.Popen(
        [*team.daemon.program, "acp"],
        env=team.daemon.environment,
        cwd=team.daemon.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    frames = [
        {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 1, "method": "session/load", "params": {"sessionId": "pm"}},
    ]
    process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in frames))
    process.stdin.flush()
    with Editor(team.daemon) as editor:
        editor.open("pm")
        assert editor.stops(editor.prompt("pm", "FLOOD 2000 2000\nSAY done")) == "end_turn"
        assert team.info(handle)["state"] == "idle"
    pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    size = int(pages) * os.sysconf("SC_PAGE_SIZE")
    assert size < 200 * 2**20
    text = b""
    while b'done"}' not in text:
        line = process.stdout.readline()
        assert line
        text = text[-1000:] + line
    process.stdin.close()
    assert process.wait(GUARD_S) == 0
    process.stdout.close()


def test_calls_before_the_end_of_the_input_are_answered(team: Team) -> None:
    team.spawn("SAY hi", handle="pm")
    team.has_turns("pm", 1)
    frames = [
        {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 1, "method": "session/load", "params": {"sessionId": "pm"}},
        {"id": 2, "method": "session/list", "params": {}},
    ]
    done = subprocess.run(
        [*team.daemon.program, "acp"],
        input=b"\n".join(json.dumps(each).encode() for each in frames),
        env=team.daemon.environment,
        cwd=team.daemon.root,
        capture_output=True,
        timeout=GUARD_S,
        check=False,
    )
    answers = [json.loads(each) for each in done.stdout.splitlines()]
    assert {each["id"] for each in answers if "id" in each} == {0, 1, 2}
    assert (done.returncode, done.stderr) == (0, b"")

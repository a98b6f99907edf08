"""The settings of a project are used once a person trusts them, and never by an agent's word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from aegis.client.line import CommandFailed
from aegis.path_text import text_of_path
from tests.e2e.editor import Editor
from tests.e2e.harness import PROGRAM, DaemonProcess
from tests.e2e.test_agents import STAND_IN
from tests.e2e.window import window
from tests.resources.waiting import until

pytestmark = pytest.mark.real

COMMAND = [sys.executable, str(STAND_IN), "claude"]
OWN = {"provider": "claude", "project_settings": True, "command": COMMAND}
PROFILES = {"agents": {"own": OWN}}


@pytest.fixture
def daemon(own_daemon: DaemonProcess) -> Iterator[DaemonProcess]:
    (own_daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(PROFILES))
    own_daemon.start("--port", "0", "--trust")
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "touch /tmp/x"}]}]}
    settings = own_daemon.root / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": hooks}))
    yield own_daemon
    own_daemon.stop()


def cli(daemon: DaemonProcess, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), "agent", "trust", *words],
        cwd=daemon.root,
        env=daemon.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_person_sees_the_settings_and_trusts_them_until_they_change(
    daemon: DaemonProcess,
) -> None:
    odd = daemon.root / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    seen = cli(daemon, "own", "--directory", odd.name)
    remedy = f"agent trust --yes own --directory {text_of_path(odd)}\n"
    assert (seen.returncode, remedy in seen.stderr) == (1, True), seen.stderr
    launched = daemon.cli("agent", "launch", "own", "--handle", "odd", "--directory", odd.name)
    assert launched.returncode == 0, launched.stderr
    assert daemon.call("agent_show", handle="odd")["cwd"] == text_of_path(odd)
    seen = cli(daemon, "own")
    assert (seen.returncode, "touch /tmp/x" in seen.stdout) == (1, True)
    assert seen.stderr.endswith("aegis-actors agent trust --yes own\n")
    found = daemon.call("agent_trust", profile="own")
    assert (found["wanted"], found["is_trusted"]) == (True, False)
    done = cli(daemon, "own", "--yes")
    assert (done.returncode, "trusted 1 file of" in done.stderr) == (0, True)
    daemon.stop()
    daemon.start("--port", "0", "--trust")
    assert daemon.call("agent_trust", profile="own")["is_trusted"]
    assert cli(daemon, "own").returncode == 0
    (daemon.root / ".claude" / "settings.json").write_text('{"apiKeyHelper": "x"}')
    assert not daemon.call("agent_trust", profile="own")["is_trusted"]


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_launch_in_a_window_shows_the_settings_and_asks_once(
    daemon: DaemonProcess, answer: str
) -> None:
    with window(daemon, "agent", "launch", "own", "--handle", "ann") as asked:
        asked.wait_for(b"touch /tmp/x")
        asked.wait_for(b"[y/N] ")
        asked.press(f"{answer}\r".encode())
        asked.wait_for(b"ann\r\n")
        assert asked.wait_exit() == 0
    assert (b"launched without them" in asked.seen) == (answer == "n")
    assert daemon.call("agent_trust", profile="own")["is_trusted"] == (answer == "y")
    daemon.call("handoff", target_handle="ann", context="ENVIRON")
    until(lambda: "argv" in said(daemon, "ann"), "it says how it was started")
    assert ("--setting-sources=user" in said(daemon, "ann")) == (answer == "n")


def test_a_conversation_from_elsewhere_is_not_continued_with_settings_before_they_are_trusted(
    daemon: DaemonProcess,
) -> None:
    elsewhere = ("own", "--conversation", "00000000-0000-4000-8000-000000000009")
    with window(daemon, "agent", "launch", *elsewhere) as asked:
        asked.wait_for(b"[y/N] ")
        asked.press(b"n\r")
        assert asked.wait_exit() != 0, "there is no such conversation"
    assert not daemon.call("agent_trust", profile="own")["is_trusted"]


def said(daemon: DaemonProcess, handle: str) -> str:
    return json.dumps(daemon.call("session_read", handle=handle, last_n=1000))


def test_an_editor_is_shown_how_settings_are_trusted_with_its_first_prompt(
    daemon: DaemonProcess,
) -> None:
    with Editor(daemon, "--profile", "own") as editor:
        session = editor.open()
        assert editor.stops(editor.prompt(session, "SAY one")) == "end_turn"
        found = editor.says("look at them with", "agent_thought_chunk")
        sentence = found["params"]["update"]["content"]["text"]
        words = sentence.partition("aegis-actors agent trust ")[2].partition(";")[0].split()
        assert cli(daemon, *words, "--yes").returncode == 0
        handle = daemon.call("list_sessions")["result"][0]["handle"]
        daemon.call("agent_restart", handle=handle)
        since = len(editor.frames)
        assert editor.stops(editor.prompt(session, "SAY two")) == "end_turn"
        assert not [each for each in editor.frames[since:] if "look at them" in str(each)]


def test_only_the_content_that_was_shown_is_trusted(daemon: DaemonProcess) -> None:
    shown = daemon.call("agent_trust", profile="own")["digest"]
    (daemon.root / ".mcp.json").write_text("{}")
    with pytest.raises(CommandFailed, match="have changed; look at them again"):
        daemon.call("agent_trust", profile="own", digest=shown)
    assert not daemon.call("agent_trust", profile="own")["is_trusted"]


def test_no_agent_trusts_anything(daemon: DaemonProcess, tmp_path: Path) -> None:
    digest = daemon.call("agent_trust", profile="own")["digest"]
    refusal = daemon.refusal("agent_trust", profile="own", digest=digest, from_handle="pm")
    assert (refusal.code, "only a person" in str(refusal)) == ("forbidden", True)
    # A command that an agent writes on a terminal acts for the agent.
    daemon.call("term_spawn", name="t")
    command = f"{PROGRAM} --root {daemon.root} agent trust own --yes"
    ran = daemon.call("term_run", name="t", cmd=command, timeout=120, from_handle="pm")
    assert (ran["exit"], "for the operator" in str(ran)) == (1, True), ran["stdout"]
    assert not daemon.call("agent_trust", profile="own")["is_trusted"]

"""Damage to the files of a state: logged, kept, reported by ``doctor``; the rest works on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aegis.doctor.finding import Level
from tests.e2e.harness import DaemonProcess, LiveTerminal
from tests.resources.waiting import until

pytestmark = pytest.mark.real


def spawn(daemon: DaemonProcess) -> LiveTerminal:
    return LiveTerminal(daemon, "build", daemon.call("term_spawn", name="build"))


def problems(daemon: DaemonProcess) -> dict[str, str]:
    """The sentences of ``doctor``, by subject, of all that is not well."""
    found = daemon.examine()
    return {name: each.sentence for name, each in found.items() if each.level is not Level.OK}


def logged(daemon: DaemonProcess, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in daemon.log.splitlines()]
    return [each for each in lines if each["event"] == event]


def ids(daemon: DaemonProcess, handle: str) -> list[str]:
    reply = daemon.call("inbox_read", from_handle=handle, unread=False, limit=1000)
    return [each["id"] for each in reply["messages"]]


def woken(daemon: DaemonProcess, handle: str, number: int) -> list[str]:
    """The ids of its messages once there are so many: a command ends before its wake comes."""
    until(lambda: len(ids(daemon, handle)) >= number, f"{handle} has {number} messages")
    return ids(daemon, handle)


def seqs(found: list[str]) -> list[int]:
    return [int(each.split("/")[2]) for each in found]


@pytest.mark.parametrize("content", [None, b"\xff\0{"], ids=["removed", "damaged"])
@pytest.mark.parametrize("way", ["restored", "spawned"])
def test_a_terminal_whose_settings_are_lost_sends_no_wake_a_second_time_under_another_id(
    own_daemon: DaemonProcess, content: bytes | None, way: str
) -> None:
    own_daemon.expected = frozenset({"damage", "modes"})
    own_daemon.start()
    terminal = spawn(own_daemon)
    terminal.subscribe("pm")
    subscribers = terminal.directory / "subscribers.json"
    as_subscribed = subscribers.read_bytes()
    for _ in range(3):
        terminal.run("true", from_handle="builder")
    before = woken(own_daemon, "pm", 3)
    assert seqs(before) == [0, 1, 2]
    if way == "spawned":
        terminal.close()
    own_daemon.kill()
    subscribers.write_bytes(as_subscribed)  # how far pm was told is lost: all is sent again
    meta = terminal.directory / "meta.json"
    meta.unlink()
    if content is not None:
        meta.write_bytes(content)
    assert "meta.json" in problems(own_daemon)["terminal build"]
    own_daemon.start()
    if way == "spawned":
        terminal = spawn(own_daemon)
    terminal.run("true", from_handle="builder")
    found = woken(own_daemon, "pm", 4)
    assert found[:3] == before
    assert seqs(found) == [0, 1, 2, 3]
    assert len({each.split("/")[1] for each in found}) == 1


def test_a_workspace_file_that_is_gone_is_reported_with_what_is_not_restored(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    spawn(own_daemon).run("true")
    own_daemon.kill()
    own_daemon.state.workspace.unlink()
    assert "workspace.json is missing" in problems(own_daemon)["workspace"]
    own_daemon.start()
    assert own_daemon.call("term_list") == {"result": [], "of_agents": []}
    [told] = logged(own_daemon, "workspace file missing")
    assert (told["not_restored"], told["level"]) == (["build"], "warning")
    assert "workspace" in problems(own_daemon)
    spawn(own_daemon)
    assert "workspace" not in problems(own_daemon)


def test_a_new_root_misses_no_workspace_file(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    assert logged(own_daemon, "workspace file missing") == []
    assert "workspace" not in problems(own_daemon)


def test_a_ledger_that_is_cut_while_the_daemon_runs_is_reported_and_no_number_comes_again(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.expected = frozenset({"terminal build"})
    own_daemon.start()
    terminal = spawn(own_daemon)
    for number in range(5):
        terminal.run(f"echo {number}")
    ledger = terminal.directory / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:2]))
    error = terminal.refusal("echo 5")
    assert error.code == "storage"
    assert "is shorter than its acknowledged lines; restart the daemon" in str(error)
    [told] = logged(own_daemon, "file was cut from outside")
    assert told["level"] == "warning"
    own_daemon.kill()
    own_daemon.start()
    seq = terminal.run("echo on")["seq"]
    assert seq > 4
    kept = [each["seq"] for each in terminal.records()]
    assert kept[:2] == [0, 1]
    assert 4 not in kept[:3]
    assert logged(own_daemon, "records missing")
    assert "missing" in problems(own_daemon)["terminal build"]


def test_a_ledger_that_is_gone_is_reported_and_no_number_comes_again(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.expected = frozenset({"terminal build"})
    own_daemon.start()
    terminal = spawn(own_daemon)
    for number in range(3):
        terminal.run(f"echo {number}")
    terminal.run("cd /")  # after which the note names no command any more
    own_daemon.stop()
    (terminal.directory / "ledger.jsonl").unlink()
    assert "its ledger has no records" in problems(own_daemon)["terminal build"]
    own_daemon.start()
    assert terminal.run("echo on")["seq"] > 3
    assert logged(own_daemon, "ledger lost records")


def test_a_damaged_line_of_an_inbox_is_reported_and_the_other_messages_are_shown(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.expected = frozenset({"inbox pm"})
    own_daemon.start()
    terminal = spawn(own_daemon)
    terminal.subscribe("pm")
    for _ in range(3):
        terminal.run("true", from_handle="builder")
    assert seqs(woken(own_daemon, "pm", 3)) == [0, 1, 2]
    own_daemon.kill()
    path = own_daemon.state.inboxes / "pm.jsonl"
    damaged = path.read_bytes().replace(b"/1/pm", b"/9/pm")
    path.write_bytes(damaged)
    own_daemon.start()
    assert seqs(ids(own_daemon, "pm")) == [0, 2]
    [told] = logged(own_daemon, "damaged lines skipped")
    assert (len(told["where"]), told["level"]) == (1, "warning")
    assert Path(told["file"]).name == "pm.jsonl"
    assert path.read_bytes().startswith(damaged)
    assert "1 lines have a bad checksum" in problems(own_daemon)["inbox pm"]


def test_subscriptions_that_cannot_be_read_are_kept_and_reported(own_daemon: DaemonProcess) -> None:
    own_daemon.expected = frozenset({"damage"})
    own_daemon.start()
    terminal = spawn(own_daemon)
    terminal.subscribe("pm")
    own_daemon.kill()
    content = b"\xff" * 8192
    subscribers = terminal.directory / "subscribers.json"
    subscribers.write_bytes(content)
    assert "subscribers.json cannot be read" in problems(own_daemon)["terminal build"]
    own_daemon.start()
    terminal.run("true")
    [kept] = terminal.directory.glob("subscribers.json.damaged-*")
    assert kept.read_bytes() == content
    assert kept.name in problems(own_daemon)["damage"]
    assert logged(own_daemon, "subscribers damaged")

"""A shell that ends between two commands: recorded, told to subscribers, and to the next caller."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal, wait_ended

pytestmark = pytest.mark.real


def wait_fresh(terminal: LiveTerminal, restarts: int) -> dict[str, Any]:
    """The description once a fresh shell is at its prompt."""
    deadline = time.monotonic() + GUARD_S
    while True:
        info = terminal.described()
        if info["restarts"] >= restarts and info["state"] == "idle":
            return info
        assert time.monotonic() < deadline, info
        time.sleep(0.02)


def kill_shell(terminal: LiveTerminal) -> None:
    """Kill it at its prompt, which reports its directory."""
    terminal.wait_prompt()
    pid = terminal.described()["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_ended([pid])


def check_told(terminal: LiveTerminal, record: dict[str, Any], since: int) -> None:
    """The next record names the loss, and the one behind it does not."""
    assert record["new_shell_since"] == since
    assert terminal.run("true")["new_shell_since"] is None
    assert [each["new_shell_since"] for each in terminal.records()] == [
        *([None] * (since + 1)),
        since,
        None,
    ]


@on_both_shells
def test_a_shell_that_is_killed_at_its_prompt_is_not_replaced_silently(
    terminal: LiveTerminal,
) -> None:
    ann = terminal.subscribe(f"ann-{terminal.name}")
    assert terminal.run("cd /usr; X=1")["new_shell_since"] is None
    ann.next()
    kill_shell(terminal)
    woken = ann.next()
    assert "the shell was killed at its prompt by SIGKILL" in woken["body"]
    assert wait_fresh(terminal, 1)["cwd"] == "/usr"
    assert "new since seq 1: the shell was killed" in terminal.described()["notice"]
    record = terminal.run("pwd; echo X=$X")
    assert record["stdout"] == "/usr\nX=\n"
    [lost] = [each for each in terminal.records() if each["writer"] == "shell"]
    assert (lost["seq"], lost["cmd"], lost["end"], lost["exit"]) == (1, None, "shell_exit", 137)
    assert lost["cwd"] == "/usr"
    assert lost["cmd_reason"] == "the shell was killed at its prompt by SIGKILL"
    assert "new shell since seq 1" in ann.next()["body"]
    check_told(terminal, record, 1)


def test_a_fresh_shell_whose_directory_is_gone_says_where_it_started(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    terminal.run(f"cd '{place}'")
    terminal.wait_prompt()  # which reports its directory
    place.rmdir()
    kill_shell(terminal)
    assert wait_fresh(terminal, 1)["cwd"] == str(terminal.daemon.root)
    assert f"its last directory {str(place)!r} is gone" in terminal.described()["notice"]


@on_both_shells
def test_a_shell_that_a_person_ends_by_ctrl_d_is_recorded(terminal: LiveTerminal) -> None:
    terminal.run("X=1")
    terminal.wait_editing()
    terminal.keys("\x04", from_handle="ann")
    wait_fresh(terminal, 1)
    record = terminal.run("echo X=$X")
    assert record["stdout"] == "X=\n"
    assert terminal.records()[1]["cmd_reason"].startswith("the shell ended at its prompt with exit")
    check_told(terminal, record, 1)


@pytest.mark.long
def test_a_shell_that_times_out_tells_why_once_and_is_not_started_again_and_again(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal("readonly TMOUT=4\n")  # a busy machine needs a while for each step
    terminal.run("X=1")
    terminal.keys("echo half")  # the line is lost with the shell
    wait_fresh(terminal, 1)
    deadline = time.monotonic() + GUARD_S
    while terminal.described()["restarts"] < 3:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    lost = terminal.records()[1]
    assert (lost["writer"], lost["end"]) == ("shell", "shell_exit")
    assert re.search("timed out waiting for input: auto-logout", lost["cmd_reason"])
    assert "auto-logout" in terminal.described()["notice"]
    record = terminal.run("echo X=$X")
    assert (record["stdout"], record["new_shell_since"]) == ("X=\n", 1)
    assert [each["writer"] for each in terminal.records()] == ["human", "shell", "human"]


def test_a_shell_that_is_killed_within_a_command_is_told_to_the_next_caller(
    terminal: LiveTerminal,
) -> None:
    assert terminal.run("X=1; kill -9 $$")["end"] == "shell_exit"
    record = terminal.run("echo X=$X")
    assert record["stdout"] == "X=\n"
    check_told(terminal, record, 0)


def test_the_command_line_prints_that_the_shell_is_new(terminal: LiveTerminal) -> None:
    cli = terminal.daemon.cli
    terminal.run("true")
    kill_shell(terminal)
    wait_fresh(terminal, 1)
    assert "the shell was killed at its prompt by SIGKILL" in cli("term", "list").stdout
    shown = cli("term", "run", terminal.name, "echo fine")
    assert (shown.stdout, "new shell since seq 1" in shown.stderr) == ("fine\n", True)
    assert "#1 the shell was killed" in cli("term", "read", terminal.name).stdout


def test_after_a_restart_of_the_daemon_the_first_record_says_that_the_shell_is_new(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    own_daemon.call("term_spawn", name="build")
    terminal = own_daemon.terminal("build")
    terminal.run("X=1")
    kill_shell(terminal)
    wait_fresh(terminal, 1)
    own_daemon.kill()
    own_daemon.start()
    record = terminal.run("echo X=$X")
    assert (record["stdout"], record["new_shell_since"]) == ("X=\n", 1)
    assert terminal.run("true")["new_shell_since"] is None
    assert [each["seq"] for each in terminal.records()] == [0, 1, 2, 3]


def test_a_shell_that_ends_before_its_prompt_thrice_fails_with_its_last_output(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal('[ -e ~/broken ] && echo "no such venv" && exit 3\n')
    assert terminal.run("touch ~/broken; echo done")["exit"] == 0
    kill_shell(terminal)
    deadline = time.monotonic() + GUARD_S
    while (info := terminal.described())["state"] != "failed":
        assert time.monotonic() < deadline, info
        time.sleep(0.02)
    assert "3 shells in a row ended before a prompt: 'no such venv" in info["notice"]
    assert [each["writer"] for each in terminal.records()] == ["human", "shell"]


def test_a_shell_that_another_one_replaced_is_told_to_the_next_caller(
    terminal: LiveTerminal,
) -> None:
    terminal.run("X=1")
    assert terminal.run("exec bash --norc")["end"] == "lost"
    record = terminal.run("echo X=$X")
    assert record["stdout"] == "X=\n"
    check_told(terminal, record, 1)

"""Traps 17 to 21, 24 and 25: names, and what it takes to spawn and to close a terminal."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import STARTUP_FILES, DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real

RULE = "1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or a digit"

OUTLIVING = [
    "nohup {} >/dev/null 2>&1 &",
    "setsid {} &",
    "setsid nohup {} >/dev/null 2>&1 &",
    "{} & disown",
    "{} & disown -h %+",
    "(trap '' HUP TERM INT; {}; sleep 1000) &",
    "({} &)",
    "setsid -f {}",
]


@on_both_shells
@pytest.mark.parametrize("child", OUTLIVING)
def test_trap_17_close_gives_the_run_its_record_and_ends_every_process(
    daemon: DaemonProcess,
    terminal: LiveTerminal,
    new_gate: Callable[[], Gate],
    tmp_path: Path,
    child: str,
) -> None:
    gate, outliving = new_gate(), new_gate()
    script = tmp_path / "outliving"
    script.write_text(f"#!/bin/sh\n{outliving.reach}\nexec sleep 1000\n")
    script.chmod(0o700)
    running = terminal.start(f"{child.format(script)}\necho begun; {gate.hold}")
    gate.wait_reached()
    outliving.wait_reached()
    assert len(daemon.shell_processes(f"{terminal.name}/")) > 1
    terminal.close()
    assert daemon.shell_processes(f"{terminal.name}/") == []
    record = running.result()
    assert (record["end"], record["exit"], record["killed_by_restart"]) == ("closed", None, False)
    assert "begun\n" in record["stdout"]
    assert terminal.records() == [record]


@on_both_shells
def test_trap_17_a_command_in_front_that_ignores_signals_is_ended_too(
    daemon: DaemonProcess, terminal: LiveTerminal, gate: Gate
) -> None:
    running = terminal.start(f"trap '' HUP TERM INT; {gate.hold}; sleep 1000")
    gate.wait_reached()
    terminal.close()
    assert running.result()["end"] == "closed"
    assert daemon.shell_processes(f"{terminal.name}/") == []


@on_both_shells
def test_trap_17_who_waits_in_the_queue_of_a_closed_terminal_is_told(
    terminal: LiveTerminal, gate: Gate
) -> None:
    running = terminal.start(gate.hold)
    gate.wait_reached()
    queued = terminal.start("echo never").has_arrived()
    terminal.close()
    assert running.result()["end"] == "closed"
    with pytest.raises(CommandFailed, match="closed") as failed:
        queued.result()
    assert failed.value.code == "unavailable"
    assert [each["seq"] for each in terminal.records()] == [0]


BAD_NAMES = ["", ".", "..", "-x", "_x", "a/b", "../up", "a b", "a\n", "grün", "x" * 65, "a\0", "~"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_trap_18_a_bad_name_is_refused_with_the_rule(daemon: DaemonProcess, name: str) -> None:
    before = sorted(daemon.state.directory.rglob("*"))
    calls: dict[str, dict[str, Any]] = {
        "term_spawn": {},
        "term_run": {"cmd": "true"},
        "term_keys": {"keys": "x"},
        "term_read": {},
        "term_screen": {},
        "term_subscribe": {},
        "term_close": {"purge": True},
    }
    for command, arguments in calls.items():
        error = daemon.refusal(command, name=name, **arguments)
        assert (error.code, RULE in str(error)) == ("invalid_request", True), error
    assert sorted(daemon.state.directory.rglob("*")) == before


@pytest.mark.parametrize("name", ["a", "0", "A.b-c_D", "x" * 64])
def test_trap_18_a_good_name_is_taken(daemon: DaemonProcess, name: str) -> None:
    assert daemon.call("term_spawn", name=name)["name"] == name
    assert daemon.call("term_close", name=name, purge=True)["ok"] is True


def test_trap_18_a_name_is_unique_ignoring_case(terminal: LiveTerminal) -> None:
    error = terminal.daemon.refusal("term_spawn", name=terminal.name.upper())
    assert (error.code, terminal.name in str(error)) == ("already_exists", True)
    same = terminal.daemon.call("term_run", name=terminal.name.upper(), cmd="echo same")
    assert same["stdout"] == "same\n"


BAD_SPAWNS: dict[str, tuple[dict[str, Any], str]] = {
    "no such shell": ({"shell": "/no/such/bash"}, "no executable program"),
    "no such program": ({"shell": "no-such-shell"}, "no executable program"),
    "a shell that is a directory": ({"shell": "/tmp"}, "no executable program"),
    "no such directory": ({"cwd": "/no/such/directory"}, "does not exist"),
    "a file as directory": ({"cwd": "/etc/passwd"}, "not a directory"),
    "a NUL in a directory": ({"cwd": "a\0b"}, "NUL"),
    "a NUL in a shell": ({"shell": "a\0b"}, "no executable program"),
    "an empty shell": ({"shell": ""}, "no executable program"),
    "an empty directory": ({"cwd": ""}, "is empty"),
    "a variable without a name": ({"env": {"": "x"}}, "name must not be empty"),
    "a variable with =": ({"env": {"a=b": "x"}}, "'='"),
    "a NUL in a variable": ({"env": {"a": "x\0"}}, "NUL"),
    "a variable that is a number": ({"env": {"a": 1}}, "env"),
    "a variable too long": ({"env": {"a": "é" * 65_535}}, "too long"),
    "an environment too long": ({"env": {str(n): "x" * 130_000 for n in range(9)}}, "too long"),
    "half a surrogate pair in a variable": ({"env": {"a": "\ud800"}}, "surrogates"),
    "half a surrogate pair in a directory": ({"cwd": "\ud800"}, "cwd"),
    "no columns": ({"cols": 0}, "2 to 1000"),
    "too many rows": ({"rows": 1001}, "1 to 1000"),
}


@pytest.mark.parametrize(("arguments", "reason"), BAD_SPAWNS.values(), ids=BAD_SPAWNS)
def test_trap_19_a_spawn_that_cannot_be_is_refused_and_leaves_nothing(
    daemon: DaemonProcess, handle: str, arguments: dict[str, Any], reason: str
) -> None:
    error = daemon.refusal("term_spawn", name=handle, **arguments)
    assert (error.code, reason in str(error)) == ("invalid_request", True), error
    assert not (daemon.state.terminals / handle).exists()
    assert handle not in [info["name"] for info in daemon.call("term_list")["result"]]
    assert daemon.shell_processes(f"{handle}/") == []
    assert daemon.refusal("term_read", name=handle).code == "not_found"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every directory")
def test_trap_19_a_directory_that_cannot_be_read_is_refused(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    error = daemon.refusal("term_spawn", name="nothing", cwd=str(closed))
    assert (error.code, "cannot be read" in str(error)) == ("invalid_request", True)


def test_trap_19_a_bad_spawn_over_an_old_history_leaves_the_history(terminal: LiveTerminal) -> None:
    terminal.run("echo kept")
    terminal.close()
    assert terminal.daemon.refusal("term_spawn", name=terminal.name, cwd="/no").code
    assert [each["stdout"] for each in terminal.records()] == ["kept\n"]


def test_trap_20_the_longest_variables_are_taken(new_terminal: NewTerminal) -> None:
    longest = {f"V{number}": "x" * 131_067 for number in range(8)}
    assert new_terminal(env=longest).run("echo ${#V0} ${#V7}")["stdout"] == "131067 131067\n"


@on_both_shells
def test_trap_20_what_is_given_is_merged_into_the_environment(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal(env={"GIVEN": "a b\n'c'", "LANG": "C"})
    assert terminal.run('printf %s "$GIVEN"')["stdout"] == "a b\n'c'"
    assert terminal.run("echo $LANG:$HOME")["stdout"] == f"C:{daemon.home}\n"
    assert terminal.run("echo $PATH")["stdout"].strip() == daemon.environment["PATH"]
    assert terminal.run("exit")["end"] == "shell_exit"
    assert terminal.run("echo $LANG:$HOME")["stdout"] == f"C:{daemon.home}\n"


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ({"last_n": 0}, "from 1 to 1000"),
        ({"last_n": -1}, "from 1 to 1000"),
        ({"last_n": 1001}, "from 1 to 1000"),
        ({"since_seq": -2}, "from -1"),
        ({"last_n": 1, "since_seq": 0}, "not both"),
        ({"last_n": "5"}, "last_n"),
        ({"last_n": 1.5}, "last_n"),
        ({"last_n": True}, "last_n"),
    ],
)
def test_trap_21_reading_a_senseless_number_of_records_is_refused(
    terminal: LiveTerminal, arguments: dict[str, Any], allowed: str
) -> None:
    error = terminal.daemon.refusal("term_read", name=terminal.name, **arguments)
    assert (error.code, allowed in str(error)) == ("invalid_request", True), error


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("term_run", {"cmd": "true"}),
        ("term_keys", {"keys": "x"}),
        ("term_read", {}),
        ("term_screen", {}),
        ("term_subscribe", {}),
        ("term_unsubscribe", {}),
        ("term_close", {}),
        ("term_close", {"purge": True}),
    ],
)
def test_trap_21_a_name_that_nobody_has_is_refused_and_the_nearest_is_named(
    terminal: LiveTerminal, command: str, arguments: dict[str, Any]
) -> None:
    error = terminal.daemon.refusal(command, name=f"{terminal.name}x", **arguments)
    assert error.code == "not_found"
    assert f"did you mean '{terminal.name}'" in str(error)


@on_both_shells
def test_trap_24_spawn_waits_for_a_slow_startup_file(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal("sleep 1.5; late=yes; PS1='$ '")
    assert terminal.info["state"] == "idle"
    assert terminal.run("echo $late")["stdout"] == "yes\n"


@pytest.mark.long
@on_both_shells
def test_trap_24_a_startup_file_that_waits_for_input_is_starting_and_runs_wait_for_it(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal("printf 'who? '; read -r who; PS1='$ '")
    assert terminal.info["state"] == "starting"
    waiting = terminal.start("echo $who").has_arrived()
    assert terminal.refusal("echo early", timeout=0.2).code == "unavailable"
    terminal.keys("ann\r", from_handle="ann")
    assert waiting.result()["stdout"] == "ann\n"
    assert terminal.described()["state"] == "idle"


@on_both_shells
def test_trap_24_a_startup_file_that_ends_in_exit_makes_a_failed_terminal_that_says_why(
    daemon: DaemonProcess, new_terminal: NewTerminal, shell: str, tmp_path: Path
) -> None:
    terminal = new_terminal("echo the reason; exit 3")
    assert terminal.info["state"] == "failed"
    assert terminal.described()["pid"] is None
    error = terminal.refusal("true")
    assert error.code == "unavailable"
    assert "the reason" in str(error)
    assert terminal.daemon.refusal("term_keys", name=terminal.name, keys="x").code == "unavailable"
    assert terminal.records() == []
    assert daemon.shell_processes(f"{terminal.name}/") == []
    terminal.close()
    home = tmp_path / f"home-{terminal.name}"
    (home / STARTUP_FILES[shell]).write_text("PS1='$ '")
    again = daemon.call("term_spawn", name=terminal.name, shell=shell, env={"HOME": str(home)})
    assert again["state"] == "idle"
    assert terminal.run("echo well")["seq"] == 0


def test_trap_25_of_spawns_with_one_name_at_once_one_wins(
    daemon: DaemonProcess, handle: str
) -> None:
    names = [handle, handle.upper(), handle, handle.title(), handle, handle]
    all_ready = threading.Barrier(len(names))
    outcomes: list[str] = []

    def spawn(name: str) -> None:
        with daemon.connect() as client:
            all_ready.wait()
            try:
                outcomes.append(client.call("term_spawn", {"name": name})["state"])
            except CommandFailed as error:
                outcomes.append(error.code)

    threads = [threading.Thread(target=spawn, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["already_exists"] * 5 + ["idle"]
    infos = daemon.call("term_list")["result"]
    assert [info["name"].lower() for info in infos].count(handle) == 1
    assert (
        len([each for each in daemon.state.terminals.iterdir() if handle in each.name.lower()]) == 1
    )
    daemon.call("term_close", name=handle)

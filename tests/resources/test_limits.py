"""Limits on descriptors and file sizes, put on a daemon that runs, and taken off again."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess, LiveTerminal
from tests.resources.conftest import check_stopped, spawned
from tests.resources.waiting import until, until_state

pytestmark = pytest.mark.real


def test_without_free_descriptors_spawning_is_refused_and_all_else_goes_on(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    _, hard = resource.prlimit(own_daemon.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(own_daemon.process.pid, resource.RLIMIT_NOFILE, (64, hard))
    terminals = [
        LiveTerminal(own_daemon, name, own_daemon.call("term_spawn", name=name))
        for name in ("a", "b", "c")
    ]
    more = (f"t{number}" for number in range(64))
    with pytest.raises(CommandFailed, match="of at most 64 files open") as refused:
        terminals.extend(
            LiveTerminal(own_daemon, name, own_daemon.call("term_spawn", name=name))
            for name in more
        )
    assert refused.value.code == "unavailable"
    assert not (own_daemon.state.terminals / f"t{len(terminals) - 3}").exists()
    assert [terminal.run("echo on")["stdout"] for terminal in terminals] == ["on\n"] * len(
        terminals
    )
    assert terminals[0].run("sleep 1000 & exit 3")["end"] == "shell_exit"
    assert terminals[0].run("echo fresh")["stdout"] == "fresh\n"
    assert own_daemon.call("inbox_read", from_handle="new")["messages"] == []
    for terminal in terminals[1:]:
        terminal.close()
    assert own_daemon.call("term_spawn", name="again")["state"] == "idle"


def test_a_file_that_may_not_grow_is_told_and_goes_on_once_it_may(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    info = own_daemon.call("term_spawn", name="grown")
    terminal = LiveTerminal(own_daemon, "grown", info)
    terminal.run("true")
    no_limit = resource.prlimit(own_daemon.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(own_daemon.process.pid, resource.RLIMIT_FSIZE, (20_000, no_limit[1]))
    error = terminal.refusal("head -c 50000 /dev/zero | tr '\\0' a")
    assert (error.code, "File too large; raise the limit" in str(error)) == ("storage", True)
    resource.prlimit(own_daemon.process.pid, resource.RLIMIT_FSIZE, no_limit)
    assert terminal.run("echo on")["stdout"] == "on\n"
    assert [record["seq"] for record in terminal.records()] == [0, 1, 2]
    own_daemon.kill()  # its log rightly tells of the raw log that could not be written


def test_without_a_free_descriptor_clients_wait_at_the_door_and_who_is_inside_is_told(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    terminal = spawned(own_daemon, "inside")
    with own_daemon.connect() as client:
        client.call("status", {})
        with no_free_descriptor(own_daemon):
            outside = [own_daemon.send("term_list") for _ in range(20)]
            for command, arguments in REFUSED_WITHOUT_DESCRIPTORS:
                with pytest.raises(CommandFailed) as refused:
                    client.call(command, arguments)
                assert refused.value.code in ("storage", "unavailable"), command
                assert "ulimit -n" in str(refused.value), refused.value
            assert client.call("term_list", {})["result"][0]["name"] == "inside"
        assert [each.result()["result"][0]["name"] for each in outside] == ["inside"] * 20
        assert client.call("term_run", {"name": "inside", "cmd": "echo on"})["stdout"] == "on\n"
        assert client.call("session_new", {"handle": "bob"})["url"]
    seqs = [record["seq"] for record in terminal.records()]
    assert seqs == list(range(len(seqs)))
    told = [line for line in own_daemon.log.splitlines() if "no client can be taken in" in line]
    assert len(told) == 1
    assert len(own_daemon.log) < 20_000
    check_stopped(own_daemon)  # its log rightly reports a raw log at rest that cannot be opened


REFUSED_WITHOUT_DESCRIPTORS: tuple[tuple[str, dict[str, object]], ...] = (
    ("term_run", {"name": "inside", "cmd": "echo refused"}),
    ("term_spawn", {"name": "another"}),
    ("session_new", {"handle": "bob"}),
    ("inbox_read", {"from_handle": "eve"}),
    ("term_subscribe", {"name": "inside", "from_handle": "bob"}),
)


@contextlib.contextmanager
def no_free_descriptor(daemon: DaemonProcess) -> Iterator[None]:
    """As many files as the daemon has open are all that it may have."""
    pid = daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    open_now = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_now, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_a_shell_that_ends_while_no_descriptor_is_free_is_replaced_when_one_is(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    terminal = spawned(own_daemon, "ended")
    with own_daemon.connect() as client:
        client.call("status", {})
        with no_free_descriptor(own_daemon):
            os.kill(terminal.info["pid"], signal.SIGKILL)
            until(
                lambda: client.call("term_list", {})["result"][0]["state"] != "idle",
                "the shell's end is seen",
            )
    until_state(terminal, "idle")
    assert terminal.run("echo fresh")["stdout"] == "fresh\n"
    assert terminal.described()["restarts"] == 1
    check_stopped(own_daemon)  # its log rightly reports its own failures meanwhile


def test_a_note_and_a_message_beyond_the_limit_on_file_sizes_are_told_and_go_on_without_it(
    own_daemon: DaemonProcess,
) -> None:
    """The kernel sends SIGXFSZ with EFBIG: it must not end the daemon."""
    own_daemon.start()
    terminal = spawned(own_daemon, "long")
    own_daemon.call("session_new", handle="bob")
    pid = own_daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (9_000, before[1]))
    too_long: dict[str, dict[str, Any]] = {
        "handoff": {"target_handle": "bob", "context": "x" * 20_000},
        "term_run": {"name": "long", "cmd": f"true {'x' * 20_000}"},
        "term_spawn": {"name": "large", "env": {"X": "x" * 20_000}},
    }
    for command, arguments in too_long.items():
        error = own_daemon.refusal(command, **arguments)
        assert error.code == "storage", command
        assert "File too large; raise the limit on file sizes (ulimit -f)" in str(error)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    assert own_daemon.call("handoff", **too_long["handoff"])["status"] == "queued"
    assert terminal.run(too_long["term_run"]["cmd"])["exit"] == 0
    assert own_daemon.call("term_spawn", **too_long["term_spawn"])["state"] == "idle"
    assert len(own_daemon.call("inbox_read", from_handle="bob")["messages"]) == 1
    assert [record["seq"] for record in terminal.records()] == [0, 1]

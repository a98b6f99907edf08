"""Limits on descriptors and file sizes, put on a daemon that runs, and taken off again."""

from __future__ import annotations

import resource

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess, LiveTerminal

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

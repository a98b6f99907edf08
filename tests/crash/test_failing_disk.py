"""A whole daemon on a failing disk: its callers get errors, and acknowledged data stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.real.deaths import Failing
from tests.chaos.real.tracing import reason_not_to_trace, tracer_of
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real


@pytest.fixture
def daemon_on(tmp_path: Path) -> Iterator[DaemonProcess]:
    """Return a daemon with a terminal and a record, which has ended."""
    reason = reason_not_to_trace()
    if reason is not None:
        pytest.skip(reason)
    daemon = DaemonProcess(tmp_path)
    daemon.start()
    terminal = LiveTerminal(daemon, "build", daemon.call("term_spawn", name="build"))
    assert terminal.run("echo before")["seq"] == 0
    daemon.kill()
    yield daemon
    code = daemon.stop() if daemon.is_running else None
    assert code in (0, None)
    assert daemon.shell_processes() == []


@pytest.mark.long
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("call", ["fdatasync", "write of a ledger"])
def test_a_record_that_the_disk_refuses_is_told_and_there_once_when_the_disk_is_well_again(
    daemon_on: DaemonProcess, call: str, error: str
) -> None:
    failing = Failing(call, error, first=1, every=1, seconds=0.0)
    daemon_on.launch(tracer=tracer_of(failing, daemon_on.state, ["build"], []))
    assert daemon_on.wait_ready()
    terminal = daemon_on.terminal("build")
    refused = terminal.refusal("echo refused")
    assert refused.code == "storage"
    assert "build" in str(refused)
    assert [record["seq"] for record in terminal.records()] == [0]
    daemon_on.kill()

    daemon_on.start()
    before, refused_then = terminal.records()
    assert (before["seq"], before["stdout"]) == (0, "before\n")
    assert (refused_then["seq"], refused_then["cmd"]) == (1, "echo refused")
    assert terminal.run("echo after")["seq"] == 2


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_command_whose_note_the_disk_refuses_is_told_and_never_typed(
    daemon_on: DaemonProcess, error: str
) -> None:
    failing = Failing("pwrite64 of a note", error, first=1, every=1, seconds=0.0)
    daemon_on.launch(tracer=tracer_of(failing, daemon_on.state, ["build"], []))
    assert daemon_on.wait_ready()
    proof = daemon_on.root / "ran"
    terminal = daemon_on.terminal("build")
    assert terminal.run("echo noted")["seq"] == 1  # the first note of a life is written as a whole
    assert terminal.refusal(f"echo refused >>{proof}").code == "storage"
    daemon_on.kill()

    daemon_on.start()
    terminal = daemon_on.terminal("build")
    assert [record["cmd"] for record in terminal.records()] == ["echo before", "echo noted"]
    assert not proof.exists()
    assert terminal.run("echo after")["seq"] == 2


def test_the_output_of_a_lost_command_ends_where_the_next_shell_began_though_the_disk_failed_then(
    daemon_on: DaemonProcess, gate: Gate
) -> None:
    daemon_on.start()
    terminal = daemon_on.terminal("build")
    running = terminal.start(f"echo so far; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("so far")
    daemon_on.kill()
    assert running.outcome()[0] == "lost"

    failing = Failing("write of a ledger", "EIO", first=1, every=1, seconds=0.0)
    daemon_on.launch(tracer=tracer_of(failing, daemon_on.state, ["build"], []))
    assert daemon_on.wait_ready()
    terminal = daemon_on.terminal("build")
    assert terminal.refusal("echo of another life").code == "storage"
    daemon_on.kill()

    daemon_on.start()
    _, lost, later = daemon_on.terminal("build").records()
    assert (lost["stdout"], lost["end"]) == ("so far\n", "killed_by_restart")
    assert later["stdout"] == "of another life\n"

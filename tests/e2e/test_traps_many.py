"""Trap 16: a hundred live terminals on two processors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.real.processes import processes_of
from tests.e2e.harness import DaemonProcess, Gate

pytestmark = [pytest.mark.real, pytest.mark.long]

TERMINALS = 100


def test_trap_16_a_hundred_live_terminals_all_work_and_leave_nothing_when_all_stops(
    own_daemon: DaemonProcess, new_gate: Callable[[], Gate], tmp_path: Path
) -> None:
    own_daemon.start()
    names = [f"t{number}" for number in range(TERMINALS)]
    for pending in [own_daemon.send("term_spawn", name=name) for name in names]:
        assert pending.result()["state"] in ("idle", "starting")
    gate = new_gate()
    running = {
        name: own_daemon.send(
            "term_run", name=name, cmd=f"variable={name}; {gate.reach}; read -r line", timeout=60
        )
        for name in names
    }
    for _ in names:
        gate.wait_reached()
    for name in names:  # all of them are at work at once, and each gets its own keys
        own_daemon.call("term_keys", name=name, keys=f"for {name}\r")
    for name, pending in running.items():
        pending.result()  # the whole record, or the one so far: it waits for input
        ended = own_daemon.call("term_wait", name=name, seq=0, timeout=60)
        assert (ended["reason"], ended["record"]["exit"]) == ("ended", 0)
    asked = {
        name: own_daemon.send("term_run", name=name, cmd="echo $variable $line", timeout=60)
        for name in names
    }
    for name, pending in asked.items():
        assert pending.result()["stdout"] == f"{name} for {name}\n"
    assert {info["state"] for info in own_daemon.call("term_list")["result"]} == {"idle"}
    assert own_daemon.stop() == 0
    assert processes_of(own_daemon.root) == set()
    assert own_daemon.failures() == []
    assert not own_daemon.state.endpoint.exists()

"""A daemon that is held up says so, afterwards; with ``--debug`` it says where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aegis.faults import VARIABLE
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

BLOCKED_S = 0.5


class HeldUpDaemon(DaemonProcess):
    """Is held up at the first command that its own actor takes in hand."""

    @property
    def environment(self) -> dict[str, str]:
        fault = f"actor.receive.before[Daemon]@1=block:{BLOCKED_S}"
        return {**super().environment, VARIABLE: fault}

    def slow_steps(self) -> list[dict[str, Any]]:
        """What the log says of steps of that actor."""
        entries = [json.loads(line) for line in self.log.splitlines()]
        slow = [entry for entry in entries if entry["event"] == "slow step"]
        return [entry for entry in slow if entry["actor"] == "root/daemon"]


@pytest.mark.parametrize("options", [(), ("--debug",)], ids=["plain", "debug"])
def test_a_daemon_that_was_held_up_logs_by_whom_how_long_and_with_debugging_where(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    held_up = HeldUpDaemon(tmp_path)
    held_up.start("--port", "0", *options)
    try:
        assert held_up.call("status")["pid"] == held_up.process.pid
    finally:
        code = held_up.stop()
    assert code == 0
    held_up.check_left_nothing()
    # A busy machine may hold up other steps of the actor, for less long.
    step = max(held_up.slow_steps(), key=lambda each: each["ms"])
    assert (step["level"], step["task"]) == ("warning", "root/daemon")
    assert step["ms"] >= 1000 * BLOCKED_S
    assert ("stack" in step) is bool(options)
    if options:
        assert "time.sleep(seconds)" in step["stack"]
        assert '"level": "debug"' in held_up.log

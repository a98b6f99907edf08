"""A daemon with something of everything that the page shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team

PLUGIN = '''
"""The workflow of the page's tests."""

from aegis import workflow


@workflow
async def release(engine, *, version: str):
    """Build a version, ask a person, and publish it."""
    await engine.bash("echo built")
    answer = await engine.ask_human(f"Publish {version}?", options=["yes", "no"])
    return f"{version}: {answer}"
'''
PLAN = "# Plan\n\nThe next release.\n\n## Goals\n\n- ship\n\n## Log\n\nbegun\n"


class Studio(Team):
    """Agents, a queue, a group's preset, a plugin and a canvas's file."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        command = [sys.executable, str(STAND_IN), "claude"]
        profiles = {
            name: {"provider": "claude", "permission": permission, "command": [*command]}
            for name, permission in (("asks", "ask"), ("all", "full"))
        }
        configuration = {
            "agents": profiles,
            "default_agent": "asks",
            "queues": {"builds": {"agent": "all"}},
            "groups": {"presets": {"pair": ["asks", "all"]}},
            "limits": {"sessions": 24},
        }
        (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
        plugins = daemon.root / ".aegis" / "plugins"
        plugins.mkdir(parents=True)
        (plugins / "release.py").write_text(PLUGIN)
        self.plan = daemon.root / "plan.md"
        self.plan.write_text(PLAN)
        daemon.start("--port", "0", "--trust")
        self.call("canvas_open", name="plan", file="plan.md")

    def goals(self) -> dict[str, Any]:
        """The canvas's section that the tests edit."""
        reply = self.call("canvas_read", name="plan", section="Goals")
        [section] = reply["sections"]
        return dict(section)

    def release(self, version: str) -> str:
        """Start the workflow; return its id."""
        reply = self.call("run_workflow", name="release", kwargs={"version": version})
        id_: str = reply["workflow_id"]
        return id_


@contextmanager
def studio_at(directory: Path) -> Iterator[Studio]:
    daemon = DaemonProcess(directory)
    try:
        yield Studio(daemon)
    finally:
        code = daemon.stop() if daemon.is_running else 0
    assert code == 0
    daemon.check_left_nothing()

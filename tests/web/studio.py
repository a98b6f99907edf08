"""A daemon with something of everything that the page shows."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team
from tests.resources.waiting import until

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
        profiles: dict[str, dict[str, Any]] = {
            name: {"provider": "claude", "permission": permission, "command": [*command]}
            for name, permission in (("asks", "ask"), ("all", "full"))
        }
        profiles["acp"] = {
            "provider": "acp",
            "permission": "full",
            "command": [sys.executable, str(STAND_IN), "acp"],
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

    def works(self, handle: str) -> None:
        """Start an agent that thinks, plans, edits a file, and has its client run a command."""
        frames = self.daemon.root / f"{handle}.frames"
        frames.write_text("".join(f"{json.dumps(_update(each))}\n" for each in UPDATES))
        command = "sh -c 'echo tests/cart; sleep 1; echo 12 passed; exec sleep 1000'"
        orders = [f"RAW {frames}", f"TERM {command}", "SAY Done."]
        self.spawn("\n".join(orders), profile="acp", handle=handle)

    def furnish(self) -> dict[str, str]:
        """Have something of everything; return the places of the page by what they show."""
        for name in ("build", "server", "docs"):
            self.call("term_spawn", name=name)
        for command in (
            "git status --short",
            "echo '214 passed in 3.1 s'",
            "printf '\\033[1;34m%s\\033[0m  ' docs shop tests; echo README.md",
            "false",
        ):
            self.call("term_run", name="build", cmd=command)
        self.call("term_run", name="server", cmd="sleep 1000", until="started")
        self.call("term_run", name="docs", cmd="echo 'the pages are written'")
        self.call("workspace_create", workspace="checkout")
        self.call("shell_open", workspace="checkout", name="main")
        self.works("grace")
        self.spawn("SAY I look at the failing test first.\nASK pytest -q tests/cart", handle="ada")
        self.call("group_spawn_mixed", group="reviewers", preset="pair")
        self.call("group_broadcast", group="reviewers", objective="SAY It reads well.")
        self.call("group_wait_all", group="reviewers", timeout=GUARD_S)
        self.call("workflow_trust")
        release = self.release("1.2")
        self.call("enqueue", queue="builds", payload="SAY built")
        self.send("human", "The cart is ready for review.", sender="ada")
        until(lambda: len(self.call("request_list")["requests"]) == 2, "both requests are open")
        return {
            "overview": "/home",
            "terminal": "/t/build",
            "agent": "/a/grace",
            "request": "/a/ada",
            "queue": "/q/builds",
            "group": "/g/reviewers",
            "workflow": f"/w/{release}",
            "canvas": "/c/plan",
            "inboxes": "/inboxes",
            "own inbox": "/m/human",
            "inbox": "/m/ada",
            "access": "/access",
        }


def _update(update: dict[str, Any]) -> dict[str, Any]:
    params = {"sessionId": "ses_1", "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def _said(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


UPDATES: list[dict[str, Any]] = [
    _said("agent_thought_chunk", "The total is wrong when the cart is empty."),
    {
        "sessionUpdate": "plan",
        "entries": [
            {"content": "Find the failing test", "priority": "high", "status": "completed"},
            {"content": "Mend the total", "priority": "high", "status": "in_progress"},
            {"content": "Run all tests", "priority": "medium", "status": "pending"},
        ],
    },
    _said("agent_message_chunk", "An empty cart has no first item, so the sum fails. I mend it."),
    {
        "sessionUpdate": "tool_call",
        "toolCallId": "edit-1",
        "title": "Edit shop/cart.py",
        "kind": "edit",
        "status": "completed",
        "rawInput": {
            "file_path": "shop/cart.py",
            "old_string": "def total(items):\n    return sum(items, items[0])",
            "new_string": "def total(items):\n    return sum(items, start=0)",
        },
    },
    {
        "sessionUpdate": "tool_call",
        "toolCallId": "edit-2",
        "title": "Patch 2 files",
        "kind": "edit",
        "status": "completed",
        "content": [
            {
                "type": "diff",
                "path": "shop/tax.py",
                "oldText": "RATE = 19\n",
                "newText": "RATE = 7\n",
            },
            {
                "type": "diff",
                "path": "tests/tax.py",
                "oldText": None,
                "newText": "from shop import tax\n",
            },
        ],
    },
]


@contextmanager
def studio_at(directory: Path) -> Iterator[Studio]:
    daemon = DaemonProcess(directory)
    try:
        yield Studio(daemon)
    finally:
        code = daemon.stop() if daemon.is_running else 0
    assert code == 0
    daemon.check_left_nothing()

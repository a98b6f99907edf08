"""A daemon in a checkout, with agents of each kind that the page's tests of agents need."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.aegis.agents.directory.test_checkout import git
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team

MODELS = [
    {
        "value": "opus",
        "resolvedModel": "claude-opus",
        "displayName": "Opus",
        "supportsEffort": True,
        "supportedEffortLevels": ["low", "high"],
        "supportsAdaptiveThinking": True,
    },
    {"value": "haiku", "resolvedModel": "claude-haiku", "displayName": "Haiku"},
]
CART = "".join(f"line {number}\n" for number in range(1, 41))


class Crew(Team):
    """A team in a checkout: ``held`` can be taken over, ``models`` lists models, ``own`` uses the
    settings of the project, ``acp`` is an agent of the other protocol."""

    def __init__(self, daemon: DaemonProcess) -> None:
        root = daemon.root
        git(root, "init", "-q")
        (root / "cart.py").write_text(CART)
        (root / ".gitignore").write_text(".aegis*\n")
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", "first")
        self.home = root.parent / f"{root.name}.claude"
        variables = {
            "AGENT_WITNESS": str(root.parent / f"{root.name}.witness"),
            "CLAUDE_CONFIG_DIR": str(self.home),
        }
        files = {"STAND_IN_FILES": str(root.parent / f"{root.name}.files")}
        super().__init__(
            daemon,
            more={
                "held": _profile("claude", "ask", variables),
                "models": _profile("claude", "ask", {"STAND_IN_MODELS": json.dumps(MODELS)}),
                "kept": _profile("claude", "write", files),
                "own": {**_profile("claude", "ask", {}), "project_settings": True},
                "acp": _profile("acp", "full", {}),
            },
            limits={"sessions": 60, "spawns_per_hour": 500},
        )

    @property
    def root(self) -> Path:
        return self.daemon.root

    def idle(self, handle: str, order: str = "SAY ready", **arguments: object) -> str:
        """Start an agent, and wait until it has carried out its order."""
        self.spawn(order, handle=handle, **arguments)
        self.has_turns(handle, 1)
        self.is_in(handle, "idle")
        return handle

    def says(self, handle: str, *updates: dict[str, Any]) -> None:
        """Have an ACP agent report updates in a turn, and wait for its end."""
        frames = self.root.parent / f"{self.root.name}.{handle}.frames"
        params = [{"sessionId": "ses_1", "update": each} for each in updates]
        lines = [
            json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": each})
            for each in params
        ]
        frames.write_text("".join(f"{each}\n" for each in lines))
        self.idle(handle, f"RAW {frames}", profile="acp")


def _profile(provider: str, permission: str, variables: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, str(STAND_IN), provider]
    return {
        "provider": provider,
        "permission": permission,
        "command": command,
        "env": variables,
    }


def said(text: str, kind: str = "agent_message_chunk") -> dict[str, Any]:
    """Return the update with which an ACP agent says a text."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def called(id_: str, kind: str, title: str, **more: Any) -> dict[str, Any]:
    """Return the update of a tool call."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": id_,
        "kind": kind,
        "title": title,
        "status": "completed",
        **more,
    }


@contextmanager
def crew_at(directory: Path) -> Iterator[Crew]:
    daemon = DaemonProcess(directory)
    try:
        yield Crew(daemon)
    finally:
        code = daemon.stop() if daemon.is_running else 0
    assert code == 0
    daemon.check_left_nothing()

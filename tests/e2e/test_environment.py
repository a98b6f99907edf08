"""The environment that a daemon hands on to all that it starts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of
from tests.resources.waiting import until

pytestmark = pytest.mark.real

PLUGIN = """
from aegis import workflow

@workflow
async def shown(engine):
    return (await engine.bash("env")).stdout
"""

OF_PLACE = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CODEX_SANDBOX": "seatbelt",
    "TMUX": "/tmp/x,1,0",
    "TMUX_PANE": "%1",
    "STY": "1.x",
    "ZELLIJ_SESSION_NAME": "z",
    "TERM_PROGRAM": "vscode",
    "TERM_PROGRAM_VERSION": "1",
    "VSCODE_INJECTION": "1",
    "VTE_VERSION": "7000",
    "KITTY_WINDOW_ID": "1",
    "GHOSTTY_RESOURCES_DIR": "/g",
    "WEZTERM_PANE": "1",
    "INSIDE_EMACS": "29",
    "NOTIFY_SOCKET": "/run/n",
    "COLUMNS": "7",
    "GIT_AUTHOR_DATE": "@1 +0000",
    "GIT_PREFIX": "",
}
KEPT = {
    "SSH_AUTH_SOCK": "/run/ssh",
    "DISPLAY": ":9",
    "WAYLAND_DISPLAY": "wayland-9",
    "HTTPS_PROXY": "http://proxy",
    "SSL_CERT_FILE": "/ca",
    "CARGO_HOME": "/cargo",
    "GIT_SSH_COMMAND": "ssh -x",
    "NOBODYS": "listed",
}


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """The git directory of a repository whose hook starts the daemon."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "outer")], check=True)
    return tmp_path / "outer" / ".git"


@pytest.fixture
def team(own_daemon: DaemonProcess, outer: Path) -> Iterator[Team]:
    of_git = {"GIT_DIR": str(outer), "GIT_INDEX_FILE": str(outer / "index")}
    own_daemon.variables = {**own_daemon.variables, **OF_PLACE, **KEPT, **of_git}
    plugins = own_daemon.root / ".aegis" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "shown.py").write_text(PLUGIN)
    acp = {"provider": "acp", "asking_mode": "default", "permission": "full"}
    command = [sys.executable, str(STAND_IN), "acp"]
    yield Team(own_daemon, more={"acp": {**acp, "command": command}})
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def variables(text: str) -> dict[str, str]:
    """The variables in the output of ``env``."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def of_workflow(team: Team) -> dict[str, str]:
    id_ = team.call("run_workflow", name="shown")["workflow_id"]

    def status() -> dict[str, Any]:
        return team.call("workflow_status", workflow_id=id_)

    until(lambda: bool(status()["ended"]), "the workflow has ended")
    return variables(json.loads(status()["result"]))


def of_agent(team: Team) -> dict[str, str]:
    handle = team.spawn("ENVIRON")
    until(lambda: any("environ" in each for each in team.texts(handle)), "the agent answers")
    found: dict[str, str] = json.loads(team.texts(handle)[0])["environ"]
    return found


def of_command_of_agent(team: Team) -> dict[str, str]:
    handle = team.spawn("TERM env > acp.env; echo written", profile="acp")
    until(lambda: "written" in "\n".join(team.texts(handle)), "the command has ended")
    return variables((team.daemon.root / "acp.env").read_text())


def of_terminal_agent(team: Team) -> dict[str, str]:
    team.call("agent_launch", cmd="env > t.env; mv t.env terminal.env; sleep 600")
    path = team.daemon.root / "terminal.env"
    until(path.exists, "the program runs")
    return variables(path.read_text())


def test_no_process_gets_the_facts_about_the_place_of_start_and_all_get_the_settings(
    team: Team, outer: Path
) -> None:
    daemon = team.daemon
    daemon.call("workspace_create", workspace="w", directory=str(daemon.root))
    environments = {
        "terminal": variables(daemon.terminal("t").run("env")["stdout"]),
        "workspace": variables(team.call("workspace_exec", workspace="w", command="env")["stdout"]),
        "workflow": of_workflow(team),
        "agent": of_agent(team),
        "its command": of_command_of_agent(team),
        "terminal agent": of_terminal_agent(team),
    }
    facts = {*OF_PLACE, "GIT_DIR", "GIT_INDEX_FILE"} - {"CLAUDE_CODE_ENTRYPOINT"}
    for name, found in environments.items():
        assert not facts & found.keys(), name
        assert KEPT.items() <= found.items(), name
    assert environments["terminal"].keys().isdisjoint({"CLAUDE_CODE_ENTRYPOINT"})
    # The names, not the values, are shown of the running daemon, by anybody's doctor.
    shown = daemon.examine()["environment"].sentence
    assert {"CLAUDECODE", "GIT_DIR", "TMUX"} <= set(shown.replace(",", "").split())
    assert str(outer) not in shown


def test_a_commit_in_another_directory_is_made_there(team: Team, outer: Path) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m inner"
    record = team.daemon.terminal("t").run(f"git init -q inner && cd inner && {commit}")
    assert record["exit"] == 0
    assert (team.daemon.root / "inner" / ".git" / "logs" / "HEAD").exists()
    assert not (outer / "logs").exists()
    assert not list((outer / "refs" / "heads").iterdir())


@pytest.mark.long
def test_a_worker_and_its_terminals_get_none_of_them_either(own_daemon: DaemonProcess) -> None:
    own_daemon.variables = {**own_daemon.variables, **OF_PLACE, **KEPT}
    own_daemon.start("--port", "0", "--workers", "1")
    terminal = own_daemon.terminal("t")
    assert terminal.info["node"] == "w1"
    found = variables(terminal.run("env; tr '\\0' '\\n' < /proc/$PPID/environ")["stdout"])
    assert not OF_PLACE.keys() & found.keys()
    assert KEPT.items() <= found.items()

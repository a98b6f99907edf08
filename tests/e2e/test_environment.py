"""The environment that a daemon hands on to all that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.journal.ledger import decode_line, encode_line, seal_line
from aegis.state.root import open_seals
from tests.e2e.harness import PROGRAM, DaemonProcess
from tests.e2e.hosts import HostProcess, start_with_nodes
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


def of_workflow(team: Team, caller: str | None = None) -> dict[str, str]:
    id_ = team.call("run_workflow", name="shown", from_handle=caller)["workflow_id"]

    def status() -> dict[str, Any]:
        return team.call("workflow_status", workflow_id=id_)

    until(lambda: bool(status()["ended"]), "the workflow has ended")
    return variables(json.loads(status()["result"]))


def of_agent(team: Team, profile: str = "asks") -> dict[str, str]:
    handle = team.spawn("ENVIRON", profile=profile)
    until(lambda: any("environ" in each for each in team.texts(handle)), "the agent answers")
    [text] = [each for each in team.texts(handle) if "environ" in each]
    found: dict[str, str] = json.loads(text)["environ"]
    return found


def of_command_of_agent(team: Team, profile: str = "acp") -> dict[str, str]:
    handle = team.spawn("TERM env > acp.env; echo written", profile=profile)
    until(lambda: "written" in "\n".join(team.texts(handle)), "the command has ended")
    return variables((team.daemon.root / "acp.env").read_text())


def of_terminal_agent(team: Team, cmd: str = "", **arguments: object) -> dict[str, str]:
    path = team.daemon.root / "terminal.env"
    path.unlink(missing_ok=True)
    team.call(
        "agent_launch", cmd=cmd or "env > t.env; mv t.env terminal.env; sleep 600", **arguments
    )
    until(path.exists, "the program runs")
    return variables(path.read_text())


@pytest.mark.long
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


KEYS = {
    "ANTHROPIC_API_KEY": "a",
    "OPENAI_API_KEY": "o",
    "KIMI_API_KEY": "k",
    "MISTRAL_API_KEY": "m",
    "WORK_API_KEY": "w",
}
"""Keys in the environment of the daemon. The last one is a profile's."""


@pytest.fixture
def with_keys(own_daemon: DaemonProcess) -> Iterator[Team]:
    own_daemon.variables = {**own_daemon.variables, **KEYS, "GH_TOKEN": "g"}
    plugins = own_daemon.root / ".aegis" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "shown.py").write_text(PLUGIN)
    more: dict[str, dict[str, Any]] = {
        "kimi": {"provider": "kimi"},
        "other": {"provider": "acp", "asking_mode": "default"},
        "work": {"provider": "acp", "asking_mode": "default"},
    }
    for each in more.values():
        each |= {"permission": "full", "command": [sys.executable, str(STAND_IN), "acp"]}
    more["work"]["env"] = {"OPENAI_API_KEY": "$WORK_API_KEY"}
    yield Team(own_daemon, more=more)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def keys_in(found: dict[str, str]) -> dict[str, str]:
    assert found["GH_TOKEN"] == "g"  # no key of a provider
    return {name: text for name, text in found.items() if name in KEYS}


def keys_of_terminal(daemon: DaemonProcess, name: str) -> dict[str, str]:
    return keys_in(variables(daemon.terminal(name).run("env")["stdout"]))


def written_by_an_older_version(daemon: DaemonProcess, name: str) -> None:
    path = daemon.state.terminals / name / "meta.json"
    seal = open_seals(str(daemon.root)).of(str(path))
    fields = decode_line(path.read_bytes(), seal)
    del fields["withheld"]
    path.write_bytes(seal_line(encode_line(fields), seal))


def test_an_agent_and_its_commands_get_only_the_keys_of_its_own_provider(with_keys: Team) -> None:
    team = with_keys
    assert keys_in(of_agent(team)) == {"ANTHROPIC_API_KEY": "a"}
    assert keys_in(of_agent(team, "kimi")) == {"KIMI_API_KEY": "k"}
    assert keys_in(of_agent(team, "other")) == {}
    assert keys_in(of_agent(team, "work")) == {"OPENAI_API_KEY": "w", "WORK_API_KEY": "w"}
    assert keys_in(of_command_of_agent(team, "kimi")) == {}


@pytest.mark.long
def test_what_a_person_opens_has_all_keys_and_what_an_agent_opens_those_of_its_provider(
    with_keys: Team,
) -> None:
    team, daemon = with_keys, with_keys.daemon
    anthropic = {"ANTHROPIC_API_KEY": "a"}
    ann = team.spawn(handle="ann")
    daemon.call("workspace_create", workspace="w", directory=str(daemon.root))
    for caller, keys in ((None, KEYS), (ann, anthropic), ("stranger", {})):
        daemon.call("term_spawn", name=f"t-{caller}", from_handle=caller)
        assert keys_of_terminal(daemon, f"t-{caller}") == keys
        done = team.call("workspace_exec", workspace="w", command="env", from_handle=caller)
        assert keys_in(variables(done["stdout"])) == keys
        assert keys_in(of_workflow(team, caller)) == keys
    # A fresh shell, another life of the daemon, an agent that is gone: as it was opened.
    daemon.terminal(f"t-{ann}").run("exit")
    assert keys_of_terminal(daemon, f"t-{ann}") == anthropic
    team.call("agent_purge", handle=ann)
    daemon.stop()
    for name in ("t-None", "t-stranger"):
        written_by_an_older_version(daemon, name)
    daemon.start("--port", "0", "--trust")
    assert keys_of_terminal(daemon, f"t-{ann}") == anthropic
    assert keys_of_terminal(daemon, "t-None") == KEYS
    assert keys_of_terminal(daemon, "t-stranger") == {"WORK_API_KEY": "w"}


def test_a_terminal_agent_gets_the_keys_of_its_program_and_of_its_launcher_if_that_is_unknown(
    with_keys: Team,
) -> None:
    team, root = with_keys, with_keys.daemon.root
    (root / "claude").write_text("#!/bin/sh\nenv > t.env; mv t.env terminal.env; sleep 600\n")
    (root / "claude").chmod(0o755)
    assert keys_in(of_terminal_agent(team, "FOO=1 ./claude")) == {"ANTHROPIC_API_KEY": "a"}
    assert keys_in(of_terminal_agent(team)) == KEYS
    kimi = team.spawn(profile="kimi")
    assert keys_in(of_terminal_agent(team, from_handle=kimi)) == {"KIMI_API_KEY": "k"}


@pytest.mark.long
def test_a_terminal_on_a_worker_gets_the_keys_of_who_opened_it(own_daemon: DaemonProcess) -> None:
    own_daemon.variables = {**own_daemon.variables, **KEYS, "GH_TOKEN": "g"}
    own_daemon.start("--port", "0", "--workers", "1")
    for name, caller in (("mine", None), ("its", "stranger")):
        info = own_daemon.call("term_spawn", name=name, from_handle=caller)
        assert info["node"] == "w1"
    assert keys_of_terminal(own_daemon, "mine") == KEYS
    assert keys_of_terminal(own_daemon, "its") == {"WORK_API_KEY": "w"}  # no profile names it


# The person's variables of Python, and their modules.

MINE = """
from mine import NAME
from aegis import workflow

@workflow
async def named(engine):
    return [NAME, (await engine.bash("echo $PYTHONPATH")).stdout.strip()]
"""

SHADOWS = ("actors/__init__", "aegis/__init__", "attr", "trio", "click", "typing")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory of a person whose modules have the names of ours and of our dependencies."""
    directory = tmp_path / "theirs"
    for name in SHADOWS:
        path = directory / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('a module of theirs was imported')\n")
    (directory / "mine.py").write_text("NAME = 'imported'\n")
    return directory


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYTHONPATH", "{theirs}"),
        ("PYTHONPATH", "."),
        ("PYTHONPATH", ":/nowhere"),
        ("PYTHONWARNINGS", "error"),
        ("PYTHONOPTIMIZE", "2"),
        ("PYTHONINSPECT", "1"),
        ("PYTHONDEVMODE", "1"),
        ("PYTHONSTARTUP", "{theirs}/attr.py"),
        ("PYTHONSAFEPATH", "1"),
        ("NONE", ""),
    ],
)
def test_no_variable_of_python_changes_the_program(theirs: Path, name: str, value: str) -> None:
    environment = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}

    def run(*words: str, **variables: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [PROGRAM, *words],
            cwd=theirs,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    # A verb without click, one with it, and the help, which is made of docstrings.
    for words in (("status",), ("config", "check"), ("term", "run", "--help")):
        assert run(*words, **{name: value.format(theirs=theirs)}) == run(*words)


def test_a_module_beside_the_installed_program_is_not_imported(theirs: Path) -> None:
    (theirs / "aegis-actors").write_bytes(PROGRAM.read_bytes())
    words = [sys.executable, str(theirs / "aegis-actors"), "--version"]
    done = subprocess.run(words, cwd=theirs, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_our_processes_ignore_the_path_of_the_person_and_shells_and_plugins_keep_it(
    own_daemon: DaemonProcess, theirs: Path
) -> None:
    own_daemon.variables = {
        **own_daemon.variables,
        "PYTHONPATH": str(theirs),
        "PYTHONWARNINGS": "error",
        "PYTHONOPTIMIZE": "2",
    }
    plugins = own_daemon.root / ".aegis" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "named.py").write_text(MINE)
    (own_daemon.root / ".aegis.yaml").write_text("default_agent: claude\n")
    own_daemon.start("--port", "0", "--trust", "--workers", "1")
    terminal = own_daemon.terminal("t")
    assert terminal.info["node"] == "w1"
    assert terminal.run("echo $PYTHONPATH $PYTHONOPTIMIZE")["stdout"] == f"{theirs} 2\n"
    id_ = own_daemon.call("run_workflow", name="named")["workflow_id"]

    def status() -> dict[str, Any]:
        return own_daemon.call("workflow_status", workflow_id=id_)

    until(lambda: bool(status()["ended"]), "the workflow has ended")
    assert json.loads(status()["result"]) == ["imported", str(theirs)]
    assert own_daemon.cli("status").returncode == 0
    assert "theirs was imported" not in own_daemon.log


@pytest.mark.long
def test_a_joined_host_hands_on_neither_its_place_nor_its_keys_to_agents(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.variables = {**own_daemon.variables, **OF_PLACE, **KEYS}
    host = HostProcess(tmp_path, own_daemon, start_with_nodes(own_daemon))
    host.start()
    try:
        for name, caller in (("mine", None), ("its", "stranger")):
            own_daemon.call("term_spawn", name=name, node=host.name, from_handle=caller)
            found = variables(own_daemon.terminal(name).run("env")["stdout"])
            assert not OF_PLACE.keys() & found.keys()
            assert ("KIMI_API_KEY" in found) is (caller is None)
    finally:
        host.stop()

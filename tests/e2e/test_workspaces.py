"""Workspaces and their shells: over the line protocol, MCP and the command line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp import Client

from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

_numbers = itertools.count()


@pytest.fixture
def workspace(daemon: DaemonProcess, tmp_path: Path) -> Iterator[str]:
    """A workspace in a directory of its own."""
    name = f"w{next(_numbers)}"
    reply = daemon.call("workspace_create", workspace=name, directory=str(tmp_path))
    assert reply == {"workspace_id": name, "directory": str(tmp_path), "shells": [], "agent": None}
    yield name
    if name in names(daemon):
        daemon.call("workspace_delete", workspace=name, purge=True)


def names(daemon: DaemonProcess) -> list[str]:
    return [each["workspace_id"] for each in daemon.call("workspace_list")["result"]]


def read_until(daemon: DaemonProcess, shell: str, wanted: str, cursor: int = 0) -> tuple[str, int]:
    """Read in chunks of some bytes until ``wanted`` was there; the text and where to read on."""
    text = ""
    while wanted not in text:
        reply = daemon.call(
            "shell_read", shell=shell, cursor=cursor, max_bytes=256, plain=True, wait_s=GUARD_S
        )
        assert reply["next_cursor"] > cursor, f"nothing more came after {text!r}"
        text, cursor = text + reply["text"], reply["next_cursor"]
    return text, cursor


# The acceptance scenarios.


def test_open_a_shell_write_read_in_chunks_interrupt_and_close(
    daemon: DaemonProcess, workspace: str, tmp_path: Path
) -> None:
    opened = daemon.call("shell_open", workspace=workspace, cols=100, rows=30)
    shell = opened["shell_id"]
    assert opened == {
        "workspace_id": workspace,
        "shell_id": shell,
        "cols": 100,
        "rows": 30,
        "cwd": str(tmp_path),
        "state": "running",
    }
    done = {"ok": True}
    assert daemon.call("shell_write", shell=shell, input="cd / && X=here") == done
    assert daemon.call("shell_write", shell=shell, input="echo $X-$PWD; echo a{1..30}") == done
    text, cursor = read_until(daemon, shell, "a30\n")
    assert "here-/\na1 a2 " in text
    gate = Gate(tmp_path)
    # The process that is there when the gate is reached is the one that sleeps: no fork in between
    # could miss the signal.
    daemon.call("shell_write", shell=shell, input=f"({gate.reach}; exec sleep 600)")
    gate.wait_reached()
    assert daemon.call("shell_signal", shell=shell, signal="INT") == done
    daemon.call("shell_write", shell=shell, input="echo exit=$?")
    read_until(daemon, shell, "exit=130", cursor)
    assert daemon.call("shell_close", shell=shell) == {"ok": True, "leftover": []}
    assert daemon.shell_processes(shell) == []
    gate.close()


def test_a_new_shell_of_the_same_workspace_is_another_one(
    daemon: DaemonProcess, workspace: str
) -> None:
    first = daemon.call("shell_open", workspace=workspace)["shell_id"]
    daemon.call("shell_write", shell=first, input="SEEN=1; echo first-$SEEN")
    read_until(daemon, first, "first-1")
    daemon.call("shell_close", shell=first)
    second = daemon.call("shell_open", workspace=workspace)["shell_id"]
    assert second != first
    daemon.call("shell_write", shell=second, input="echo second-${SEEN-none}")
    text, _ = read_until(daemon, second, "second-none")
    assert "first" not in text


def test_deleting_a_workspace_ends_its_shells(
    daemon: DaemonProcess, workspace: str, tmp_path: Path
) -> None:
    shells = [daemon.call("shell_open", workspace=workspace)["shell_id"] for _ in range(2)]
    gate = Gate(tmp_path)
    daemon.call("shell_write", shell=shells[0], input=f"nohup sleep 600 & {gate.reach}")
    gate.wait_reached()
    deleted = daemon.call("workspace_delete", workspace=workspace)
    assert deleted == {"ok": True, "closed": shells, "leftover": [], "agents": []}
    assert workspace not in names(daemon)
    assert [daemon.shell_processes(shell) for shell in shells] == [[], []]
    assert tmp_path.is_dir()
    refusal = daemon.refusal("shell_write", shell=shells[0], input="x")
    assert refusal.code == "not_found"
    gate.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_scenario_over_mcp(
    connect_mcp: Connect, mode: str, tmp_path: Path, daemon: DaemonProcess
) -> None:
    name = f"mcp-{mode}"

    async def called(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    with trio.fail_after(GUARD_S):
        async with connect_mcp(daemon, mode, "alice") as client:
            found = await called(client, "aegis_tools", word="shell")
            tools = {each["name"] for each in found["tools"]}
            assert {"shell_open", "shell_read", "shell_write", "shell_close"} <= tools
            await called(client, "workspace_create", workspace=name, directory=str(tmp_path))
            shell = (await called(client, "shell_open", workspace=name))["shell_id"]
            await called(client, "shell_write", shell=shell, input="printf 'a\\tb\\n'")
            text, cursor = "", 0
            while "a\tb" not in text:
                read = await called(client, "shell_read", shell=shell, cursor=cursor, wait_s=10)
                text, cursor = text + read["text"], read["next_cursor"]
            result = await called(client, "workspace_exec", workspace=name, command="pwd; exit 3")
            assert (result["exit"], result["stdout"]) == (3, f"{tmp_path}\n")
            record = daemon.call("term_read", name=shell, last_n=1)["result"][0]
            assert record["writer"] == "agent:alice"
            await called(client, "workspace_delete", workspace=name)


def test_the_scenario_on_the_command_line(daemon: DaemonProcess, tmp_path: Path) -> None:
    assert daemon.cli("workspace", "create", "cli", str(tmp_path)).returncode == 0
    shell = daemon.json("shell", "open", "cli", "--name", "main", "--json")["shell_id"]
    assert shell == "cli.main"
    assert daemon.cli("shell", "write", shell, "echo $((6*7))").returncode == 0
    read_until(daemon, shell, "42\n")
    read = daemon.cli("shell", "read", shell, "--cursor", "0")
    assert "42\n" in read.stdout
    assert "\\x1b" not in read.stdout
    assert "continue with --cursor" in read.stderr
    all_of_it = daemon.cli("shell", "read", shell, "--cursor", "0", "--no-plain").stdout
    assert ("\x1b" in all_of_it, "\\x1b" in all_of_it) == (False, True)
    executed = daemon.cli("workspace", "exec", "cli", "echo out; echo err >&2; exit 9")
    assert (executed.returncode, executed.stdout, executed.stderr) == (9, "out\n", "err\n")
    assert "cli.main" in daemon.cli("workspace", "list").stdout
    assert daemon.cli("shell", "signal", shell, "INT").returncode == 0
    assert daemon.cli("shell", "close", shell).returncode == 0
    assert daemon.cli("workspace", "delete", "cli").returncode == 0
    gone = daemon.cli("shell", "read", shell)
    assert (gone.returncode, "no shell 'cli.main'" in gone.stderr) == (1, True)


# One implementation.


def test_a_shell_is_a_terminal_with_records_and_cursors(
    daemon: DaemonProcess, workspace: str
) -> None:
    shell = daemon.call("shell_open", workspace=workspace, name="t")["shell_id"]
    record = daemon.call("term_run", name=shell, cmd="echo both", timeout=GUARD_S)
    text, _ = read_until(daemon, shell, "both\n", record["raw_start"])
    assert text.startswith("both\n")
    assert shell in [info["name"] for info in daemon.call("term_list")["result"]]


def test_a_shell_whose_terminal_was_closed_is_stopped_and_can_be_opened_again(
    daemon: DaemonProcess, workspace: str
) -> None:
    shell = daemon.call("shell_open", workspace=workspace, name="t")["shell_id"]
    daemon.call("term_close", name=shell)
    [info] = [
        each
        for each in daemon.call("workspace_list")["result"]
        if each["workspace_id"] == workspace
    ]
    assert [(each["shell_id"], each["state"]) for each in info["shells"]] == [(shell, "stopped")]
    assert daemon.call("shell_open", workspace=workspace, name="t")["state"] == "running"
    daemon.call("term_close", name=shell)
    assert daemon.call("shell_close", shell=shell) == {"ok": True, "leftover": []}


def test_workspaces_and_shells_come_back_after_a_kill(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start()
    own_daemon.call("workspace_create", workspace="demo", directory=str(tmp_path))
    shell = own_daemon.call("shell_open", workspace="demo")["shell_id"]
    own_daemon.call("shell_write", shell=shell, input="echo before-$((1+1))")
    _, cursor = read_until(own_daemon, shell, "before-2")
    own_daemon.kill()
    own_daemon.start()
    [info] = own_daemon.call("workspace_list")["result"]
    assert [each["shell_id"] for each in info["shells"]] == [shell]
    # What is typed before a first prompt may be dropped by the shell.
    own_daemon.call("term_run", name=shell, cmd="true")
    own_daemon.call("shell_write", shell=shell, input="echo after-$((1+1))")
    text, _ = read_until(own_daemon, shell, "after-2", cursor)
    assert "before-2" not in text


# Errors.


def test_what_cannot_be_is_refused_in_one_sentence(
    daemon: DaemonProcess, workspace: str, tmp_path: Path
) -> None:
    cases: list[tuple[str, dict[str, object], str, str]] = [
        ("workspace_create", {"workspace": workspace}, "already_exists", "already"),
        ("workspace_create", {"workspace": "a.b"}, "invalid_request", "1 to 32 letters"),
        ("workspace_create", {"workspace": "x", "directory": "/none"}, "invalid_request", "/none"),
        ("workspace_exec", {"workspace": "none", "command": "true"}, "not_found", "none"),
        ("workspace_exec", {"workspace": workspace, "command": "\0"}, "invalid_request", "NUL"),
        ("shell_open", {"workspace": "none"}, "not_found", "workspace_create"),
        ("shell_open", {"workspace": workspace, "cwd": "none"}, "invalid_request", "cwd"),
        ("shell_open", {"workspace": workspace, "shell": "none"}, "invalid_request", "shell"),
        ("shell_open", {"workspace": workspace, "name": "../x"}, "invalid_request", "1 to 31"),
        ("shell_read", {"shell": "none"}, "not_found", "shell_open"),
        ("shell_close", {"shell": "none"}, "not_found", "shell_open"),
    ]
    for command, arguments, code, words in cases:
        refusal = daemon.refusal(command, **arguments)
        assert refusal.code == code, command
        assert words in str(refusal), command
    listed = daemon.call("workspace_list")["result"]
    [shells] = [each["shells"] for each in listed if each["workspace_id"] == workspace]
    assert shells == []


def test_a_client_that_goes_away_ends_its_command(
    daemon: DaemonProcess, workspace: str, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    pending = daemon.send("workspace_exec", workspace=workspace, command=f"{gate.reach}; sleep 600")
    gate.wait_reached()
    assert daemon.shell_processes("@" + workspace) != []
    pending.cancel()
    while daemon.shell_processes("@" + workspace):
        pass  # the end was begun by the cancel: it comes, or the test hangs
    gate.close()

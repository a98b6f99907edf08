"""G23: a root that was moved or copied acts only in itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.journal.ledger import decode_line, encode_line, seal_line
from aegis.journal.note import SLOT_BYTES
from aegis.path_text import path_of_stored, text_of_path
from aegis.state.root import StatePaths, open_seals
from tests.e2e.harness import DaemonProcess

pytestmark = [pytest.mark.real, pytest.mark.long]

TUI = Path(__file__).parents[1] / "fakes" / "agents" / "tui.py"

ODD = os.fsdecode(b"d\xff")
"""A directory whose name is not UTF-8."""


@pytest.fixture
def moved(own_daemon: DaemonProcess, tmp_path: Path) -> Iterator[DaemonProcess]:
    """The daemon of the root once it is moved or copied there: nothing is there yet."""
    (tmp_path / "later").mkdir()
    later = DaemonProcess(tmp_path / "later")
    shutil.rmtree(later.root)
    try:
        yield later
    finally:
        later.hang_up()
        if later.root.exists() and later.is_running:
            later.stop()


def filled(daemon: DaemonProcess) -> None:
    """Make a terminal, a workspace and an agent in directories below the root; stop the daemon."""
    for name in ("sub", ODD):
        (daemon.root / name).mkdir()
    daemon.start()
    daemon.call("term_spawn", name="spawned", cwd="sub")
    daemon.call("term_spawn", name="went", cwd="sub")
    daemon.terminal("went").run("cd ../d*")
    daemon.terminal("went").run("true")
    daemon.call("workspace_create", workspace="root")
    daemon.call("workspace_create", workspace="sub", directory="sub")
    cmd = f"{sys.executable} {TUI} reports"
    daemon.call("agent_launch", cmd=cmd, handle="ann")
    daemon.call(
        "agent_launch", cmd=f"{sys.executable} {TUI} reports", handle="eve", workspace="sub"
    )
    assert daemon.stop() == 0


def directories(daemon: DaemonProcess) -> list[str]:
    """Where what was made acts now; asked of the shells and the kernel where that is possible."""
    terminals = [daemon.terminal(name).run("pwd -P")["stdout"][:-1] for name in ("spawned", "went")]
    executions = [
        daemon.call("workspace_exec", workspace=each, command="pwd -P")["stdout"][:-1]
        for each in ("root", "sub")
    ]
    agents = [daemon.call("agent_show", handle=each)["cwd"] for each in ("ann", "eve")]
    return [os.path.relpath(each, daemon.root) for each in (*terminals, *executions, *agents)]


HERE = ["sub", "d\N{REPLACEMENT CHARACTER}", ".", "sub", ".", "sub"]
"""The directories that ``filled`` has chosen, below the root."""


def make_older(state: StatePaths) -> None:
    """Make it the state of a version that stored absolute directories."""
    seals, root = open_seals(str(state.root)), text_of_path(state.root)

    def older(fields: Any, key: str) -> Any:
        if isinstance(fields, list):
            return [older(each, key) for each in fields]
        if not isinstance(fields, dict):
            return fields
        place = fields.get("place")
        absolute = {key: path_of_stored(place, root)} if isinstance(place, str) else {}
        others = {name: older(each, key) for name, each in fields.items() if name != "place"}
        if fields.get("set", {}).get("type") == "session":  # a row of a table
            return {"kind": "opened", "id": fields["id"], **older(fields["set"], key)}
        return {**others, **absolute}

    state.place.unlink()
    files = [state.workspaces, state.agents / "sessions.jsonl"]
    for name in ("meta.json", "in_flight.json"):
        files += state.terminals.glob(f"*/{name}")
    for path in files:
        seal, key = seals.of(str(path)), "directory" if path == state.workspaces else "cwd"
        content = path.read_bytes()
        lines = content.splitlines(keepends=True)
        if path.suffix == ".json" and len(content) % SLOT_BYTES == 0:  # a note has two slots
            lines = [content[:SLOT_BYTES], content[SLOT_BYTES:]]
        for number, line in enumerate(lines):
            text, newline, rest = line.partition(b"\n")
            if text.strip():
                fields = older(decode_line(text + newline, seal), key)
                sealed = seal_line(encode_line(fields), seal)
                lines[number] = sealed + rest[len(sealed) - len(text) - 1 :]
        assert b'"place"' not in b"".join(lines)
        path.write_bytes(b"".join(lines))


def another_project(root: Path) -> dict[str, str]:
    """Make directories as in the root, with a file each; return the files."""
    for name in ("", "sub", ODD):
        (root / name).mkdir(exist_ok=True)
        (root / name / "precious").write_text("of another project")
    return contents(root)


def contents(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file() and ".aegis" not in path.parts)
    return {str(path.relative_to(root)): path.read_text() for path in files}


@pytest.mark.parametrize("version", ["this", "older"])
def test_what_lies_below_a_moved_root_is_used_there_though_its_old_path_has_another_project(
    own_daemon: DaemonProcess, moved: DaemonProcess, version: str
) -> None:
    filled(own_daemon)
    if version == "older":
        make_older(own_daemon.state)
    own_daemon.root.rename(moved.root)
    before = another_project(own_daemon.root)
    for _ in range(2):  # the second start no longer learns from the registry where it was
        moved.start()
        assert directories(moved) == HERE
        moved.terminal("went").run("rm -f precious; cd ../sub; rm -f precious")
        moved.terminal("went").run("cd ../d*")
        assert moved.stop() == 0
    assert contents(own_daemon.root) == before


def test_a_moved_root_is_known_though_a_new_project_was_started_at_its_old_path_first(
    own_daemon: DaemonProcess, moved: DaemonProcess
) -> None:
    filled(own_daemon)
    own_daemon.root.rename(moved.root)
    another_project(own_daemon.root)
    own_daemon.start()
    moved.start()
    assert directories(moved) == HERE
    assert own_daemon.call("term_list")["result"] == []


def test_a_client_of_a_moved_root_is_not_led_to_the_daemon_of_the_project_at_its_old_path(
    own_daemon: DaemonProcess, moved: DaemonProcess
) -> None:
    filled(own_daemon)
    own_daemon.start()
    own_daemon.kill()
    own_daemon.root.rename(moved.root)
    another_project(own_daemon.root)
    own_daemon.start()
    own_daemon.call("term_spawn", name="went")
    done = moved.cli("term", "run", "went", "rm -f precious")
    assert done.returncode != 0
    assert "aegis-actors up" in done.stderr
    assert (own_daemon.root / "precious").exists()


@pytest.mark.parametrize("version", ["this", "older"])
def test_a_copy_acts_in_itself_and_has_keys_of_its_own(
    own_daemon: DaemonProcess, moved: DaemonProcess, version: str
) -> None:
    filled(own_daemon)
    if version == "older":
        make_older(own_daemon.state)
    own_daemon.start()
    session = own_daemon.call("session_new", handle="alice")["url"]
    own_daemon.cli("node", "key")
    kept = own_daemon.terminal("went")
    kept.run("X=kept")
    shutil.copytree(
        own_daemon.root, moved.root, ignore=lambda *_: ["aegis.sock"], copy_function=_copy_if_there
    )
    before = another_project(own_daemon.root)
    moved.start("--port", "0", "--trust")
    assert kept.run("echo $X")["stdout"] == "kept\n", "the shell of the original was not ended"
    assert directories(moved) == HERE
    moved.terminal("went").run("rm -f precious")
    assert contents(own_daemon.root) == before
    moved.cli("node", "key")
    assert moved.endpoint.token != own_daemon.endpoint.token
    secret, other = (url.rpartition("/")[2] for url in (session, _session(moved)))
    assert secret != other
    keys = [StatePaths(each.root).node_key.read_bytes()[:64] for each in (own_daemon, moved)]
    assert keys[0] != keys[1]
    token = own_daemon.endpoint.token
    assert moved.stop() == 0
    moved.start("--port", "0", "--trust")  # it is a copy no more
    assert moved.endpoint.token != token
    assert _session(moved).rpartition("/")[2] == other


def _copy_if_there(source: str, target: str) -> None:
    """Copy a file of a daemon that runs: one that replaces another was listed, and is gone."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _session(daemon: DaemonProcess) -> str:
    url: str = daemon.call("session_new", handle="alice")["url"]
    return url


def test_a_directory_that_is_gone_is_said_where_its_terminal_is_listed(
    own_daemon: DaemonProcess, moved: DaemonProcess
) -> None:
    filled(own_daemon)
    own_daemon.root.rename(moved.root)
    (moved.root / ODD).rmdir()
    (moved.root / "sub").rmdir()
    moved.start()
    info = moved.terminal("went").described()
    assert info["cwd"] == str(moved.root)
    assert "is gone, so it was started in" in info["notice"]
    assert info["notice"] in moved.cli("term", "list").stdout
    refused = moved.refusal("workspace_exec", workspace="sub", command="pwd")
    assert f"{moved.root}/sub' does not exist" in str(refused)

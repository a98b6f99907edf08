"""The files by which clients find a daemon are made again when they are removed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

import aegis
from aegis.client.errors import ConnectionLost
from aegis.client.line import open_connection
from tests.e2e.harness import PROGRAM, DaemonProcess

pytestmark = pytest.mark.real


def by_command_line(daemon: DaemonProcess) -> str:
    done = daemon.cli("term", "run", "build", "echo $X")
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_blocking_client(daemon: DaemonProcess) -> str:
    with aegis.connect_sync(daemon.root) as client:
        return client.terminals.run("build", "echo $X").stdout


def by_trio_client(daemon: DaemonProcess) -> str:
    async def run() -> str:
        async with aegis.connect(daemon.root) as client:
            return (await client.terminals.run("build", "echo $X")).stdout

    return trio.run(run)


def by_mcp(daemon: DaemonProcess) -> str:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "aegis_term_run", "arguments": {"name": "build", "cmd": "echo $X"}},
    }
    done = subprocess.run(
        [PROGRAM, "mcp", "--handle", "pm"],
        input=f"{json.dumps(HELLO)}\n{json.dumps(call)}\n",
        env=daemon.environment,
        cwd=daemon.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    [answer] = [each["result"] for each in answers if each.get("id") == 1]
    stdout: str = answer["structuredContent"]["stdout"]
    return stdout


HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.long
@pytest.mark.parametrize("name", ["aegis.sock", "endpoint.json"])
def test_every_client_gets_in_after_the_socket_or_the_endpoint_file_was_removed(
    own_daemon: DaemonProcess, name: str
) -> None:
    own_daemon.start()
    own_daemon.terminal("build").run("X=kept")
    faces: list[Callable[[DaemonProcess], str]] = [
        by_command_line,
        by_blocking_client,
        by_trio_client,
        by_mcp,
    ]
    path = own_daemon.state.directory / name
    for face in faces:
        path.unlink()
        assert face(own_daemon) == "kept\n"
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600


@pytest.mark.long
def test_the_socket_is_made_again_when_the_directory_above_it_was_removed(tmp_path: Path) -> None:
    runtime = Path(tempfile.mkdtemp(prefix="run", dir="/tmp"))
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    daemon = DaemonProcess(deep)
    daemon.variables = {"XDG_RUNTIME_DIR": str(runtime)}
    daemon.start()
    try:
        daemon.terminal("build").run("X=kept")
        assert Path(daemon.endpoint.socket).parent == runtime
        shutil.rmtree(runtime)
        assert by_command_line(daemon) == "kept\n"
        again = Path(daemon.endpoint.socket)
        assert again.parent == Path(f"/tmp/aegis-{os.geteuid()}")
        assert stat.S_IMODE(again.parent.stat().st_mode) == 0o700
    finally:
        assert daemon.stop() == 0
    assert not again.exists()
    daemon.check_left_nothing()


def test_a_daemon_that_lives_and_cannot_be_reached_is_not_called_crashed(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    pid = own_daemon.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        (own_daemon.state.directory / "aegis.sock").unlink()
        with pytest.raises(ConnectionLost) as caught:
            open_connection(own_daemon.root, start_limit_s=0.1)
        assert f"(pid {pid}) runs, but did not serve within 0.1 s" in str(caught.value)
        assert f"kill {pid}" in str(caught.value)
    finally:
        os.kill(pid, signal.SIGCONT)

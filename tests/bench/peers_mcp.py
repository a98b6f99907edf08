"""Peers over MCP: this daemon and ``aegis-harness``, driven by the same client in the same era.

The client is one socket kept open, so that next to nothing of a time is the client's. The peer
needs Python 3.13; it is installed from PyPI into ``.uv/`` when it is first measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.bench_mcp import HttpSocket, LegacyClient
from tests.bench.peers import TIMEOUT_S, Peer, Result
from tests.e2e.harness import DaemonProcess

REQUIREMENT = "aegis-harness==0.34.0"
PYTHON = "3.13"
STOP_S = 5.0
CHECKOUT = Path(__file__).resolve().parents[2]
ENVIRONMENT = CHECKOUT / ".uv" / "peers" / REQUIREMENT

# The least that it starts with. No agent of it is ever started here.
CONFIGURATION = """\
default_agent: none
agents:
  none:
    harness: claude-code
    provider: anthropic
    model: opus
"""


def missing_for_mcp() -> str | None:
    """Install the peer where it is missing; return the reason if that cannot be done."""
    if (ENVIRONMENT / "bin" / "aegis").exists():
        return None
    python = _find_python()
    if python is None:
        return f"no Python {PYTHON} on this machine"
    uv = shutil.which("uv") or str(CHECKOUT / ".uv" / "bin" / "uv")
    steps = (
        [uv, "venv", "--quiet", "--clear", "--python", python, str(ENVIRONMENT)],
        [uv, "pip", "install", "--quiet", "--python", str(ENVIRONMENT), REQUIREMENT],
    )
    for step in steps:
        done = subprocess.run(
            step, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
            return f"{REQUIREMENT} cannot be installed: {' '.join(done.stderr.split())[-200:]}"
    return None


def _find_python() -> str | None:
    """Return a Python of the version that works: a pyenv shim may be there without one behind."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = shutil.which(f"python{PYTHON}")
    found = [] if on_path is None else [on_path]
    for candidate in (*found, *map(str, pyenv.glob(f"versions/{PYTHON}.*/bin/python"))):
        done = subprocess.run([candidate, "-c", ""], capture_output=True, check=False)
        if done.returncode == 0:
            return candidate
    return None


class McpRun:
    """Runs commands on the terminal ``bench`` through MCP with a session: a ``Run``."""

    def __init__(self, http: HttpSocket) -> None:
        self._http = http
        self._client = LegacyClient(http)
        self._ping = self._client.ping()
        self._call("aegis_term_spawn", shell="/bin/bash")

    def __call__(self, cmd: str) -> Result:
        record = self._call("aegis_term_run", cmd=cmd, timeout=TIMEOUT_S)
        return Result(record["exit"], record["stdout"])

    def reconnect(self) -> None:
        """Begin a new connection: the peer closes one that is idle for 5 s."""
        self._http.reconnect()

    def ping(self) -> None:
        """Send a request that does nothing, and wait for its answer."""
        self._http.exchange(self._ping)

    def _call(self, tool: str, **arguments: object) -> dict[str, Any]:
        _, body = self._http.exchange(self._client.prepared(tool, name="bench", **arguments))
        answer = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])
        found: dict[str, Any] = answer["result"]["structuredContent"]
        return found


@contextmanager
def open_ours_over_mcp(directory: Path) -> Iterator[McpRun]:
    """Start a daemon and connect by a session URL."""
    daemon = DaemonProcess(directory)
    daemon.start("--port", "0", "--log-level", "warning")
    try:
        with HttpSocket(daemon.call("session_new", handle="bench")["url"]) as http:
            yield McpRun(http)
    finally:
        daemon.stop()


@contextmanager
def open_harness_over_mcp(directory: Path) -> Iterator[McpRun]:
    """Start ``aegis serve`` with a home of its own and connect to the URL that it prints."""
    (directory / ".aegis.yaml").write_text(CONFIGURATION)
    environment = {**os.environ, "HOME": str(directory), "NO_COLOR": "1", "COLUMNS": "200"}
    server = subprocess.Popen(
        [ENVIRONMENT / "bin" / "aegis", "serve"],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = re.compile(r"running on (http://[0-9.:]+)")
        url = next(found[1] for line in server.stdout if (found := address.search(line)))
        with HttpSocket(f"{url}/mcp") as http:
            yield McpRun(http)
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.communicate(timeout=STOP_S)
        server.kill()  # it may wait for its clients
        server.communicate()


MCP_PEERS = (
    Peer("ours over MCP", "", open_ours_over_mcp),
    Peer("aegis-harness over MCP", "record not synced, one line a command", open_harness_over_mcp),
)

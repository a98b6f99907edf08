"""``down``, ``status``, ``tree``."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from aegis.cli import daemon

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]

GUARD_S = 60

STATUS = {
    "version": "0.1.0",
    "pid": 4242,
    "root": "/work",
    "url": "http://127.0.0.1:8420",
    "uptime_s": 125.0,
    "rss_bytes": 60 * 2**20,
    "open_files": 31,
    "actors": 12,
    "terminals": 2,
    "handles": ["alice", "bob"],
    "connections": 0,
    "late_replies": 0,
}


def node(name: str, *children: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "path": name,
        "name": name,
        "kind": "Supervisor",
        "state": "running",
        "mailbox": 0,
        "restarts": 0,
        "uptime_s": 3.0,
        "children": list(children),
    } | changes


def test_status_is_a_list_of_facts(server: LineServer, invoke: Invoke) -> None:
    server.answers |= {"status": STATUS, "list_sessions": {"result": []}}
    result = invoke("status")
    assert server.arguments() == {}
    facts = dict(re.split(r" {2,}", line, maxsplit=1) for line in result.stdout.splitlines())
    assert facts["url"] == "http://127.0.0.1:8420"
    assert facts["uptime"] == "2m 5s"
    assert facts["memory"] == "60.0 MiB"
    assert facts["handles"] == "alice, bob"
    assert (facts["open files"], facts["late replies"]) == ("31", "0")


def test_status_without_nodes_says_nothing_of_them(server: LineServer, invoke: Invoke) -> None:
    server.answers |= {"status": STATUS, "list_sessions": {"result": []}}
    before = invoke("status").stdout
    server.answers["status"] = STATUS | {"nodes": []}
    assert invoke("status").stdout == before


def test_status_has_a_table_of_nodes(server: LineServer, invoke: Invoke) -> None:
    since = "2026-05-22T14:03:25.000Z"
    worker = {
        "name": "w1",
        "kind": "worker",
        "state": "starting",
        "terminals": 0,
        "pid": 77,
        "address": None,
        "since": None,
    }
    host = {
        "name": "gpu1",
        "kind": "host",
        "state": "unreachable",
        "terminals": 3,
        "pid": None,
        "address": "10.0.0.7:50122",
        "since": since,
    }
    both = [host, worker]
    server.answers |= {"status": STATUS | {"nodes": both}, "list_sessions": {"result": []}}
    _, _, nodes = invoke("status").stdout.partition("\n\n")
    assert nodes == (
        "node  kind    state        terminals  where           since\n"
        f"gpu1  host    unreachable  3          10.0.0.7:50122  {since}\n"
        "w1    worker  starting     0          pid 77          -\n"
    )


def test_status_as_json_is_the_reply(server: LineServer, invoke: Invoke) -> None:
    server.answers |= {"status": STATUS, "list_sessions": {"result": []}}
    assert json.loads(invoke("status", "--json").stdout) == STATUS


def test_tree_is_drawn(server: LineServer, invoke: Invoke) -> None:
    shell = node("shell", kind="Shell", restarts=2, mailbox=1, uptime_s=61.0)
    server.answers["tree"] = node("root", node("terminals", node("build", shell)), node("gateway"))
    assert invoke("tree").stdout == (
        "actor           kind        state    mailbox  restarts  uptime\n"
        "root            Supervisor  running  0        0         3.00s\n"
        "├─ terminals    Supervisor  running  0        0         3.00s\n"
        "│  └─ build     Supervisor  running  0        0         3.00s\n"
        "│     └─ shell  Shell       running  1        2         1m 1s\n"
        "└─ gateway      Supervisor  running  0        0         3.00s\n"
    )


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the daemon's: it ends when its input does."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as running:
        yield running


def end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.real
@pytest.mark.every_python
def test_down_waits_until_the_process_is_gone(
    server: LineServer, invoke: Invoke, process: subprocess.Popen[bytes]
) -> None:
    def stopping() -> dict[str, Any]:
        end(process)
        return {"pid": process.pid}

    server.answers["down"] = stopping
    server.announce(process.pid)
    result = invoke("down")
    assert (result.exit_code, result.stdout) == (0, f"stopped (pid {process.pid})\n")
    # Gone, not about to go: it can be reaped at once.
    assert os.waitpid(process.pid, os.WNOHANG)[0] == process.pid
    process.returncode = 0


@pytest.mark.real
@pytest.mark.every_python
def test_down_tells_when_the_process_does_not_go(
    server: LineServer,
    invoke: Invoke,
    process: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(daemon, "SLOW_DOWN_S", 0.01)
    monkeypatch.setattr(daemon, "DOWN_TIMEOUT_S", 0.05)
    server.answers["down"] = {"pid": process.pid}
    server.announce(process.pid)
    result = invoke("down")
    assert result.exit_code == 1
    assert result.stderr == (
        f"↳ the daemon (pid {process.pid}) is still ending\n"
        f"aegis-actors: the daemon (pid {process.pid}) still runs 0.05 s after down: see its log\n"
    )


@pytest.mark.real
@pytest.mark.every_python
def test_down_tells_when_the_process_is_gone_already(
    server: LineServer, invoke: Invoke, process: subprocess.Popen[bytes]
) -> None:
    end(process)
    process.wait(GUARD_S)
    server.announce(process.pid)
    result = invoke("down")
    assert result.exit_code == 1
    assert result.stderr.endswith(f"(pid {process.pid}) has already ended\n")


def test_down_without_a_daemon_says_so(invoke: Invoke) -> None:
    result = invoke("down")
    assert result.exit_code == 1
    assert "no daemon runs for" in result.stderr

"""The port at which hosts join: whoever has no key there does nothing, and harms nobody."""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.nodes.links.key import new_key, read_key, write_key
from aegis.nodes.logs import AT_ONCE, PERIOD_S
from tests.attacks.conftest import Watch
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.hosts import HostProcess, start_with_nodes, until

pytestmark = pytest.mark.real

ROUNDS = 40
SILENT = 300

RUBBISH = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP from a web page": b"POST /mcp HTTP/1.1\r\nHost: x\r\nOrigin: http://evil\r\n\r\n{}",
    "TLS": bytes.fromhex("160301010001000000fc0303") + bytes(244),
    "a message of tractor": struct.pack("<I", 9) + b"\x92\xa3bad\xa3uid",
    "a huge length": b"\xff\xff\xff\xff" + bytes(100_000),
    "zeros": bytes(1_000_000),
    "nothing": b"",
}


@pytest.fixture
def port(own_daemon: DaemonProcess) -> Iterator[tuple[str, int]]:
    """Where hosts may join ``own_daemon``, which has a worker, too."""
    host, _, number = start_with_nodes(own_daemon, "--workers", "1").rpartition(":")
    yield host, int(number)
    if own_daemon.is_running:
        own_daemon.hang_up()
        assert own_daemon.stop() == 0


def talk(port: tuple[str, int], data: bytes) -> bytes:
    """Say ``data``; what came back until the connection was closed."""
    answer = b""
    with socket.create_connection(port, timeout=GUARD_S) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65_536):
                answer += chunk
        except OSError:  # closed in the midst of it
            pass
    return answer


@pytest.mark.long
def test_rubbish_is_refused_and_the_terminals_of_the_worker_go_on(
    own_daemon: DaemonProcess, port: tuple[str, int], watched: Watch, tmp_path: Path
) -> None:
    terminal = own_daemon.terminal("build")
    assert terminal.info["node"] == "w1"
    secret = read_key(own_daemon.state.node_key).secret
    began = time.monotonic()
    with watched(own_daemon, "rubbish at the port of nodes"):
        for _ in range(ROUNDS):
            for data in RUBBISH.values():
                answer = talk(port, data)
                assert len(answer) < 200
                assert secret not in answer
                assert secret.hex().encode() not in answer
    assert terminal.run("echo on")["stdout"] == "on\n"
    assert terminal.described()["restarts"] == 0
    log = own_daemon.log
    periods = 1 + math.ceil((time.monotonic() - began) / PERIOD_S)
    assert 0 < log.count("refused a connection from 127.0.0.1") <= AT_ONCE * periods
    assert '"untold": ' in log or log.count('"event": "nodes"') <= AT_ONCE
    host = HostProcess(tmp_path, own_daemon, f"{port[0]}:{port[1]}")
    host.start()
    assert own_daemon.call("term_spawn", name="far", node="gpu1")["node"] == "gpu1"
    assert host.stop() == 0


@pytest.mark.long
def test_who_says_nothing_keeps_nobody_from_joining(
    own_daemon: DaemonProcess, port: tuple[str, int], watched: Watch, tmp_path: Path
) -> None:
    with watched(own_daemon, f"{SILENT} silent connections at the port of nodes"):
        silent = [socket.create_connection(port, timeout=GUARD_S) for _ in range(SILENT)]
        host = HostProcess(tmp_path, own_daemon, f"{port[0]}:{port[1]}")
        host.start()
        assert own_daemon.call("term_spawn", name="far", node="gpu1")["node"] == "gpu1"
        for connection in silent:
            connection.close()
    assert host.stop() == 0


@pytest.mark.long
def test_who_has_another_key_is_told_so_and_joins_with_the_right_one(
    own_daemon: DaemonProcess, port: tuple[str, int], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.key"
    write_key(wrong, new_key())
    host = HostProcess(tmp_path, own_daemon, f"{port[0]}:{port[1]}")
    host.key_file = wrong
    host.launch()
    until(lambda: "cannot join; trying again and again" in host.log)
    until(lambda: "refused a connection from 127.0.0.1" in own_daemon.log)
    assert "handshake" in host.log
    assert host.status() == {}
    assert not (host.root / ".aegis/state/endpoint.json").exists()
    wrong.unlink()
    host.kill()
    host.key_file = None
    host.start()
    assert host.stop() == 0

"""Clients that never read, are stopped, vanish or come in crowds: they hurt only themselves."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aegis.state.endpoint import Endpoint
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.e2e.watchers import watching
from tests.resources.conftest import spawned
from tests.resources.deaf_clients import Deaf, deaf_line, deaf_mcp_stream, deaf_websocket
from tests.resources.waiting import until

pytestmark = pytest.mark.real

MIB = 1024 * 1024

FACES: dict[str, Callable[[Endpoint], Deaf]] = {"line": deaf_line, "websocket": deaf_websocket}


@pytest.mark.long
@pytest.mark.parametrize("connect", FACES.values(), ids=FACES)
def test_clients_that_never_read_cost_bounded_memory_and_hold_up_nobody(
    own_daemon: DaemonProcess, connect: Callable[[Endpoint], Deaf], gate: Gate
) -> None:
    own_daemon.start()
    terminal = spawned(own_daemon, "busy")
    woken = terminal.subscribe("eve")
    terminal.run("seq 1 30000")
    woken.next()
    before = own_daemon.call("status")["rss_bytes"]
    with contextlib.ExitStack() as crowd:
        deaf = [crowd.enter_context(connect(own_daemon.endpoint)) for _ in range(10)]
        flood = terminal.start(f"{gate.hold}; yes | head -c 20000000")
        gate.wait_reached()
        for each in deaf:
            each.ask("term_read", {"name": "busy", "last_n": 1}, 1500)
        assert own_daemon.call("status")["rss_bytes"] - before < len(deaf) * 17 * MIB
        gate.open()
        assert flood.result()["truncated"]
        assert woken.next()["body"].splitlines()[1].startswith("exit 0 ")
        assert terminal.run("echo on")["stdout"] == "on\n"
        assert own_daemon.stop() == 0  # though ten sends are under way


@pytest.mark.long
async def test_a_stream_that_is_never_read_keeps_no_change_from_another(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    spawned(own_daemon, "watched")
    uri = "aegis://terminals/watched/ledger"
    with deaf_mcp_stream(own_daemon.endpoint, uri):
        async with watching(own_daemon, "auto", [uri]) as watcher:
            before = own_daemon.call("status")["rss_bytes"]
            for number in range(20):
                own_daemon.call("term_run", name="watched", cmd=f"echo {number}")
                assert await watcher.next() == uri
            document = await watcher.read(uri)
        assert document["result"][-1]["stdout"] == "19\n"
        assert own_daemon.call("status")["rss_bytes"] - before < 16 * MIB
        assert own_daemon.stop() == 0


def start_client(daemon: DaemonProcess, *words: str) -> subprocess.Popen[bytes]:
    """``aegis-actors`` with these words, which is not waited for."""
    return subprocess.Popen(
        [*daemon.program, *words],
        env=daemon.environment,
        cwd=daemon.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_a_client_that_is_stopped_gets_its_answer_when_it_goes_on(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()
    terminal, other = spawned(own_daemon, "its"), spawned(own_daemon, "other")
    client = start_client(own_daemon, "term", "run", "its", f"echo said; {gate.hold}")
    gate.wait_reached()
    client.send_signal(signal.SIGSTOP)
    gate.open()
    following = terminal.run("echo behind")  # it waits its turn, not for that client
    assert (following["seq"], following["stdout"]) == (2, "behind\n")
    assert terminal.records()[1]["stdout"] == "said\n"
    assert other.run("echo fine")["stdout"] == "fine\n"
    client.send_signal(signal.SIGCONT)
    said, _ = client.communicate(timeout=GUARD_S)
    assert b"said" in said


def test_of_a_client_that_is_killed_what_was_typed_goes_on_and_what_waited_is_dropped(
    own_daemon: DaemonProcess, gate: Gate, tmp_path: Path
) -> None:
    own_daemon.start()
    terminal = spawned(own_daemon, "left")
    alone = own_daemon.call("status")["connections"]
    ran = tmp_path / "ran"
    typed = start_client(own_daemon, "term", "run", "left", f"{gate.hold}; echo ended")
    gate.wait_reached()
    waiting = start_client(own_daemon, "term", "run", "left", f"touch {ran}")
    until(lambda: own_daemon.call("status")["connections"] == alone + 2, "both are there")
    for client in (waiting, typed):
        client.kill()
        client.communicate(timeout=GUARD_S)
    until(lambda: own_daemon.call("status")["connections"] == alone, "both are gone")
    gate.open()
    record = own_daemon.call("term_wait", name="left", seq=1, timeout=GUARD_S)["record"]
    assert (record["stdout"], record["end"]) == ("ended\n", "exited")
    assert terminal.run("echo next")["seq"] == 2
    assert not ran.exists()


def test_the_kernel_asks_silent_peers_over_tcp_whether_they_are_there(
    own_daemon: DaemonProcess,
) -> None:
    """Who lost its power or its network says nothing: only keepalive tells the two apart."""
    own_daemon.start()
    port = int(own_daemon.endpoint.url.rpartition(":")[2])
    with deaf_websocket(own_daemon.endpoint):
        # Another timer runs until the client's kernel has confirmed the answer to the handshake.
        until(lambda: any(timer.startswith("02:") for timer in timers_of(port)), "it asks")


def timers_of(port: int) -> list[str]:
    """The timers of the connections that were made to this port: 02 is keepalive (proc(5))."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = "01"
    return [row[5] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == established]


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may have thousands of sockets open, for as long as the test takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_of_very_many_connections_those_beyond_the_limit_are_refused_and_the_others_work(
    own_daemon: DaemonProcess, many_files: None
) -> None:
    own_daemon.start()
    terminal: LiveTerminal = spawned(own_daemon, "calm")
    with own_daemon.connect() as early, contextlib.ExitStack() as crowd:
        early.call("status", {})
        sockets = [crowd.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(1100)]
        for each in sockets:
            # It waits for its place in the queue: with a time limit it would not.
            each.connect(own_daemon.endpoint.socket)
            with contextlib.suppress(BrokenPipeError):  # refused already, if it is beyond the limit
                each.sendall(b"{")  # more than nothing, and less than a frame
        until(lambda: sum(map(is_closed, sockets)) >= 100, "those beyond the limit are refused")
        done = early.call("term_run", {"name": "calm", "cmd": "echo calm"})
        assert done["stdout"] == "calm\n"
        assert early.call("status", {})["open_files"] < 1100
    until(lambda: answers(own_daemon), "there is room again")
    assert terminal.run("echo on")["seq"] == 2
    until(lambda: len(os.listdir(f"/proc/{own_daemon.process.pid}/fd")) < 40, "all are closed")
    warned = [line for line in own_daemon.log.splitlines() if "refusing connections" in line]
    assert len(warned) == 1


def is_closed(sock: socket.socket) -> bool:
    """Whether the other end hung up: it says so at once, if it does."""
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def answers(daemon: DaemonProcess) -> bool:
    """Whether the daemon takes a new client."""
    try:
        return bool(daemon.call("status"))
    except Exception:
        return False

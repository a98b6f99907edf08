"""Many connections that do nothing, and many that ask and never read."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator

import pytest

from aegis.state.endpoint import Endpoint
from tests.attacks.conftest import Watch
from tests.attacks.raw import Raw, bearer, frame, local, mcp, opened_session, tcp, until
from tests.e2e.harness import DaemonProcess
from tests.resources.conftest import spawned
from tests.resources.deaf_clients import Deaf, deaf_line, deaf_websocket

pytestmark = [pytest.mark.real, pytest.mark.long]

MOST_GROWN = 200
"""MiB: the 64 that may wait for all clients, as text and as bytes, and what the allocator keeps."""


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may have thousands of sockets open, for as long as the test takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def half_a_head(raw: Raw) -> None:
    raw.send(b"GET /mcp HTTP/1.1\r\n")


def a_websocket_without_a_hello(raw: Raw) -> None:
    raw.send(raw.websocket_head())


def silence(raw: Raw) -> None:
    pass


@pytest.mark.parametrize("what", [silence, half_a_head, a_websocket_without_a_hello])
def test_a_thousand_strangers_do_not_shut_the_operator_out(
    own_daemon: DaemonProcess, watched: Watch, many_files: None, what: Callable[[Raw], None]
) -> None:
    own_daemon.start()
    terminal = spawned(own_daemon, "calm")
    keys = bearer(own_daemon)
    opened_session(own_daemon, "/mcp", **keys)  # from now on the SDK is imported
    with contextlib.ExitStack() as crowd:
        early = crowd.enter_context(tcp(own_daemon))
        assert early.upgrade(**keys) == 101
        with watched(own_daemon, f"1,200 idle connections, {what.__name__}") as other:
            for _ in range(1200):
                what(crowd.enter_context(tcp(own_daemon)))
            for _ in range(20):
                with tcp(own_daemon) as raw:
                    assert mcp(raw, "/mcp", "tools/list", {}, **keys)[0] in (200, 400)
                with tcp(own_daemon) as raw:
                    assert raw.upgrade(**keys) == 101
            assert terminal.run("echo calm")["stdout"] == "calm\n"
            assert own_daemon.call("status")["open_files"] < 600
        early.send_frame({"type": "request", "id": 1, "command": "term_list"})
        assert b'"reply"' in early.frame()[1], "who had shown a key was not dropped"
    assert other.grown < 64
    until(lambda: own_daemon.call("status")["open_files"] < 60, "all are gone")
    warned = [line for line in own_daemon.log.splitlines() if "refusing connections" in line]
    assert len(warned) == 1


def test_a_thousand_silent_connections_leave_room_on_the_unix_socket(
    own_daemon: DaemonProcess, watched: Watch, many_files: None
) -> None:
    own_daemon.start()
    with (
        contextlib.ExitStack() as crowd,
        watched(own_daemon, "1,200 idle connections of the Unix socket"),
    ):
        for _ in range(1200):
            crowd.enter_context(local(own_daemon))
        assert own_daemon.call("status")["open_files"] < 1200


@pytest.mark.parametrize("connect", [deaf_websocket, deaf_line])
def test_fifty_clients_that_never_read_under_a_flood_cost_bounded_memory(
    own_daemon: DaemonProcess, watched: Watch, many_files: None, connect: Callable[[Endpoint], Deaf]
) -> None:
    """Each asks for a large record again and again; two hundred more do nothing."""
    own_daemon.start()
    terminal = spawned(own_daemon, "busy")
    terminal.run("seq 1 30000")
    with contextlib.ExitStack() as crowd, watched(own_daemon, f"50 of {connect.__name__}") as other:
        for _ in range(200):
            idle = crowd.enter_context(tcp(own_daemon))
            assert idle.upgrade(**bearer(own_daemon)) == 101
        deaf: list[Deaf] = [crowd.enter_context(connect(own_daemon.endpoint)) for _ in range(50)]
        flood = terminal.start("yes | head -c 5000000")
        for each in deaf:
            each.ask("term_read", {"name": "busy", "last_n": 10}, 1500)
        assert flood.result()["truncated"]
        assert terminal.run("echo on")["stdout"] == "on\n"
    assert other.grown < MOST_GROWN
    assert own_daemon.stop() == 0


def test_streams_of_mcp_that_are_never_read_cost_bounded_memory(
    own_daemon: DaemonProcess, watched: Watch
) -> None:
    """A hundred answers of HTTP at once, the largest there are, taken by nobody."""
    own_daemon.start()
    terminal = spawned(own_daemon, "busy")
    for _ in range(6):
        terminal.run("seq 1 30000")
    opened_session(own_daemon, "/mcp", **bearer(own_daemon))  # from now on the SDK is imported
    with contextlib.ExitStack() as crowd, watched(own_daemon, "100 deaf HTTP clients") as other:
        for _ in range(100):
            raw = crowd.enter_context(tcp(own_daemon, buffer=4096))
            call = {"name": "aegis_term_read", "arguments": {"name": "busy", "last_n": 10}}
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "deaf", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers = {
                "mcp_protocol_version": "2026-07-28",
                "mcp_method": "tools/call",
                "mcp_name": "aegis_term_read",
                **bearer(own_daemon),
            }
            assert mcp(raw, "/mcp", "tools/call", {**call, "_meta": meta}, **headers)[0] == 200
        assert terminal.run("echo on")["stdout"] == "on\n"
    assert other.grown < MOST_GROWN


def test_a_client_that_pings_and_never_reads_the_pongs_is_cut_off(
    own_daemon: DaemonProcess, watched: Watch
) -> None:
    own_daemon.start()
    with watched(own_daemon, "pings whose pongs nobody reads") as other:
        with tcp(own_daemon, buffer=4096) as raw:
            assert raw.upgrade(**bearer(own_daemon)) == 101
            pings = frame(b"x" * 125, 9) * 500
            raw.socket.settimeout(40)
            with contextlib.suppress(TimeoutError):
                while raw.send(pings):
                    pass
        assert other.grown < 64

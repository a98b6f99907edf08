from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
import trio

from aegis.errors import StartupError
from aegis.servers.gateway.sockets import (
    MAX_SOCKET_PATH_BYTES,
    SOCKET_NAME,
    notice_loss,
    path_of,
    peer_of,
    port_of,
    socket_path,
    tcp_listeners,
    unix_listener,
)

pytestmark = [pytest.mark.real, pytest.mark.every_python]


def deep(tmp_path: Path) -> Path:
    return tmp_path / ("d" * 60) / ("e" * 60)


def test_the_socket_lies_in_the_state_directory_if_its_path_fits() -> None:
    assert socket_path(Path("/root/.aegis/state")) == Path("/root/.aegis/state") / SOCKET_NAME


def test_the_longest_path_that_fits_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = Path("/" + "x" * (MAX_SOCKET_PATH_BYTES - len(SOCKET_NAME) - 2))
    assert len(bytes(socket_path(fits))) == MAX_SOCKET_PATH_BYTES
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert socket_path(Path(f"{fits}x")).parent != Path(f"{fits}x")


def test_a_path_too_long_goes_to_the_runtime_directory_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Path("/tmp") / f"aegis-test-{os.getpid()}"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    try:
        first, second = socket_path(deep(tmp_path)), socket_path(deep(tmp_path) / "other")
        assert first.parent == second.parent == runtime
        assert first != second
        assert first == socket_path(deep(tmp_path))
        assert len(bytes(first)) <= MAX_SOCKET_PATH_BYTES
    finally:
        runtime.rmdir()


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_runtime_directory_that_others_may_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared = Path("/tmp") / f"aegis-test-{os.getpid()}-{mode}"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shared))
    try:
        chosen = socket_path(deep(tmp_path))
    finally:
        shared.rmdir()
    assert chosen.parent == Path(f"/tmp/aegis-{os.geteuid()}")
    assert stat.S_IMODE(chosen.parent.stat().st_mode) == 0o700


async def test_the_unix_socket_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with unix_listener(path) as listener:
        assert path_of(listener) == path
        found = path.stat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600


async def test_a_socket_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with (
        unix_listener(path) as listener,
        await trio.open_unix_socket(path),
        await listener.accept(),
    ):
        pass


async def test_something_else_in_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(StartupError, match="not a socket"):
        unix_listener(path)
    assert path.read_text() == "precious"


async def test_a_directory_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"cannot listen on .*No such file"):
        unix_listener(tmp_path / "nowhere" / "s")


async def test_the_kernel_says_who_connected(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with (
        unix_listener(path) as listener,
        await trio.open_unix_socket(path),
        await listener.accept() as stream,
    ):
        peer = peer_of(stream.socket)
    assert peer is not None
    assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.geteuid(), os.getegid())


async def test_both_families_of_loopback_share_the_port() -> None:
    listeners = await tcp_listeners("127.0.0.1", 0)
    port = port_of(listeners[0])
    assert {port_of(listener) for listener in listeners} == {port}
    for listener in listeners:
        host = listener.socket.getsockname()[0]
        async with await trio.open_tcp_stream(host, port), await listener.accept() as stream:
            assert peer_of(stream.socket) is None
        await listener.aclose()


async def test_a_port_that_is_taken_is_told() -> None:
    listeners = await tcp_listeners("127.0.0.1", 0)
    port = port_of(listeners[0])
    with pytest.raises(StartupError, match=f"cannot listen on 127.0.0.1:{port}: "):
        await tcp_listeners("127.0.0.1", port)
    for listener in listeners:
        await listener.aclose()


async def test_a_silent_peer_over_tcp_is_asked_whether_it_is_there() -> None:
    ours, theirs = trio.socket.socket(), trio.socket.socketpair()
    with ours, theirs[0], theirs[1]:
        notice_loss(ours)
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        notice_loss(theirs[0])  # over a Unix socket nobody is lost without a word
        assert not theirs[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

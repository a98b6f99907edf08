"""Where the daemon listens: loopback TCP and one Unix socket; and who is at the other end of it."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import socket
import stat
import struct
from pathlib import Path

import attrs
import structlog
import trio

from aegis.errors import StartupError

SOCKET_NAME = "aegis.sock"
MAX_SOCKET_PATH_BYTES = 107
"""What fits into ``sockaddr_un`` with its closing NUL (unix(7))."""

BACKLOG = 1_024
"""Clients that may knock at the Unix socket at once: it turns more away instead of letting wait."""

KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 60, 15, 4
"""A peer over TCP that is silent is asked after so long, so often: gone for two minutes is gone."""

_PEER = struct.Struct("3i")


@attrs.frozen
class Peer:
    """The process at the other end of a Unix socket, as the kernel vouches for it."""

    pid: int
    uid: int
    gid: int


def peer_of(sock: trio.socket.SocketType) -> Peer | None:
    """Who connected over a Unix socket (SO_PEERCRED, unix(7)); None over TCP."""
    if sock.family != socket.AF_UNIX:
        return None
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return Peer(*_PEER.unpack(raw))


def notice_loss(sock: trio.socket.SocketType) -> None:
    """Let the kernel find out when the peer is gone without a word (TCP keepalive, tcp(7)).

    A peer that is on this machine always says so. Over a network a connection that nothing is sent
    on would stay for ever when the other machine lost its power, or the way to it was cut.
    """
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


async def tcp_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Listen on ``host``, for a loopback host on ::1 with the same port too if the machine can.

    ``port`` 0 picks a free one: ``port_of`` the first listener. Raises ``StartupError`` if the
    port is taken, or the host is none of this machine's.
    """
    loopback = host in ("127.0.0.1", "localhost")
    try:
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1" if loopback else host)
    except OSError as error:
        cause = f"cannot listen on {host}:{port}: {_reason(error)}"
        raise StartupError(f"{cause}; try another --port (0: a free one) or --host") from error
    if loopback:
        listeners += await _loopback_v6(port_of(listeners[0]))
    return listeners


def port_of(listener: trio.SocketListener) -> int:
    """The TCP port that a listener has."""
    port = listener.socket.getsockname()[1]
    assert isinstance(port, int)
    return port


def unix_listener(path: Path) -> trio.SocketListener:
    """Listen on a Unix socket at ``path``, mode 0600; one left behind by a crash is replaced.

    Only for the holder of the root's lock: a socket that another daemon serves would be replaced
    as well. Raises ``StartupError`` if something else is at ``path`` or the disk refuses.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        # The inode takes its mode from the unbound socket, so it is never open to others.
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(bytes(path))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise StartupError(f"cannot listen on {path}: {_reason(error)}") from error
    listening.setblocking(False)
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


def path_of(listener: trio.SocketListener) -> Path | None:
    """The name of a Unix listener in the file system; None over TCP."""
    if listener.socket.family != socket.AF_UNIX:
        return None
    return Path(os.fsdecode(listener.socket.getsockname()))


def name_of(path: Path) -> tuple[int, int]:
    """What tells the socket at this path from another one: device and inode. Raises ``OSError``."""
    found = path.lstat()
    return found.st_dev, found.st_ino


def socket_path(state_dir: Path) -> Path:
    """Where the Unix socket of the root with this state directory is.

    Inside it, or where that path is too long for a socket: under ``$XDG_RUNTIME_DIR`` or
    ``/tmp/aegis-<uid>``, named by a digest of the directory. Makes the latter directory if
    needed; raises ``StartupError`` if somebody else owns it or may write to it.
    """
    plain = state_dir / SOCKET_NAME
    if _fits(plain):
        return plain
    digest = hashlib.sha256(bytes(state_dir.resolve())).hexdigest()[:24]
    name = f"aegis-{digest}.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and _fits(Path(runtime) / name) and _why_not_private(Path(runtime)) is None:
        return Path(runtime) / name
    return _private_directory(Path(f"/tmp/aegis-{os.geteuid()}")) / name  # noqa: S108 -- checked


async def _loopback_v6(port: int) -> list[trio.SocketListener]:
    if not socket.has_ipv6:
        return []
    try:
        return await trio.open_tcp_listeners(port, host="::1")
    except OSError:
        return []


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise FileExistsError(errno.EEXIST, "a file that is not a socket is in its place")
    path.unlink()


def _fits(path: Path) -> bool:
    return len(bytes(path)) <= MAX_SOCKET_PATH_BYTES


def _private_directory(directory: Path) -> Path:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StartupError(f"cannot make {directory}: {_reason(error)}") from error
    problem = _why_not_private(directory)
    if problem is not None:
        raise StartupError(f"cannot put a socket into {directory}: {problem}")
    return directory


def _why_not_private(directory: Path) -> str | None:
    try:
        found = directory.lstat()
    except OSError as error:
        return _reason(error)
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if found.st_uid != os.geteuid():
        return f"it belongs to uid {found.st_uid}"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return "other users may read it; it must have mode 0700"
    return None


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


RETRY_S = 0.1
"""No event tells that a descriptor is free again: so long the listener waits."""

TELL_S = 60.0
"""It says so once, and again after so long at the earliest: a log must not fill a disk."""

_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}

log = structlog.get_logger("aegis.servers")


class RetryingListener(trio.abc.Listener[trio.SocketStream]):
    """``inner``, but ``accept`` waits until the process and the system have room for a client.

    Those who knock meanwhile wait in the queue of the kernel. Trio would wait as well, and log an
    error with its traceback ten times a second.
    """

    def __init__(self, inner: trio.abc.Listener[trio.SocketStream]) -> None:
        self._inner = inner
        self._told_at = -math.inf

    async def accept(self) -> trio.SocketStream:
        """The next client. Raises as ``inner`` does, but not for want of room."""
        while True:
            try:
                return await self._inner.accept()
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._tell(error)
            await trio.sleep(RETRY_S)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._inner.aclose()

    def _tell(self, error: OSError) -> None:
        now = trio.current_time()
        if now >= self._told_at + TELL_S:
            self._told_at = now
            log.warning("no client can be taken in now", why=error.strerror)

"""The listening sockets: loopback TCP and one Unix socket; and the peer's credentials."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import attrs
import structlog
import trio

from aegis.errors import StartupError

SOCKET_NAME = "aegis.sock"
MAX_SOCKET_PATH_BYTES = 107
"""The longest path in ``sockaddr_un``, without its closing NUL (unix(7))."""

BACKLOG = 1_024
"""The listen queue of the Unix socket; beyond it a non-blocking connect(2) fails with EAGAIN."""

KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 60, 15, 4
"""TCP keepalive: a peer that does not answer for two minutes is disconnected."""

_PEER = struct.Struct("3i")


@attrs.frozen
class PeerCredentials:
    """The process at the other end of a Unix socket, as the kernel reports it (SO_PEERCRED)."""

    pid: int
    uid: int
    gid: int


def peer_of(sock: trio.socket.SocketType) -> PeerCredentials | None:
    """Return the credentials of the peer of a Unix socket (SO_PEERCRED, unix(7)); None over TCP."""
    if sock.family != socket.AF_UNIX:
        return None
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return PeerCredentials(*_PEER.unpack(raw))


def notice_loss(sock: trio.socket.SocketType) -> None:
    """Enable TCP keepalive (tcp(7)), so that the loss of a remote machine is detected."""
    # A peer on this machine always closes its socket. Over a network an idle connection would stay
    # open forever after the other machine lost its power or its route.
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


async def tcp_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Listen on ``host``; for a loopback host also on ::1 with the same port, where possible.

    ``port`` 0 chooses a free one: see ``port_of`` the first listener. Raises ``StartupError`` if
    the port is taken, or the host is not an address of this machine.
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
    """Return the TCP port of a listener."""
    port = listener.socket.getsockname()[1]
    assert isinstance(port, int)
    return port


def unix_listener(path: Path) -> trio.SocketListener:
    """Listen on a Unix socket at ``path``, mode 0600; replace one left behind by a crash.

    The caller must hold the root's lock, as the socket of a running daemon would be replaced too.
    Raises ``StartupError`` if another kind of file is at ``path`` or the disk refuses.
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


SOCKET_CHECK_S = 1.0
"""Seconds between two looks at the name of the Unix socket."""


async def keep_named(
    listener: trio.SocketListener,
    accepting: RetryingListener,
    listen_again: Callable[[], trio.SocketListener],
) -> None:
    """Make the Unix socket of ``accepting`` again when its name is removed or replaced.

    A logout empties the runtime directory, and cleaners empty /tmp: no client could connect any
    more. ``listen_again`` binds a new socket, also at another path; a failure is tried again.
    Runs until cancelled, which removes the name of the socket.
    """
    path, is_logged = path_of(listener), False
    assert path is not None
    name = name_of(path)
    try:
        while True:
            await trio.sleep(SOCKET_CHECK_S)
            if _is_named(path, name):
                continue
            try:
                new = listen_again()
            except (StartupError, OSError) as error:
                if not is_logged:
                    log.warning("socket lost", socket=str(path), why=str(error))
                is_logged = True
                continue
            accepting.replace(listener, new)
            listener, path, is_logged = new, path_of(new) or path, False
            name = name_of(path)
            log.warning("socket made again", socket=str(path))
    finally:
        if _is_named(path, name):  # otherwise another daemon has bound this path
            with contextlib.suppress(OSError):  # the next daemon replaces the socket anyway
                path.unlink()


def _is_named(path: Path, name: tuple[int, int]) -> bool:
    try:
        return name_of(path) == name
    except OSError:
        return False


def path_of(listener: trio.SocketListener) -> Path | None:
    """Return the path of a Unix listener; None over TCP."""
    if listener.socket.family != socket.AF_UNIX:
        return None
    return Path(os.fsdecode(listener.socket.getsockname()))


def name_of(path: Path) -> tuple[int, int]:
    """Return device and inode, which identify the socket at ``path``. Raises ``OSError``."""
    found = path.lstat()
    return found.st_dev, found.st_ino


def socket_path(state_dir: Path) -> Path:
    """Return the path of the Unix socket for this state directory.

    It is inside the directory. If that path is too long for a socket, it is under
    ``$XDG_RUNTIME_DIR`` or ``/tmp/aegis-<uid>``, named by a digest of the directory. Creates
    ``/tmp/aegis-<uid>`` if needed; raises ``StartupError`` if another user can write to it.
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
"""Seconds until ``accept`` is tried again: no event reports that a descriptor is free."""

LOG_INTERVAL_S = 60.0
"""Seconds between two log lines about the lack of descriptors: they must not fill a disk."""

_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}

log = structlog.get_logger("aegis.servers")


class RetryingListener(trio.abc.Listener[trio.SocketStream]):
    """A listener whose ``accept`` waits while no file descriptor is free.

    New connections wait in the kernel's queue meanwhile. ``trio.serve_listeners`` would wait as
    well, but log an error with a traceback ten times a second.
    """

    def __init__(self, inner: trio.abc.Listener[trio.SocketStream]) -> None:
        self._inner = inner
        self._logged_at = -math.inf

    def replace(self, old: trio.SocketListener, new: trio.SocketListener) -> None:
        """Accept from ``new`` in place of ``old``, which is closed."""
        self._inner = new
        old.socket.close()  # wakes ``accept``

    async def accept(self) -> trio.SocketStream:
        """Return the next connection. Raises as ``inner`` does, except for a lack of resources."""
        while True:
            inner = self._inner
            try:
                return await inner.accept()
            except trio.ClosedResourceError:
                if inner is self._inner:
                    raise
                continue
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._log(error)
            await trio.sleep(RETRY_S)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._inner.aclose()

    def _log(self, error: OSError) -> None:
        now = trio.current_time()
        if now >= self._logged_at + LOG_INTERVAL_S:
            self._logged_at = now
            log.warning("no client can be taken in now", why=error.strerror)

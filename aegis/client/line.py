"""A blocking client of the line protocol, for one-shot commands. Standard library only.

The protocol is one JSON object per line on the daemon's Unix socket:

    {"type": "request", "id": 1, "command": "term_run", "arguments": {…}}
    {"type": "reply", "id": 1, "result": {…}}
    {"type": "error", "id": 1, "code": "busy", "message": "…"}

Errors: ``NoDaemon``, ``ConnectionLost``, ``CommandFailed``, all of them ``ClientError``.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time

from aegis.client.errors import (
    ClientError,
    CommandFailed,
    ConnectionLost,
    NoDaemon,
    NotServing,
)
from aegis.client.sizes import check_size
from aegis.path_text import text_of_path
from aegis.state.endpoint import BadEndpoint, Endpoint, endpoint_of
from aegis.state.root import daemon_of, how_to_start

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Any

__all__ = ["ClientError", "CommandFailed", "ConnectionLost", "LineClient", "NoDaemon", "connect"]

CONNECT_TIMEOUT_S = 5.0

START_LIMIT_S = 20.0
"""Seconds that a client waits for a daemon that is starting."""

START_POLL_S = 0.05

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Limit of memory for a faulty peer, far above the size of any reply."""


class LineClient:
    """One connection for calls one after another. A context manager; not thread-safe.

    ``endpoint`` is the endpoint of the daemon.
    """

    def __init__(self, connected: socket.socket, endpoint: Endpoint, root: Path | str) -> None:
        self.endpoint = endpoint
        self._socket = connected
        self._lines = connected.makefile("rb")
        self._root = root
        self._last_id = 0

    def call(self, command: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Call ``command`` and return its result; wait without a time limit.

        Raises ``CommandFailed`` with the daemon's sentence, ``ConnectionLost``.
        """
        self._last_id += 1
        try:
            self._socket.sendall(request_line(self._last_id, command, arguments))
            return self._answer(command)
        except OSError as error:
            raise self._lost(command, error.strerror or str(error)) from None

    def _answer(self, command: str) -> dict[str, Any]:
        while True:
            line = self._lines.readline(MAX_LINE_BYTES)
            if not line.endswith(b"\n"):
                raise self._lost(
                    command, "the daemon closed it" if not line else "a line was truncated"
                )
            frame = parsed(line)
            if frame is None:
                raise self._lost(command, "the answer does not fit the protocol")
            if frame.get("id") not in (self._last_id, None):
                continue
            if frame["type"] == "error":
                raise failure_in(frame, command)
            if frame["type"] == "reply" and isinstance(frame.get("result"), dict):
                return dict(frame["result"])

    def _lost(self, command: str, reason: str) -> ConnectionLost:
        return ConnectionLost(
            f"the connection to the daemon of {text_of_path(self._root)} was lost during "
            f"{command}: {reason}",
            command=command,
            reason=reason,
        )

    def is_over(self) -> bool:
        """Return whether the daemon is known to have closed the connection."""
        looking = select.poll()
        looking.register(self._socket, 0)
        return bool(looking.poll(0))

    def close(self) -> None:
        """Close the connection; the daemon cancels calls in progress."""
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> LineClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def request_line(number: int, command: str, arguments: Mapping[str, object]) -> bytes:
    """Return the line that requests ``command``. Raises ``CommandFailed`` if it is too long."""
    request = {"type": "request", "id": number, "command": command, "arguments": arguments}
    # A lone surrogate (a byte of argv that is not UTF-8) becomes a JSON escape.
    line = json.dumps(request, ensure_ascii=False).encode(errors="backslashreplace")
    check_size(line)
    return line + b"\n"


def failure_in(frame: Mapping[str, Any], command: str) -> CommandFailed:
    """Convert an error frame to the failure of ``command``."""
    # For agents, the sentence begins with the tool's name, which is the command's name, with or
    # without a prefix.
    sentence = str(frame.get("message"))
    for tool in (f"aegis_{command}", command):
        sentence = sentence.removeprefix(f"{tool}: ")
    return CommandFailed(str(frame.get("code")), sentence)


def parsed(line: bytes) -> dict[str, Any] | None:
    """Parse a frame; return None if ``line`` is not one."""
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) and isinstance(frame.get("type"), str) else None


def connect(root: Path | str) -> LineClient:
    """Connect to the daemon of ``root``. Raises as ``open_connection``."""
    connected, endpoint = open_connection(root)
    return LineClient(connected, endpoint, root)


def open_connection(
    root: Path | str, *, start_limit_s: float = START_LIMIT_S
) -> tuple[socket.socket, Endpoint]:
    """Open a connection to the daemon of ``root``; return it with the endpoint.

    Waits up to ``start_limit_s`` for a daemon that is starting. Raises ``NoDaemon`` if no daemon
    runs, ``ConnectionLost`` if it does not accept the connection.
    """
    deadline = time.monotonic() + start_limit_s
    while True:
        try:
            return _opened(root)
        except NotServing:
            # A daemon that is stopping holds the lock too, for two seconds at most.
            pid = daemon_of(root)
            if pid is None:
                raise
            if time.monotonic() > deadline:
                raise not_served(root, pid, start_limit_s) from None
        time.sleep(START_POLL_S)


def not_served(root: Path | str, pid: str, limit_s: float) -> ConnectionLost:
    """Return the error for a daemon that holds ``root`` and does not serve: it starts, or hangs.

    It has not crashed, and no other one can be started.
    """
    return ConnectionLost(
        f"the daemon of {text_of_path(root)} (pid {pid or 'unknown'}) runs, but did not serve "
        f"within {limit_s:g} s; try again, look at its log, or end it with: kill {pid or 'PID'}",
        maybe_done=False,
    )


def _opened(root: Path | str) -> tuple[socket.socket, Endpoint]:
    try:
        endpoint = endpoint_of(str(root))
    except BadEndpoint as error:
        raise NoDaemon(str(error)) from None
    if endpoint is None:
        raise NotServing(f"no daemon runs for {text_of_path(root)}: {how_to_start(root)}")
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(connected, endpoint.socket_path)
    except (FileNotFoundError, ConnectionRefusedError):
        connected.close()
        raise NotServing(
            f"the daemon of {text_of_path(root)} (pid {endpoint.pid}) has crashed: "
            f"{how_to_start(root)}"
        ) from None
    except OSError as error:
        connected.close()
        is_full = isinstance(error, BlockingIOError)
        reason = "too many connections are waiting" if is_full else error.strerror or str(error)
        raise ConnectionLost(
            f"the daemon of {text_of_path(root)} cannot be reached: {reason}"
        ) from None
    return connected, endpoint


def _connect(connecting: socket.socket, path: bytes) -> None:
    """Connect; wait up to ``CONNECT_TIMEOUT_S`` while the listener's backlog is full."""
    # A blocking socket waits for the backlog. A socket with a timeout of Python's is non-blocking,
    # and connect(2) fails at once with EAGAIN. So the kernel's timeout is used.
    limit, none = (struct.pack("ll", seconds, 0) for seconds in (int(CONNECT_TIMEOUT_S), 0))
    connecting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connecting.connect(path)
    connecting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, none)

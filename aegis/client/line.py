"""A blocking client of the line protocol, for one-shot commands. Standard library only.

One JSON object per line on the daemon's Unix socket, as the server's ``requests`` says:

    {"type": "request", "id": 1, "command": "term_run", "arguments": {…}}
    {"type": "reply", "id": 1, "result": {…}}
    {"type": "error", "id": 1, "code": "busy", "message": "…"}

It raises ``ClientError``: ``NoDaemon``, ``ConnectionLost``, ``CommandFailed``.
"""

from __future__ import annotations

import json
import select
import socket
import struct

from aegis.client.errors import ClientError, CommandFailed, ConnectionLost, NoDaemon
from aegis.path_text import text_of_path
from aegis.state.endpoint import BadEndpoint, Endpoint, endpoint_of
from aegis.state.root import how_to_start

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Any

__all__ = ["ClientError", "CommandFailed", "ConnectionLost", "LineClient", "NoDaemon", "connect"]

CONNECT_TIMEOUT_S = 5.0
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Far above what any reply may be: a bound on what a confused peer can make us hold."""


class LineClient:
    """One connection; calls go one after the other. A context manager.

    ``endpoint`` is where it leads. Not for use by several threads.
    """

    def __init__(self, connected: socket.socket, endpoint: Endpoint, root: Path | str) -> None:
        self.endpoint = endpoint
        self._socket = connected
        self._lines = connected.makefile("rb")
        self._root = root
        self._last_id = 0

    def call(self, command: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Have ``command`` carried out and give its result; waits as long as that takes.

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
                raise self._lost(command, "the daemon closed it" if not line else "a line was cut")
            frame = parsed(line)
            if frame is None:
                raise self._lost(command, "what came was no answer of the protocol")
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
        """Whether the daemon has closed the connection, as far as is known between two calls."""
        looking = select.poll()
        looking.register(self._socket, 0)
        return bool(looking.poll(0))

    def close(self) -> None:
        """Close the connection; what is in flight is cancelled by the daemon."""
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
    """The line that asks for ``command``."""
    request = {"type": "request", "id": number, "command": command, "arguments": arguments}
    # A lone surrogate (a byte of argv that is no UTF-8) becomes JSON's own escape for it.
    return json.dumps(request, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def failure_in(frame: Mapping[str, Any], command: str) -> CommandFailed:
    """The failure of ``command`` that an error frame tells."""
    # The sentence begins with the tool's name, for agents; here it is known. Some tools have the
    # command's own name, the others a prefix before it.
    sentence = str(frame.get("message"))
    for tool in (f"aegis_{command}", command):
        sentence = sentence.removeprefix(f"{tool}: ")
    return CommandFailed(str(frame.get("code")), sentence)


def parsed(line: bytes) -> dict[str, Any] | None:
    """The frame in ``line``; None if it is none."""
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) and isinstance(frame.get("type"), str) else None


def connect(root: Path | str) -> LineClient:
    """Connect to the daemon of ``root``; raises as ``open_connection`` does."""
    connected, endpoint = open_connection(root)
    return LineClient(connected, endpoint, root)


def open_connection(root: Path | str) -> tuple[socket.socket, Endpoint]:
    """A connection to the daemon of ``root`` on which nothing was said yet, and where it leads.

    Raises ``NoDaemon`` if there is none, ``ConnectionLost`` if it does not take the connection.
    """
    try:
        endpoint = endpoint_of(str(root))
    except BadEndpoint as error:
        raise NoDaemon(str(error)) from None
    if endpoint is None:
        raise NoDaemon(f"no daemon runs for {text_of_path(root)}: {how_to_start(root)}")
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(connected, endpoint.socket_path)
    except (FileNotFoundError, ConnectionRefusedError):
        connected.close()
        raise NoDaemon(
            f"the daemon of {text_of_path(root)} (pid {endpoint.pid}) is gone without a goodbye: "
            f"{how_to_start(root)}"
        ) from None
    except OSError as error:
        connected.close()
        is_full = isinstance(error, BlockingIOError)
        reason = "too many others wait for it" if is_full else error.strerror or str(error)
        raise ConnectionLost(
            f"the daemon of {text_of_path(root)} cannot be reached: {reason}"
        ) from None
    return connected, endpoint


def _connect(connecting: socket.socket, path: bytes) -> None:
    """Connect, and where many others do so wait for a place among them, ``CONNECT_TIMEOUT_S`` long.

    That is what a blocking socket does. One with a time limit of Python's own is turned away at
    once (connect(2), EAGAIN).
    """
    limit, none = (struct.pack("ll", seconds, 0) for seconds in (int(CONNECT_TIMEOUT_S), 0))
    connecting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connecting.connect(path)
    connecting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, none)

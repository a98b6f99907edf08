"""A non-blocking client of the line protocol, for several requests at once. Standard library only.

The caller polls ``fileno()`` for ``events``, together with its other descriptors, and then calls
``exchange``.
"""

from __future__ import annotations

import json
import select
import socket
from collections import namedtuple

from aegis.client.errors import ConnectionLost
from aegis.client.line import MAX_LINE_BYTES, failure_in, open_connection, parsed, request_line
from aegis.path_text import text_of_path

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

CHUNK_BYTES = 262_144


class Response(namedtuple("Response", ("number", "result", "error"))):
    """The answer to the request ``number``: its ``result``, or its ``error`` (else None)."""

    __slots__ = ()


class NonBlockingLineClient:
    """One connection and the requests in progress on it. A context manager."""

    def __init__(self, connected: socket.socket, root: Path | str) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._root = root
        self._commands: dict[int, str] = {}
        self._last_number = 0
        self._outgoing = b""
        self._incoming = bytearray()

    def send(self, command: str, arguments: Mapping[str, object]) -> int:
        """Queue a request for sending; return its number. Raises ``CommandFailed``."""
        line = request_line(self._last_number + 1, command, arguments)
        self._last_number += 1
        self._commands[self._last_number] = command
        self._outgoing += line
        return self._last_number

    def cancel(self, number: int) -> None:
        """Cancel a request. It is answered by its result or by the error ``cancelled``."""
        if number in self._commands:
            self._outgoing += json.dumps({"type": "cancel", "id": number}).encode() + b"\n"

    def fileno(self) -> int:
        """Return the socket's descriptor, to be polled for ``events``."""
        return self._socket.fileno()

    @property
    def events(self) -> int:
        """The events to poll for: reading, and writing while there is something to send."""
        return select.POLLIN | (select.POLLOUT if self._outgoing else 0)

    def exchange(self) -> list[Response]:
        """Send and receive without blocking; return the answers received.

        Raises ``ConnectionLost``.
        """
        try:
            self.push()
            data = self._read()
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None
        if data == b"":
            raise self._lost("the daemon closed it")
        answers = [self._answer(line) for line in self._lines(data or b"")]
        return [answer for answer in answers if answer is not None]

    def push(self) -> None:
        """Send without blocking. Raises ``OSError``."""
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Close the connection; the daemon cancels the requests in progress."""
        self._socket.close()

    def _read(self) -> bytes | None:
        try:
            return self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return None

    def _lines(self, data: bytes) -> list[bytes]:
        self._incoming += data
        if len(self._incoming) > MAX_LINE_BYTES:
            raise self._lost("the answer does not fit the protocol")
        if b"\n" not in data:
            return []
        *lines, rest = bytes(self._incoming).split(b"\n")
        self._incoming[:] = rest
        return lines

    def _answer(self, line: bytes) -> Response | None:
        frame = parsed(line)
        if frame is None or frame["type"] not in ("reply", "error"):
            raise self._lost("the answer does not fit the protocol")
        number = frame.get("id")
        command = self._commands.pop(number, None) if isinstance(number, int) else None
        if command is None or not isinstance(number, int):
            return None
        if frame["type"] == "error":
            return Response(number, {}, failure_in(frame, command))
        return Response(number, dict(frame["result"]), None)

    def _lost(self, reason: str) -> ConnectionLost:
        command = next(iter(self._commands.values()), "")
        during = f" during {command}" if command else ""
        return ConnectionLost(
            f"the connection to the daemon of {text_of_path(self._root)} was lost{during}: "
            f"{reason}",
            command=command,
            reason=reason,
        )

    def __enter__(self) -> NonBlockingLineClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def connect_nonblocking(root: Path | str) -> NonBlockingLineClient:
    """Connect to the daemon of ``root``. Raises as ``open_connection``."""
    connected, _ = open_connection(root)
    return NonBlockingLineClient(connected, root)

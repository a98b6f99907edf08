"""Several requests at once over one connection of the line protocol. Standard library only.

Nothing here waits: who uses it polls ``fileno()`` beside whatever else it waits for, and lets
``exchange`` do what can be done then.
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


class Answer(namedtuple("Answer", ("number", "result", "error"))):
    """The daemon's answer to the request ``number``: a result, or a ``CommandFailed``, or None."""

    __slots__ = ()


class NonBlockingLineClient:
    """One connection, and the requests that are in flight on it. A context manager."""

    def __init__(self, connected: socket.socket, root: Path | str) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._root = root
        self._commands: dict[int, str] = {}
        self._last_number = 0
        self._outgoing = b""
        self._incoming = bytearray()

    def send(self, command: str, arguments: Mapping[str, object]) -> int:
        """Put a request into the flow; gives its number."""
        self._last_number += 1
        self._commands[self._last_number] = command
        self._outgoing += request_line(self._last_number, command, arguments)
        return self._last_number

    def cancel(self, number: int) -> None:
        """Give a request up. It is still answered: with its result, or the error ``cancelled``."""
        if number in self._commands:
            self._outgoing += json.dumps({"type": "cancel", "id": number}).encode() + b"\n"

    def fileno(self) -> int:
        """The socket's, to be polled for ``events``."""
        return self._socket.fileno()

    @property
    def events(self) -> int:
        """What to poll for: it always reads, and writes while something is to be sent."""
        return select.POLLIN | (select.POLLOUT if self._outgoing else 0)

    def exchange(self) -> list[Answer]:
        """Send and read what can be without waiting; the answers that came.

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
        """Send what can be sent without waiting. Raises ``OSError``."""
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Close the connection; what is in flight is given up by the daemon."""
        self._socket.close()

    def _read(self) -> bytes | None:
        try:
            return self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return None

    def _lines(self, data: bytes) -> list[bytes]:
        self._incoming += data
        if len(self._incoming) > MAX_LINE_BYTES:
            raise self._lost("what came was no answer of the protocol")
        if b"\n" not in data:
            return []
        *lines, rest = bytes(self._incoming).split(b"\n")
        self._incoming[:] = rest
        return lines

    def _answer(self, line: bytes) -> Answer | None:
        frame = parsed(line)
        if frame is None or frame["type"] not in ("reply", "error"):
            raise self._lost("what came was no answer of the protocol")
        number = frame.get("id")
        command = self._commands.pop(number, None) if isinstance(number, int) else None
        if command is None or not isinstance(number, int):
            return None
        if frame["type"] == "error":
            return Answer(number, {}, failure_in(frame, command))
        return Answer(number, dict(frame["result"]), None)

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
    """Connect to the daemon of ``root``; raises as ``open_connection`` does."""
    connected, _ = open_connection(root)
    return NonBlockingLineClient(connected, root)

"""MCP on standard input and output, carried as bytes to the daemon and back.

Standard library only, so that it starts quickly. The daemon speaks MCP; here nothing of it is
understood but which requests wait for an answer, to answer them when the daemon is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from pathlib import Path
from typing import NoReturn

from aegis.client.line import ClientError, CommandFailed, ConnectionLost, open_connection
from aegis.client.pending import Pending, error_answer
from aegis.path_text import text_of_path

VERSION = 1
SOURCE, SINK = 0, 1
"""Standard input and output."""

CHUNK_BYTES = 65_536
"""What is held at most in each direction."""

MAX_WELCOME_BYTES = 4096
WELCOME_LIMIT_S = 10.0
FIRST_REQUEST_S = 10.0
"""How long a client without a daemon is waited for, to tell it so in answer to its request."""

LINGER_S = 5.0
"""How long the daemon may take for its last answers when the client has closed its side."""

PIPE_BUF = select.PIPE_BUF
"""So many bytes a pipe that is writable takes without blocking (pipe(7))."""

_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


def carry(root: Path, handle: str) -> None:
    """Be an MCP server on standard input and output: the daemon of ``root``, for ``handle``.

    Returns when the client closes standard input. SIGTERM ends the process with exit code 0.
    Raises ``ClientError`` if there is no daemon or it goes away, after the client's requests have
    been answered with that sentence; ``BrokenPipeError`` if nobody reads standard output.
    """
    signal.signal(signal.SIGTERM, _exit)
    try:
        connected, ahead = _connect(root, handle)
    except ClientError as error:
        _answer_first_request(str(error))
        raise
    with connected:
        carrier = _Carrier(connected, ahead)
        if carrier.run():
            return
    lost = ConnectionLost(
        f"the daemon of {text_of_path(root)} went away: start it with: aegis-actors up; then "
        "connect again"
    )
    carrier.answer_pending(str(lost))
    raise lost


def _exit(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def _connect(root: Path, handle: str) -> tuple[socket.socket, bytes]:
    """A connection on which MCP is spoken, and what the daemon sent already. Raises ClientError."""
    connected, _ = open_connection(root)
    try:
        connected.settimeout(WELCOME_LIMIT_S)
        hello = json.dumps({"type": "mcp", "version": VERSION, "handle": handle})
        connected.sendall(hello.encode() + b"\n")
        welcome, ahead = _first_line(connected)
        _check_welcome(welcome)
    except OSError as error:
        connected.close()
        reason = error.strerror or str(error)
        raise ConnectionLost(
            f"the daemon of {text_of_path(root)} does not answer: {reason}"
        ) from None
    except ClientError:
        connected.close()
        raise
    connected.setblocking(False)
    return connected, ahead


def _first_line(connected: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\n" not in data and len(data) <= MAX_WELCOME_BYTES:
        more = connected.recv(MAX_WELCOME_BYTES)
        if not more:
            break
        data += more
    line, _, ahead = data.partition(b"\n")
    return line, ahead


def _check_welcome(line: bytes) -> None:
    try:
        answer = json.loads(line)
        kind = answer["type"]
    except (ValueError, TypeError, KeyError):
        raise ConnectionLost("what answers on the daemon's socket is no aegis-actors") from None
    if kind != "mcp":
        raise CommandFailed(str(answer.get("code")), str(answer.get("message")))


def _answer_first_request(sentence: str) -> None:
    """Tell a client why it is not served: as the answer to what it asks first."""
    if os.isatty(SOURCE):
        return
    pending = Pending()
    poll = select.poll()
    poll.register(SOURCE, select.POLLIN)
    end = time.monotonic() + FIRST_REQUEST_S
    while not pending.ids and poll.poll(max(0.0, end - time.monotonic()) * 1000):
        data = os.read(SOURCE, CHUNK_BYTES)
        if not data:
            break
        pending.to_server(data)
    _write(_answers(pending, sentence))


def _answers(pending: Pending, sentence: str) -> bytes:
    cut = b"\n" if pending.is_inside_a_line else b""
    return cut + b"".join(error_answer(request, sentence) for request in pending.ids)


def _write(data: bytes) -> None:
    """Write the last words; there is nothing else left to do."""
    os.set_blocking(SINK, True)
    with contextlib.suppress(OSError):  # nobody reads it: then nobody waits for it either
        while data:
            data = data[os.write(SINK, data) :]


class _Carrier:
    """The two directions; each holds one chunk, and reads on when that has been passed on."""

    def __init__(self, connected: socket.socket, ahead: bytes) -> None:
        self._socket = connected
        self._up = b""
        self._down = ahead
        self._source_ended = False
        self._pending = Pending()
        self._pending.to_client(ahead)
        self._poll = select.poll()

    def run(self) -> bool:
        """Carry until one side ends; gives whether that was the client's."""
        while True:
            self._watch()
            ready = dict(self._poll.poll(LINGER_S * 1000 if self._source_ended else None))
            if not ready:
                return True
            if ready.get(SINK, 0) & _GONE:
                raise BrokenPipeError
            if SINK in ready:
                self._write_down()
            if SOURCE in ready:
                self._read_up()
            if not self._exchange(ready.get(self._socket.fileno(), 0)):
                return self._source_ended

    def answer_pending(self, sentence: str) -> None:
        """Pass on the daemon's last words, and answer in its place what it can answer no more."""
        _write(self._down + _answers(self._pending, sentence))

    def _watch(self) -> None:
        """What can go on now; the client's reading end is always watched for its loss."""
        self._poll.register(SINK, select.POLLOUT if self._down else 0)
        wanted = (select.POLLIN if not self._down else 0) | (select.POLLOUT if self._up else 0)
        self._watch_for(self._socket.fileno(), wanted)
        reads = not self._source_ended and not self._up
        self._watch_for(SOURCE, select.POLLIN if reads else 0)

    def _watch_for(self, descriptor: int, events: int) -> None:
        """Of what is not watched at all not even its end is told, again and again."""
        if events:
            self._poll.register(descriptor, events)
        else:
            with contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)

    def _read_up(self) -> None:
        self._up = os.read(SOURCE, CHUNK_BYTES)
        self._pending.to_server(self._up)
        if not self._up:
            self._source_ended = True
            with contextlib.suppress(OSError):  # the daemon was first
                self._socket.shutdown(socket.SHUT_WR)

    def _write_down(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._down = self._down[os.write(SINK, self._down[:PIPE_BUF]) :]

    def _exchange(self, ready: int) -> bool:
        """Send and receive what the socket takes and has; gives whether the daemon is there."""
        try:
            if ready & select.POLLOUT and self._up:
                self._up = self._up[self._socket.send(self._up) :]
            if ready & (select.POLLIN | _GONE) and not self._down:
                self._down = self._socket.recv(CHUNK_BYTES)
                self._pending.to_client(self._down)
                return bool(self._down)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

"""A bridge between MCP on standard input and output and the daemon; it forwards bytes.

The daemon implements MCP. The bridge only records which requests are not answered, to answer them
when the daemon is gone. Standard library only, so that it starts quickly.
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
"""Largest buffer in each direction."""

MAX_WELCOME_BYTES = 4096
WELCOME_LIMIT_S = 10.0
FIRST_REQUEST_S = 10.0
"""Seconds to wait for a client's first request if no daemon runs, to answer it by an error."""

LINGER_S = 5.0
"""Seconds that the daemon may take to close the connection after its last answer, once the client
has closed its side."""

PIPE_BUF = select.PIPE_BUF
"""Bytes that a writable pipe accepts without blocking (pipe(7))."""

_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


def carry(root: Path, handle: str) -> None:
    """Serve MCP on standard input and output by the daemon of ``root``, under ``handle``.

    Returns when the client has closed standard input and has the answers to all its requests.
    SIGTERM ends the process with exit code 0.
    Raises ``ClientError`` if there is no daemon or it ends, after answering the client's requests
    with that sentence; ``BrokenPipeError`` if standard output has no reader.
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
        f"the daemon of {text_of_path(root)} ended: start it with: aegis-actors up; then "
        "connect again"
    )
    carrier.answer_pending(str(lost))
    raise lost


def _exit(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def _connect(root: Path, handle: str) -> tuple[socket.socket, bytes]:
    """Open a connection for MCP; return it and the bytes received so far. Raises ClientError."""
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
        raise ConnectionLost("the process on the daemon's socket is not aegis-actors") from None
    if kind != "mcp":
        raise CommandFailed(str(answer.get("code")), str(answer.get("message")))


def _answer_first_request(sentence: str) -> None:
    """Answer the client's first request with an error."""
    if os.isatty(SOURCE):
        return
    pending = Pending()
    poll = select.poll()
    poll.register(SOURCE, select.POLLIN)
    end = time.monotonic() + FIRST_REQUEST_S
    while not pending.ids and poll.poll(max(0.0, end - time.monotonic()) * 1000):
        data = os.read(SOURCE, CHUNK_BYTES)
        if not data:
            pending.end_of_input()
            break
        pending.to_server(data)
    _write(_answers(pending, sentence))


def _answers(pending: Pending, sentence: str) -> bytes:
    cut = b"\n" if pending.is_inside_a_line else b""
    return cut + b"".join(error_answer(request, sentence) for request in pending.ids)


def _write(data: bytes) -> None:
    """Write ``data`` before the process ends, blocking if necessary."""
    os.set_blocking(SINK, True)
    with contextlib.suppress(OSError):  # no reader: no client waits for the answer
        while data:
            data = data[os.write(SINK, data) :]


class _Carrier:
    """The two directions; each buffers one chunk, and reads the next when that is written."""

    def __init__(self, connected: socket.socket, ahead: bytes) -> None:
        self._socket = connected
        self._up = b""
        self._down = ahead
        self._source_ended = self._is_shut = False
        self._pending = Pending()
        self._pending.to_client(ahead)
        self._poll = select.poll()

    def run(self) -> bool:
        """Forward until one side ends; return whether the client ended and has all answers."""
        while True:
            self._watch()
            is_over = self._source_ended and not self._pending.is_awaited
            ready = dict(self._poll.poll(LINGER_S * 1000 if is_over else None))
            if not ready:
                return True
            if ready.get(SINK, 0) & _GONE:
                raise BrokenPipeError
            if SINK in ready:
                self._write_down()
            if SOURCE in ready:
                self._read_up()
            if not self._exchange(ready.get(self._socket.fileno(), 0)):
                return self._source_ended and not self._pending.is_awaited

    def answer_pending(self, sentence: str) -> None:
        """Write the daemon's last bytes, and answer its pending requests with an error."""
        _write(self._down + _answers(self._pending, sentence))

    def _watch(self) -> None:
        # Standard output is registered even without data: its loss has to be noticed.
        self._poll.register(SINK, select.POLLOUT if self._down else 0)
        wanted = (select.POLLIN if not self._down else 0) | (select.POLLOUT if self._up else 0)
        self._watch_for(self._socket.fileno(), wanted)
        reads = not self._source_ended and not self._up
        self._watch_for(SOURCE, select.POLLIN if reads else 0)

    def _watch_for(self, descriptor: int, events: int) -> None:
        # poll(2) always reports a hang-up, so a descriptor without events has to be unregistered.
        if events:
            self._poll.register(descriptor, events)
        else:
            with contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)

    def _read_up(self) -> None:
        self._up = os.read(SOURCE, CHUNK_BYTES)
        if self._up:
            self._pending.to_server(self._up)
        else:
            self._source_ended = True
            self._up = self._pending.end_of_input()
        self._down += self._pending.refusals()
        self._shut_if_sent()

    def _shut_if_sent(self) -> None:
        """Once everything of the client is sent, let the daemon see the end of input."""
        if self._source_ended and not self._up and not self._is_shut:
            self._is_shut = True
            with contextlib.suppress(OSError):  # the daemon closed first
                self._socket.shutdown(socket.SHUT_WR)

    def _write_down(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._down = self._down[os.write(SINK, self._down[:PIPE_BUF]) :]

    def _exchange(self, ready: int) -> bool:
        """Send and receive without blocking; return whether the connection is still open."""
        try:
            if ready & select.POLLOUT and self._up:
                self._up = self._up[self._socket.send(self._up) :]
                self._shut_if_sent()
            if ready & (select.POLLIN | _GONE) and not self._down:
                self._down = self._socket.recv(CHUNK_BYTES)
                self._pending.to_client(self._down)
                is_open = bool(self._down)
                self._down += self._pending.refusals()
                return is_open
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

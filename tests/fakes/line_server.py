"""A daemon as the command line meets it: the line protocol on a real Unix socket, in a thread.

Requests are checked against the command set and replies against their classes, so that a client
that drifts from either is noticed. What lies behind the socket is a table of answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.codec import structure
from aegis.errors import AegisError
from aegis.protocol.derived.wire import command_from
from aegis.protocol.table import BY_NAME
from aegis.state.endpoint import Endpoint, write_endpoint
from aegis.state.root import StatePaths, make_directory

GUARD_S = 60

Answer = dict[str, Any] | AegisError | bytes | Callable[[], Any]
"""A reply, an error, raw bytes after which the connection is closed, or what gives one of them."""


class LineServer:
    """Serves one connection after the other; ``requests`` holds the frames that came."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.answers: dict[str, Answer] = {}
        self.requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        # A Unix socket's path must be short, and a test's directory may not be.
        self._directory = Path(tempfile.mkdtemp(prefix="aegis-"))
        self.path = self._directory / "s"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(os.fspath(self.path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self.announce(pid=os.getpid())

    def announce(self, pid: int) -> None:
        """Write the endpoint file of the root."""
        make_directory(StatePaths(self.root))
        endpoint = Endpoint(
            pid=pid,
            url="http://127.0.0.1:8420",
            mcp="http://127.0.0.1:8420/mcp",
            ws="ws://127.0.0.1:8420/ws",
            socket=str(self.path),
            token="a token",
        )
        write_endpoint(StatePaths(self.root), endpoint)

    def arguments(self) -> dict[str, Any]:
        """The arguments of the next request that came."""
        arguments: dict[str, Any] = self.requests.get(timeout=GUARD_S)["arguments"]
        return arguments

    def stop(self) -> None:
        """Stop listening, as a daemon does that died: the endpoint file stays."""
        if self._listener.fileno() < 0:
            return
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(GUARD_S)
        assert not self._thread.is_alive()
        self._listener.close()
        shutil.rmtree(self._directory)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            # A client may go away at any moment.
            with connection, contextlib.suppress(ConnectionError):
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            for line in lines:
                request = json.loads(line)
                self.requests.put(request)
                answer = self._answer_to(request)
                connection.sendall(answer)
                if not answer.endswith(b"\n"):
                    return

    def _answer_to(self, request: dict[str, Any]) -> bytes:
        entry = BY_NAME[request["command"]]
        try:
            command_from(entry, request["arguments"])
            answer = self.answers[entry.name]
            while callable(answer):
                answer = answer()
            if isinstance(answer, bytes):
                return answer
            if isinstance(answer, AegisError):
                raise answer
        except AegisError as error:
            return self._frame(request, type="error", code=error.code, message=str(error))
        structure(entry.reply, answer)
        return self._frame(request, type="reply", result=answer)

    def _frame(self, request: dict[str, Any], **parts: Any) -> bytes:
        return json.dumps({"id": request["id"], **parts}).encode() + b"\n"

"""What a command costs over MCP, against a tool call that does nothing, in both eras of MCP.

A real daemon in a process of its own and Debian's stock ``.bashrc``. Two clients: one socket kept
open, so that next to nothing of what is measured is the client; and the official client, which is
what people have. The empty call is
``aegis_term_unsubscribe`` of a handle that is not subscribed: it goes the whole way to the
terminal's actor and back, and changes nothing there. A run and an empty call are measured in turn;
between them goes an empty call that is not measured, so that the prompt that bash prints after a
command is not charged to the next. In turn with them a server of the SDK alone is called, whose
tool does nothing (``bare_mcp_server``).

python tests/bench/bench_mcp.py
"""

from __future__ import annotations

import json
import socket
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trio
from mcp import Client

from tests.bench.bare_mcp_server import TOOL, bare_server
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

ROUNDS = 250
WARM_UP = 40
STOCK_BASHRC = Path("/etc/skel/.bashrc")
LEGACY = "2025-11-25"
MODERN = "2026-07-28"

RUN: tuple[str, dict[str, Any]] = ("aegis_term_run", {"name": "bench", "cmd": "true"})
EMPTY: tuple[str, dict[str, Any]] = ("aegis_term_unsubscribe", {"name": "bench"})

_CLIENT_INFO = {"name": "bench", "version": "1"}
_MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT_INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class HttpSocket:
    """One connection to ``url`` that is kept open; requests go one after the other."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._path = parts.path
        self._host = parts.netloc
        self._address = (parts.hostname, parts.port or 80)
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection(self._address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reconnect(self) -> None:
        """Begin a new connection in the place of this one, which may have been idle for long."""
        self._socket.close()
        self._connect()

    def __enter__(self) -> HttpSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def request(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """A whole POST request as it is sent."""
        shown = {
            "host": self._host,
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(body)),
            **headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in shown.items())
        return f"POST {self._path} HTTP/1.1\r\n{lines}\r\n".encode() + body

    def exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Send a request; gives the head and the body of the response, chunks left as they are."""
        self.send(request)
        return self.receive()

    def send(self, request: bytes) -> None:
        """Send a request, and do not wait."""
        self._socket.sendall(request)

    def receive(self) -> tuple[bytes, bytes]:
        """The head and the body of the next response."""
        data = b""
        while not (end := _end_of_response(data)):
            received = self._socket.recv(65_536)
            assert received, f"the daemon closed the connection after {data!r}"
            data += received
        assert end == len(data)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 2"), data
        return head, body


def _end_of_response(data: bytes) -> int:
    """Where the response ends; 0 while it is not whole."""
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator:
        return 0
    if b"transfer-encoding: chunked" in head.lower():
        return len(data) if body.endswith(b"0\r\n\r\n") else 0
    length = _header(head, b"content-length")
    whole = len(head) + len(separator) + int(length or 0)
    return whole if len(data) >= whole else 0


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.partition(b":")
        if found.lower() == name:
            return value.strip()
    return None


class McpClient:
    """An MCP client of one era: each tool call is a request made beforehand."""

    def __init__(self, http: HttpSocket) -> None:
        self._http = http

    def prepared(self, tool: str, **arguments: object) -> bytes:
        """The request of a tool call."""
        raise NotImplementedError

    def call(self, prepared: bytes) -> float:
        """Seconds from the first byte sent to the last received; the call must succeed."""
        begin = time.perf_counter()
        _, body = self._http.exchange(prepared)
        took = time.perf_counter() - begin
        assert b'"structuredContent"' in body, body
        return took


class ModernClient(McpClient):
    """The sessionless era: every request is whole in itself."""

    def prepared(self, tool: str, **arguments: object) -> bytes:
        """The request, with the headers that route it."""
        headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": tool}
        params = {"name": tool, "arguments": arguments, "_meta": _MODERN_META}
        return self._http.request(_rpc("tools/call", params), headers)


class LegacyClient(McpClient):
    """The era of sessions."""

    def __init__(self, http: HttpSocket) -> None:
        super().__init__(http)
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT_INFO}
        head, _ = http.exchange(http.request(_rpc("initialize", params), {}))
        session = _header(head, b"mcp-session-id")
        assert session is not None
        self._headers = {"mcp-session-id": session.decode(), "mcp-protocol-version": LEGACY}
        initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
        http.exchange(http.request(initialized, self._headers))

    def prepared(self, tool: str, **arguments: object) -> bytes:
        """The request, within the session."""
        params = {"name": tool, "arguments": arguments}
        return self._http.request(_rpc("tools/call", params), self._headers)

    def ping(self) -> bytes:
        """The request of a ping."""
        return self._http.request(_rpc("ping", {}), self._headers)


def _rpc(method: str, params: Mapping[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(message).encode()


def in_turn(client: McpClient, bare: McpClient) -> tuple[float, float, float]:
    """Medians in milliseconds of a run of ``true``, an empty call, and one of the bare server."""
    run, empty = client.prepared(RUN[0], **RUN[1]), client.prepared(EMPTY[0], **EMPTY[1])
    other = bare.prepared(TOOL)
    rounds = []
    for _ in range(WARM_UP + ROUNDS):
        run_s = client.call(run)
        client.call(empty)
        rounds.append((run_s, client.call(empty), bare.call(other)))
    return _medians_ms(rounds)


async def in_turn_officially(url: str, bare_url: str) -> tuple[float, float, float]:
    """The same with the official client."""
    rounds = []
    async with Client(url) as client, Client(bare_url) as bare:
        for _ in range(WARM_UP + ROUNDS):
            times = []
            for asked, (tool, arguments) in (
                (client, RUN),
                (client, EMPTY),
                (client, EMPTY),
                (bare, (TOOL, {})),
            ):
                begin = time.perf_counter()
                result = await asked.call_tool(tool, arguments)
                times.append(time.perf_counter() - begin)
                assert not result.is_error, result
            rounds.append((times[0], times[2], times[3]))
    return _medians_ms(rounds)


def _medians_ms(rounds: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    run, empty, bare = zip(*rounds[WARM_UP:], strict=True)
    run_s, empty_s, bare_s = map(statistics.median, (run, empty, bare))
    return run_s * 1000, empty_s * 1000, bare_s * 1000


def measure() -> list[Row]:
    """Six rows for each client; takes some seconds."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory), STOCK_BASHRC.read_text())
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="bench", shell="/bin/bash")
            url = daemon.call("session_new", handle="bench")["url"]
            with bare_server() as bare_url:
                for era, client in (("sessionless", ModernClient), ("sessions", LegacyClient)):
                    with HttpSocket(url) as http, HttpSocket(bare_url) as bare:
                        rows += _rows(era, *in_turn(client(http), client(bare)))
                rows += _rows("official client", *trio.run(in_turn_officially, url, bare_url))
        finally:
            daemon.stop()
    return rows


def _rows(client: str, run: float, empty: float, bare: float) -> list[Row]:
    return [
        (f"MCP, {client}: empty call / bare SDK server", empty / bare, "ratio"),
        (f"MCP, {client}: call of a bare SDK server, ms", bare, "median"),
        (f"MCP, {client}: run('true') / empty call", run / empty, "ratio"),
        (f"MCP, {client}: run('true'), ms", run, "median"),
        (f"MCP, {client}: empty call, ms", empty, "median"),
        (f"MCP, {client}: run less empty call, ms", run - empty, "of the medians"),
    ]


if __name__ == "__main__":
    print_rows(measure())

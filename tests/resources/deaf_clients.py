"""Clients that ask and never read: raw sockets with small buffers, of every face of the daemon."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from aegis.state.endpoint import Endpoint
from tests.e2e.harness import GUARD_S

SMALL_BUFFER = 4096


class Deaf:
    """A client that sends calls until its socket takes no more, and reads nothing."""

    def __init__(self, sock: socket.socket, frame: Callable[[bytes], bytes]) -> None:
        self._socket = sock
        self._frame = frame
        self._numbers = itertools.count(1)

    def ask(self, command: str, arguments: Mapping[str, object], times: int) -> int:
        """Send so many calls; gives how many were taken before the way was full."""
        self._socket.setblocking(False)
        for number in range(times):
            request = {"type": "request", "id": next(self._numbers), "command": command}
            text = json.dumps({**request, "arguments": dict(arguments)}).encode()
            try:
                self._socket.sendall(self._frame(text))
            except BlockingIOError:
                return number
        return times

    def __enter__(self) -> Deaf:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def deaf_line(endpoint: Endpoint) -> Deaf:
    """One of the line protocol."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(endpoint.socket)
    return Deaf(sock, lambda text: text + b"\n")


def deaf_websocket(endpoint: Endpoint) -> Deaf:
    """One of the WebSocket."""
    sock, host = _tcp(endpoint)
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET /ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        f"Authorization: Bearer {endpoint.token}\r\n\r\n"
    )
    sock.sendall(head.encode())
    assert sock.recv(SMALL_BUFFER).startswith(b"HTTP/1.1 101")
    return Deaf(sock, _masked)


def _masked(text: bytes) -> bytes:
    """A text frame whose mask changes nothing (RFC 6455, 5.2)."""
    assert len(text) < 65_536
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
    return b"\x81" + size + bytes(4) + text


def deaf_mcp_stream(endpoint: Endpoint, uri: str) -> socket.socket:
    """A session that watches ``uri`` and never reads the stream on which it is told of changes."""
    url = urlsplit(endpoint.mcp)
    session = _Session(url.netloc, url.path, endpoint.token)
    client = {"name": "deaf", "version": "1"}
    session.post("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    session.post("notifications/initialized", number=None)
    session.post("resources/subscribe", uri=uri)
    sock, host = _tcp(endpoint)
    lines = [f"GET {url.path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in session.headers.items()]
    sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    assert sock.recv(64).startswith(b"HTTP/1.1 200")
    return sock


class _Session:
    """An MCP session of the older era, by plain HTTP."""

    def __init__(self, host: str, path: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(host, timeout=GUARD_S)
        self._path = path
        self.headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }

    def post(self, method: str, number: int | None = 1, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        body = json.dumps(message if number is None else {**message, "id": number})
        headers = {**self.headers, "Content-Type": "application/json"}
        self._connection.request("POST", self._path, body, headers)
        response = self._connection.getresponse()
        assert response.status in (200, 202), response.read()
        response.read()
        if "mcp-session-id" in response.headers:
            self.headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
        self._connection.close()


def _tcp(endpoint: Endpoint) -> tuple[socket.socket, str]:
    url = urlsplit(endpoint.url)
    sock = socket.socket()
    sock.settimeout(GUARD_S)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
    sock.connect((url.hostname, url.port))
    return sock, url.netloc

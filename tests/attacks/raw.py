"""Raw clients, who send whatever they like over TCP or the Unix socket, and look at the answer."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.harness import GUARD_S, DaemonProcess

WEBSOCKET_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "application/json, text/event-stream"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
TEXT, BINARY, CLOSE = 1, 2, 8


class Raw:
    """A connection to a daemon; what comes back is read with a guard against hanging."""

    def __init__(self, connected: socket.socket, host: str) -> None:
        self.socket = connected
        self.host = host
        self._data = b""

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """Send; False if the other end would not take it (any more)."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def request(
        self, method: str, target: str, body: bytes = b"", /, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request, and its answer; ``a_b=…`` sets header ``a-b``, empty leaves it out."""
        self.send(self.head(method, target, content_length=str(len(body)), **headers) + body)
        return self.answer()

    def head(self, method: str, target: str, /, **headers: str) -> bytes:
        """The head of a request."""
        shown = {"host": self.host, **headers}
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in shown.items() if value]
        return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode("latin-1")

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """A response; its body whole if it has a length, else what came with the head."""
        while b"\r\n\r\n" not in self._data:
            self._more()
        head, _, self._data = self._data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", 0))
        while len(self._data) < length:
            self._more()
        body, self._data = self._data[:length], self._data[length:]
        return int(first.split()[1]), headers, body

    def until(self, found: bytes) -> bytes:
        """What comes up to and with ``found``."""
        while found not in self._data:
            self._more()
        before, _, self._data = self._data.partition(found)
        return before + found

    def line(self) -> dict[str, Any]:
        """The next line, as JSON."""
        document: dict[str, Any] = json.loads(self.until(b"\n"))
        return document

    def finish(self) -> bytes:
        """Wait for an answer, send nothing more, and return all up to the other end's close.

        A daemon that has refused reads on for a second, unless the client has ended first.
        """
        self._more()
        self.socket.shutdown(socket.SHUT_WR)
        return self.rest()

    def rest(self) -> bytes:
        """All that comes until the other end closes."""
        try:
            while data := self.socket.recv(65_536):
                self._data += data
        except ConnectionResetError:
            pass
        data, self._data = self._data, b""
        return data

    def upgrade(self, **headers: str) -> int:
        """Ask for a WebSocket; gives the status."""
        self.send(self.websocket_head(**headers))
        return self.answer()[0]

    def websocket_head(self, **headers: str) -> bytes:
        """The head of a WebSocket handshake."""
        shown = {
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec_websocket_version": "13",
            "sec_websocket_key": WEBSOCKET_KEY,
            **headers,
        }
        return self.head("GET", "/ws", **shown)

    def send_frame(self, document: object) -> bool:
        """A frame of the daemon's protocol, as a WebSocket text message."""
        return self.send(frame(json.dumps(document).encode()))

    def frame(self) -> tuple[int, bytes]:
        """The next WebSocket frame of the server: its kind and content."""
        first, size = self._exactly(2)
        if size == 126:
            (size,) = struct.unpack(">H", self._exactly(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._exactly(8))
        return first & 0x0F, self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        while len(self._data) < count:
            self._more()
        data, self._data = self._data[:count], self._data[count:]
        return data

    def _more(self) -> None:
        data = self.socket.recv(65_536)
        if not data:
            raise EOFError(f"the daemon closed the connection after {self._data!r}")
        self._data += data


def frame(
    payload: bytes, kind: int = TEXT, *, first: int = 0x80, length: int | None = None
) -> bytes:
    """A masked WebSocket frame (RFC 6455, 5.2), whose mask changes nothing.

    ``length`` is what its head says, if that is not the truth.
    """
    size = len(payload) if length is None else length
    if size < 126:
        head = bytes([first | kind, 0x80 | size])
    elif size < 65_536:
        head = bytes([first | kind, 0xFE]) + struct.pack(">H", size)
    else:
        head = bytes([first | kind, 0xFF]) + struct.pack(">Q", size)
    return head + bytes(4) + payload


def tcp(daemon: DaemonProcess, *, buffer: int | None = None) -> Raw:
    """A connection to the port; ``buffer`` bytes are what the kernel keeps for it unread."""
    url = urlsplit(daemon.endpoint.url)
    connected = socket.socket()
    connected.settimeout(GUARD_S)
    if buffer is not None:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connected.connect((url.hostname, url.port))
    return Raw(connected, url.netloc)


def local(daemon: DaemonProcess) -> Raw:
    """A connection to the Unix socket."""
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(daemon.endpoint.socket)  # waits for its place: with a time limit it would not
    connected.settimeout(GUARD_S)
    return Raw(connected, "localhost")


def bearer(daemon: DaemonProcess) -> dict[str, str]:
    """The header that makes the operator."""
    return {"authorization": f"Bearer {daemon.endpoint.token}"}


def session_path(daemon: DaemonProcess, handle: str) -> str:
    """The path of a handle's session URL."""
    url: str = daemon.call("session_new", handle=handle)["url"]
    return urlsplit(url).path


def rpc(method: str, params: Mapping[str, object]) -> bytes:
    """A JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def mcp(
    raw: Raw, path: str, method: str, params: Mapping[str, object], /, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """A request of MCP: its status, headers, and the body as far as it came in one piece."""
    shown = {"content_type": "application/json", "accept": ACCEPT, **headers}
    return raw.request("POST", path, rpc(method, params), **shown)


def opened_session(daemon: DaemonProcess, path: str, **headers: str) -> str:
    """The id of an MCP session of the older era, opened at ``path``."""
    info = {"name": "attacker", "version": "1"}
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
    with tcp(daemon) as raw:
        status, found, _ = mcp(raw, path, "initialize", params, **headers)
    assert status == 200
    return found["mcp-session-id"]


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until ``holds``; there is no event to wait for."""
    deadline = time.monotonic() + GUARD_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)

"""A WebSocket client that is next to nothing: what is measured over it is not its own time."""

from __future__ import annotations

import socket
import struct

from tests.e2e.harness import DaemonProcess

TEXT, BINARY = 0x81, 0x82


class BareWebSocket:
    """The operator on a connection of its own: whole messages, masked with zeros."""

    def __init__(self, daemon: DaemonProcess) -> None:
        host, _, port = daemon.endpoint.url.removeprefix("http://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")
        self.socket.sendall(
            f"GET /ws HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Authorization: Bearer {daemon.endpoint.token}\r\n\r\n".encode()
        )
        while self._file.readline() != b"\r\n":
            pass

    def send(self, kind: int, data: bytes) -> None:
        """One message of less than 64 KiB."""
        self.socket.sendall(framed(kind, data))

    def message(self) -> tuple[int, bytes]:
        """The next message, whole."""
        kind, size = self._file.read(2)
        if size == 126:
            (size,) = struct.unpack(">H", self._file.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._file.read(8))
        return kind, self._file.read(size)

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self.socket.close()


def framed(kind: int, data: bytes) -> bytes:
    """A message as it is sent."""
    small = len(data) < 126
    size = bytes([0x80 | len(data)]) if small else b"\xfe" + struct.pack(">H", len(data))
    return bytes([kind]) + size + b"\0\0\0\0" + data

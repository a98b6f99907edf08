"""A push service with TLS on loopback, and a browser that can read what was sent to it."""

from __future__ import annotations

import http.server
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from aegis.push.encryption import CURVE, base64url, point_of
from aegis.push.network import PushNetwork
from tests.fakes.tls_proxy import write_certificate

HOST = "push.example"


class PushBrowser:
    """A browser with the keys of one subscription."""

    def __init__(self, path: str = "/send/phone") -> None:
        self.endpoint = f"https://{HOST}{path}"
        self.private = ec.generate_private_key(CURVE)
        self.secret = os.urandom(16)

    @property
    def keys(self) -> dict[str, Any]:
        """The arguments of a subscription."""
        return {
            "endpoint": self.endpoint,
            "p256dh": base64url(point_of(self.private.public_key())),
            "auth": base64url(self.secret),
        }

    def read(self, body: bytes) -> dict[str, Any]:
        """Decrypt a message as RFC 8291 says, on its own."""
        salt, size, sender, sealed = body[:16], body[20], body[21:86], body[86:]
        assert size == 65
        key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, sender)
        shared = self.private.exchange(ec.ECDH(), key)
        info = b"WebPush: info\0" + point_of(self.private.public_key()) + sender
        secret = _derived(shared, self.secret, info, 32)
        content_key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
        plain = AESGCM(content_key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert plain[-1:] == b"\x02"
        document: dict[str, Any] = json.loads(plain[:-1])
        return document


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


@attrs.frozen
class PushedMessage:
    """A request that the service got."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@attrs.define(eq=False)
class PushService:
    """The service: ``answers`` are the next statuses with their headers, then 201 for ever."""

    port: int
    tls: ssl.SSLContext
    received: list[PushedMessage] = attrs.field(factory=list)
    answers: list[tuple[int, dict[str, str]]] = attrs.field(factory=list)
    connections: int = 0
    dribbles: bool = False

    def of(self, browser: PushBrowser) -> list[dict[str, Any]]:
        """Return what a browser was sent, in order."""
        path = browser.endpoint.removeprefix(f"https://{HOST}")
        return [browser.read(each.body) for each in [*self.received] if each.path == path]

    def network(self) -> PushNetwork:
        """Return the network in which the service is the only host."""
        return ServiceNetwork(self)


class ServiceNetwork(PushNetwork):
    """Every name leads to the service; the certificate is checked as ever."""

    def __init__(self, service: PushService) -> None:
        self._service = service
        self.port = service.port
        self.looked_up: list[str] = []

    def tls(self) -> ssl.SSLContext:
        return self._service.tls

    async def lookup(self, host: str) -> list[str]:
        self.looked_up.append(host)
        return ["127.0.0.1"]

    def is_allowed(self, address: str) -> bool:
        return address == "127.0.0.1"


@contextmanager
def push_service(directory: Path) -> Iterator[PushService]:
    """Run a service, whose certificate and key are written into ``directory``."""
    certificate, key = write_certificate(directory, HOST)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate, key)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more = service.answers.pop(0) if service.answers else (201, {})
            service.received.append(PushedMessage(self.path, headers, body))
            while service.dribbles:
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                time.sleep(0.05)
            self.send_response(status)
            for name, value in {"Content-Length": "0", "Set-Cookie": "a=b", **more}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[socket.socket, Any]:
            inner, address = super().get_request()
            service.connections += 1
            # The handshake is made by the thread of the connection, at its first read.
            wrapped = server_side.wrap_socket(
                inner, server_side=True, do_handshake_on_connect=False
            )
            return wrapped, address

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that does not accept the certificate

    with Server(("127.0.0.1", 0), Handler) as server:
        client_side = ssl.create_default_context(cafile=str(certificate))
        service = PushService(server.server_address[1], client_side)
        running = threading.Thread(target=server.serve_forever, daemon=True)
        running.start()
        try:
            yield service
        finally:
            server.shutdown()
            running.join()

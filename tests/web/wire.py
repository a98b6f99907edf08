"""A wire between a browser and a daemon that can be stalled and cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import attrs

TO_DAEMON, TO_BROWSER = "to the daemon", "to the browser"
CHUNK_BYTES = 65_536


@attrs.define(eq=False)
class Wire:
    """Relays connections of a port of its own to ``target``, a port of the daemon."""

    target: int
    _listener: socket.socket = attrs.field(factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _flows: dict[str, threading.Event] = attrs.field(init=False)
    _open: set[socket.socket] = attrs.field(factory=set)
    _threads: list[threading.Thread] = attrs.field(factory=list)
    _refuses: bool = False

    def __attrs_post_init__(self) -> None:
        self._flows = {way: threading.Event() for way in (TO_DAEMON, TO_BROWSER)}
        self.flow()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def hold(self, way: str) -> None:
        """Keep all bytes of one direction back."""
        self._flows[way].clear()

    def flow(self) -> None:
        for each in self._flows.values():
            each.set()

    def cut(self, *, refuse: bool = False) -> None:
        """Cut every connection; with ``refuse``, new ones too, until ``mend``."""
        self._refuses = refuse
        self._shut(*self._open)

    def mend(self) -> None:
        self._refuses = False

    def accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed at the end
            while True:
                browser, _ = self._listener.accept()
                if self._refuses:
                    browser.close()
                    continue
                daemon = socket.create_connection(("127.0.0.1", self.target))
                self._open |= {browser, daemon}
                self._end_late(browser, daemon)
                serving = threading.Thread(target=self._serve, args=(browser, daemon))
                self._threads.append(serving)
                serving.start()

    def _end_late(self, *ends: socket.socket) -> None:
        """End a connection that was accepted just before a cut, which did not see it."""
        if self._refuses:
            self._shut(*ends)

    def _serve(self, browser: socket.socket, daemon: socket.socket) -> None:
        answers = threading.Thread(target=self._relay, args=(daemon, browser, TO_BROWSER))
        answers.start()
        self._relay(browser, daemon, TO_DAEMON)
        answers.join()
        for each in (browser, daemon):
            self._open.discard(each)
            each.close()

    def _relay(self, source: socket.socket, target: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                self._flows[way].wait()
                target.sendall(data)
        self._shut(source, target)

    @staticmethod
    def _shut(*ends: socket.socket) -> None:
        for each in ends:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.flow()
        self.cut(refuse=True)
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._threads:
            each.join()


@contextlib.contextmanager
def wire_to(port: int) -> Iterator[Wire]:
    wire = Wire(port)
    thread = threading.Thread(target=wire.accept)
    thread.start()
    try:
        yield wire
    finally:
        wire.close()
        thread.join()

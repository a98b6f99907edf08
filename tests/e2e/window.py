"""Somebody in front of a window: the command line on a real PTY, keys pressed, output seen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.harness import GUARD_S, DaemonProcess

DETACH = b"\x1cd"


class Window:
    """A window of ``cols`` by ``rows`` in which ``command`` runs.

    It answers nothing, as a window does that asks nobody: what is seen is all that came.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        cols: int = 80,
        rows: int = 24,
    ) -> None:
        self._window, self._inside = pty.openpty()
        self.resize(cols, rows)
        self.modes = self.modes_now()
        self.seen = b""
        self._from = 0
        self.process = subprocess.Popen(
            command,
            env={**environment, "TERM": "xterm-256color"},
            cwd=directory,
            stdin=self._inside,
            stdout=self._inside,
            stderr=self._inside,
            preexec_fn=self._take,
        )

    def _take(self) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def modes_now(self) -> list[Any]:
        """The settings of its tty."""
        return termios.tcgetattr(self._inside)

    def resize(self, cols: int, rows: int) -> None:
        fcntl.ioctl(self._window, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self._window, keys)

    def wait_for(self, text: bytes) -> bytes:
        """Wait until this shows behind what was waited for before; gives what came up to it."""
        deadline = time.monotonic() + GUARD_S
        while (at := self.seen.find(text, self._from)) < 0:
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{text!r} did not show in {self.seen[self._from :]!r}"
            self._look(left_s)
        begin, self._from = self._from, at + len(text)
        return self.seen[begin : self._from]

    def _look(self, wait_s: float) -> None:
        if select.select([self._window], [], [], wait_s)[0]:
            self.seen += os.read(self._window, 65_536)

    def wait_exit(self) -> int:
        """Wait for the end of the process, looking on; gives its exit code."""
        deadline = time.monotonic() + GUARD_S
        process = os.pidfd_open(self.process.pid)
        try:
            while not select.select([process], [], [], 0)[0]:
                left_s = deadline - time.monotonic()
                assert left_s > 0, f"it goes on: {self.seen[self._from :]!r}"
                if self._window in select.select([process, self._window], [], [], left_s)[0]:
                    self._look(0)
        finally:
            os.close(process)
        while select.select([self._window], [], [], 0)[0]:
            self._look(0)
        return self.process.wait()

    def hang_up(self) -> None:
        """Close the window while its process runs."""
        for descriptor in (self._window, self._inside):
            os.close(descriptor)
        self._window = self._inside = -1

    def close(self) -> None:
        """Close it, whatever runs there."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self._window >= 0:
            self.hang_up()


@contextmanager
def window(daemon: DaemonProcess, *words: str, cols: int = 80, rows: int = 24) -> Iterator[Window]:
    """A window with ``aegis-actors WORDS`` in it, closed at the end."""
    opened = Window(
        [*daemon.program, *words],
        environment=daemon.environment,
        directory=daemon.root,
        cols=cols,
        rows=rows,
    )
    try:
        yield opened
    finally:
        opened.close()

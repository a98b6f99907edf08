"""The user's own terminal: in raw mode during an attachment, then restored."""

from __future__ import annotations

import contextlib
import os
import select
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio

READ_BYTES = 65_536

READER_LIMIT_S = 0.5
"""Seconds that the last write waits for a window that accepts no output."""


class OwnTerminal:
    """A terminal read through the descriptor ``keys`` and written through ``screen``."""

    def __init__(self, keys: int, screen: int) -> None:
        self._keys = keys
        self._screen = screen
        self._before: list[Any] | None = None

    def size(self) -> tuple[int, int]:
        """Return the columns and rows of the window; zeros if unknown."""
        try:
            size = os.get_terminal_size(self._screen)
        except OSError:
            return 0, 0
        return size.columns, size.lines

    def make_raw(self) -> None:
        """Switch to raw mode: keys and output pass unchanged."""
        if self._before is None:
            self._before = termios.tcgetattr(self._keys)
        tty.setraw(self._keys, termios.TCSANOW)

    def restore(self) -> None:
        """Restore the mode before the first ``make_raw``."""
        if self._before is not None:
            # The terminal may be gone with its window.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSANOW, self._before)

    async def read(self) -> bytes:
        """Return the next keys; empty if the terminal is gone."""
        await trio.lowlevel.wait_readable(self._keys)
        try:
            return os.read(self._keys, READ_BYTES)
        except BlockingIOError:
            return await self.read()
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Write all of ``data``; do nothing if the terminal is gone, which ``read`` reports."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._screen, left) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._screen)
            except OSError:
                return

    def write_now(self, data: bytes) -> None:
        """Write synchronously, after the event loop has ended; give up after ``READER_LIMIT_S``."""
        left = memoryview(data)
        room = select.poll()
        room.register(self._screen, select.POLLOUT)
        with contextlib.suppress(OSError):
            while left and room.poll(READER_LIMIT_S * 1000):
                left = left[_written(self._screen, left) :]


def _written(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        return 0


@contextmanager
def open_own_terminal(keys: int, screen: int) -> Iterator[OwnTerminal]:
    """Open the terminal behind two descriptors; restore it at the end."""
    # Opened again: O_NONBLOCK belongs to the open file, which the user's shell shares.
    with contextlib.ExitStack() as stack:
        opened = []
        for descriptor in (keys, screen):
            opened.append(_opened(descriptor))
            stack.callback(os.close, opened[-1])
        own = OwnTerminal(*opened)
        stack.callback(own.restore)
        yield own


def _opened(descriptor: int) -> int:
    try:
        return os.open(
            f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except OSError:
        # Another user's terminal, as after su: writing to it may block.
        return os.dup(descriptor)

"""The terminal in front of which somebody sits: raw for a while, and then exactly as it was."""

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
"""A window that takes nothing for so long, at the end of all, gets no more."""


class OwnTerminal:
    """Reads keys from ``keys``, and writes to ``screen``: descriptors of its own."""

    def __init__(self, keys: int, screen: int) -> None:
        self._keys = keys
        self._screen = screen
        self._before: list[Any] | None = None

    def size(self) -> tuple[int, int]:
        """Columns and rows of the window; zeros if nobody knows."""
        try:
            size = os.get_terminal_size(self._screen)
        except OSError:
            return 0, 0
        return size.columns, size.lines

    def make_raw(self) -> None:
        """Let every key through as it is pressed, and every byte out as it is written."""
        if self._before is None:
            self._before = termios.tcgetattr(self._keys)
        tty.setraw(self._keys, termios.TCSANOW)

    def restore(self) -> None:
        """Make it what it was before the first ``make_raw``."""
        if self._before is not None:
            # It may be gone with its window.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSANOW, self._before)

    async def read(self) -> bytes:
        """The next keys; nothing: the terminal is gone."""
        await trio.lowlevel.wait_readable(self._keys)
        try:
            return os.read(self._keys, READ_BYTES)
        except BlockingIOError:
            return await self.read()
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Write all of it; nothing if the terminal is gone, which who reads is told."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._screen, left) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._screen)
            except OSError:
                return

    def write_now(self, data: bytes) -> None:
        """Write at the end, when no task runs any more: not longer than somebody reads it."""
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
    """The terminal behind two descriptors, restored at the end.

    They are opened anew: what is set to not block would not block for the shell either, which
    shares the given ones.
    """
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
        # The terminal of another user, as after su: then writing may block.
        return os.dup(descriptor)

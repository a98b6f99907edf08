"""The own terminal before the app runs: the colour of its background, and keys typed ahead."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import time
import tty
from contextlib import suppress
from typing import Any, Self

ANSWER_S = 0.25
"""Seconds to wait for a terminal that answers nothing."""

READ_BYTES = 4_096
MAX_READ_BYTES = 64 * 1024

_ASK = b"\x1b]11;?\x1b\\\x1b[c"
"""The background, and then what every terminal answers: so a missing answer is known at once."""

_CLEAN = b"\x1b[?1000;1002;1003;1006;1015;1004;2004l\x1b[?7h\x1b[?1049l\x1b[?25h"
"""Mouse, focus and paste are not reported, and the main screen and the cursor are shown."""

_BACKGROUND = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)")
_ATTRIBUTES = re.compile(rb"\x1b\[\?[\d;]*c")
_ANSWERS = re.compile(rb"\x1b\]11;[^\x07\x1b]*(?:\x07|\x1b\\)|" + _ATTRIBUTES.pattern)

Color = tuple[int, int, int]

ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)
"""Signals that end the interface; the window is restored first."""


class QuietTerminal:
    """The own terminal until the app runs, as a context: it neither edits nor echoes keys.

    It is asked at the beginning, so that its answer is there when the imports are done.
    """

    def __init__(self) -> None:
        self._keys = sys.__stdin__.fileno()  # type: ignore[union-attr]
        self._screen = sys.__stderr__.fileno()  # type: ignore[union-attr]
        self._before: list[Any] | None = None
        self._asked_at = 0.0

    def __enter__(self) -> Self:
        for number in ENDINGS:  # until the app's event loop handles them
            signal.signal(number, _end)
        try:
            self._before = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys, termios.TCSANOW)
            os.write(self._screen, _ASK)
        except (termios.error, OSError):
            return self
        self._asked_at = time.monotonic()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:  # Textual did not leave by itself
            with suppress(OSError):
                os.write(self._screen, _CLEAN)
        if self._before is not None:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._keys, termios.TCSANOW, self._before)

    def answer(self) -> tuple[Color | None, str]:
        """Return the background and the keys that were typed ahead.

        The background has parts of 0 to 255, and is None if it is not known.
        """
        read = self._read() if self._asked_at else b""
        return background_of(read), typed_of(read)

    def _read(self) -> bytes:
        read, deadline = b"", self._asked_at + ANSWER_S
        while not _ATTRIBUTES.search(read) and len(read) < MAX_READ_BYTES:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self._keys], [], [], left_s)[0]:
                break
            try:
                more = os.read(self._keys, READ_BYTES)
            except OSError:
                break
            if not more:
                break
            read += more
        return read


def _end(number: int, _: object) -> None:
    """Unwind, so that the window is restored."""
    raise SystemExit(128 + number)


def is_gone(descriptor: int) -> bool:
    """Return whether the terminal behind a descriptor was closed; no signal reports it for sure."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def typed_of(read: bytes) -> str:
    """Return what is no answer of the terminal: keys."""
    return _ANSWERS.sub(b"", read).decode(errors="replace")


def background_of(answer: bytes) -> Color | None:
    """Return the colour in a terminal's answer."""
    found = _BACKGROUND.search(answer)
    if found is None:
        return None
    red, green, blue = (int(each, 16) * 255 // (16 ** len(each) - 1) for each in found.groups())
    return red, green, blue


def colors_of(environment: dict[str, str]) -> int:
    """Return the number of colours that a terminal shows, by its variables."""
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return 1 << 24
    return 256 if "256color" in environment.get("TERM", "") else 16

"""Questions to the own terminal before the app runs: the colour of its background."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
import tty

ANSWER_S = 0.25
"""Seconds to wait for a terminal that answers nothing."""

MAX_ANSWER_BYTES = 256

_ASK = b"\x1b]11;?\x1b\\\x1b[c"
"""The background, and then what every terminal answers: so a missing answer is known at once."""

_BACKGROUND = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)")
_ATTRIBUTES = re.compile(rb"\x1b\[\?[\d;]*c")


def ask_background() -> tuple[int, int, int] | None:
    """Return the colour behind the text, each part 0 to 255; None if it is not known."""
    keys, screen = sys.__stdin__.fileno(), sys.__stderr__.fileno()  # type: ignore[union-attr]
    try:
        before = termios.tcgetattr(keys)
    except termios.error:
        return None
    try:
        tty.setcbreak(keys, termios.TCSANOW)
        os.write(screen, _ASK)
        return background_of(_read_answer(keys))
    except OSError:
        return None
    finally:
        termios.tcsetattr(keys, termios.TCSANOW, before)


def _read_answer(keys: int) -> bytes:
    answer, deadline = b"", time.monotonic() + ANSWER_S
    while not _ATTRIBUTES.search(answer) and len(answer) < MAX_ANSWER_BYTES:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([keys], [], [], left_s)[0]:
            break
        answer += os.read(keys, MAX_ANSWER_BYTES)
    return answer


def background_of(answer: bytes) -> tuple[int, int, int] | None:
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

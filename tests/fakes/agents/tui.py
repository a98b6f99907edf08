"""A stand-in for an agent with its own terminal interface: ``tui.py reports|titles|silent [deaf]``.

It takes an order per line: ``work SECONDS``, ``ask TEXT`` (a permission, with a dot that blinks;
after the answer it works for a moment, after the answer ``Y`` until the next key),
``exit CODE``, ``child`` (a process in a session of its own). ``deaf`` ignores SIGTERM. It says its
state by status reports, by titles, or not at all.
"""

from __future__ import annotations

import base64
import os
import select
import signal
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    os.write(1, text.encode())


class Tui:
    """The interface; ``mode`` is how it says its state."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def state(self, report: str, glyph: str) -> None:
        if self.mode == "reports":
            say(f"\x1b]7501;state={report}:app=tui\x1b\\")
        elif self.mode == "titles":
            say(f"\x1b]0;{glyph} task\x07")

    def run(self) -> int:
        say("\x1b[2J\x1b[H")
        while True:
            self.state("idle", "✳")
            order, _, rest = self.line().partition(" ")
            match order:
                case "work":
                    self.work(float(rest))
                case "ask":
                    self.ask(rest)
                case "child":
                    subprocess.Popen(["sleep", "600"], start_new_session=True)
                case "exit":
                    return int(rest)

    def line(self) -> str:
        say("\r\n> ")
        read = b""
        while not read.endswith(b"\r"):
            key = os.read(0, 1)
            read += key
            say(key.decode(errors="replace"))
        return read.decode().strip()

    def work(self, seconds: float) -> None:
        self.state("working", "⠋")
        end = time.monotonic() + seconds
        count = 0
        while time.monotonic() < end:
            count += 1
            say(f"\r\nstep {count} ")
            time.sleep(0.1)

    def work_until_key(self) -> None:
        self.state("working", "⠋")
        count = 0
        while not select.select([0], [], [], 0.1)[0]:
            count += 1
            say(f"\r\nstep {count} ")
        os.read(0, 100)

    def ask(self, text: str) -> None:
        encoded = base64.b64encode(text.encode()).decode()
        self.state(f"blocked:kind=permission:msg={encoded}", "✋")
        say(f"\r\nAllow {text}? ")
        is_on = False
        while not select.select([0], [], [], 0.3)[0]:
            is_on = not is_on
            say("\b●" if is_on else "\b ")
        if os.read(0, 100) == b"Y":
            self.work_until_key()
        else:
            self.work(0.5)


@contextmanager
def raw() -> Iterator[None]:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    if "deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with raw():
        code = Tui(sys.argv[1]).run()
    sys.exit(code)

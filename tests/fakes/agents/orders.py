"""The orders of a prompt that are the same in every protocol: one on each line.

NOISE n       n bytes of standard error, and a line that is no JSON
ERROR text    a line of standard error
LINE n        a line of n bytes
RAW path      the bytes of a file, as they are
DRIP n rate   n texts of the agent, so many a second
HALF          a text with half of a surrogate pair
SPAWN how     start a child that ignores TERM: ``setsid``, ``double`` (its parent ends), ``bare``
              (no environment either); SAY its pid
STUBBORN      ignore TERM from now on
STAY          do not end at the end of the input
DEAF          read no input from now on, and never end
SILENT        close standard output, and never end
RUN command   run it in a shell, and SAY its output
DIE code      end with this exit code; ``DIE -9`` by a signal
PARENT        kill the parent process
WAIT s        do nothing for s seconds
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from tests.fakes.agents.wire import Wire


def images_in(content: Any) -> list[Any]:
    """Return the blocks of a prompt that are images."""
    return [] if isinstance(content, str) else [x for x in content if x["type"] == "image"]


def saw(media_type: str, data: str) -> str:
    """Return the text about an image in base64."""
    name = hashlib.sha256(base64.b64decode(data)).hexdigest()[:8]
    return f"saw {media_type} {name}"


class Conduct:
    """The orders of all protocols, and what they changed."""

    def __init__(self, wire: Wire, say: Callable[[str], None]) -> None:
        self._wire = wire
        self._say = say
        self.stays = False

    def follow(self, word: str, rest: str) -> bool:
        """Carry out an order; return whether it is one of these."""
        order = getattr(self, f"_{word.lower()}", None)
        if not word.isupper() or order is None:
            return False
        order(rest)
        return True

    def _noise(self, rest: str) -> None:
        os.write(2, b"x" * int(rest) + b"\n")
        self._wire.write(b"this is no JSON\n[1, 2]\n{broken\n\n\xff\xfe{}\n")

    def _error(self, rest: str) -> None:
        os.write(2, rest.encode() + b"\n")

    def _line(self, rest: str) -> None:
        left = int(rest)
        self._wire.write(b'{"type":"')
        while left > 0:
            self._wire.write(b"x" * min(left, 65_536))
            left -= 65_536
        self._wire.write(b'"}\n')

    def _raw(self, path: str) -> None:
        self._wire.write(Path(path).read_bytes())

    def _drip(self, rest: str) -> None:
        count, rate = map(int, rest.split())
        begin = time.monotonic()
        for number in range(count):
            self._say(f"event {number}")
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))

    def _half(self, _: str) -> None:
        self._say("half \ud800")

    def _spawn(self, how: str) -> None:
        reading, writing = os.pipe()
        if os.fork() == 0:
            if how == "double" and os.fork():
                os._exit(0)
            os.setsid()
            if how == "bare":
                os.set_inheritable(writing, True)
                code = _STUBBORN.format(descriptor=writing)
                os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code], {})
            _stay_stubborn(writing)
        if how == "double":
            os.wait()
        self._say(f"child {os.read(reading, 20).decode()}")

    def _stubborn(self, _: str) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _stay(self, _: str) -> None:
        self.stays = True

    def _deaf(self, _: str) -> NoReturn:
        _sleep_forever()

    def _silent(self, _: str) -> NoReturn:
        os.close(1)
        _sleep_forever()

    def _run(self, command: str) -> None:
        done = subprocess.run(
            ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        self._say(f"ran {done.returncode}: {(done.stdout + done.stderr).decode().strip()}")

    def _die(self, rest: str) -> None:
        code = int(rest or "0")
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code)

    def _wait(self, rest: str) -> None:
        time.sleep(float(rest))

    def _parent(self, _: str) -> None:
        os.kill(os.getppid(), signal.SIGKILL)


_STUBBORN = (
    "import os, signal, time; signal.signal(15, signal.SIG_IGN);"
    " os.write({descriptor}, str(os.getpid()).encode()); time.sleep(1000)"
)


def _stay_stubborn(writing: int) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(writing, str(os.getpid()).encode())
    _sleep_forever()


def _sleep_forever() -> NoReturn:
    while True:
        time.sleep(1000)


def orders_of(text: str) -> list[tuple[str, str]]:
    """Return the orders of a prompt: the first word of each line, and the rest."""
    pairs = [line.strip().partition(" ") for line in text.splitlines() if line.strip()]
    return [(word, rest) for word, _, rest in pairs]


COMMANDS: list[dict[str, Any]] = [
    {"name": "compact", "description": "Free up context", "argumentHint": "[instructions]"},
    {"name": "clear", "description": "Start anew", "aliases": ["reset", "new"]},
    {"name": "context", "description": "Show the context"},
    {"name": "yolo", "description": "Ask no more"},
    {"name": "__internal", "description": "Hidden"},
]
"""The commands that a stand-in announces."""


def command_in(blocks: list[str]) -> str:
    """Return the name of the command that the first of these blocks is; empty: it is none.

    It is trimmed first, as some agents do.
    """
    text = "".join(blocks[:1]).strip()
    return text.split()[0].removeprefix("/") if text.startswith("/") else ""


def end(conduct: Conduct) -> NoReturn:
    """End at the end of the input, unless the prompt said otherwise."""
    if conduct.stays:
        _sleep_forever()
    os._exit(int(os.environ.get("STAND_IN_EXIT", "0")))


def flood(rest: str) -> Iterator[str]:
    """Yield the texts of a flood: "event 0", "event 1", …"""
    count, _, size = rest.partition(" ")
    for number in range(int(count)):
        yield f"event {number}".ljust(int(size or "0"), ".")


def environment_text() -> str:
    """Return the environment and the arguments, for tests of what they must not hold."""
    return json.dumps({"environ": dict(os.environ), "argv": sys.argv})

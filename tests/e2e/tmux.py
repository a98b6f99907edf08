"""A person in front of tmux: keys pressed there, the screen looked at until it shows a text."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.harness import GUARD_S, DaemonProcess

LOOK_S = 0.05


class Tmux:
    """A tmux server of its own with one window, in which ``command`` runs."""

    def __init__(
        self,
        socket: Path,
        command: str,
        *,
        environment: Mapping[str, str],
        directory: Path,
        cols: int = 110,
        rows: int = 32,
    ) -> None:
        self._socket = socket
        self._environment = {**environment, "TERM": "screen-256color", "LC_ALL": "C.UTF-8"}
        size = ("-x", str(cols), "-y", str(rows))
        self.do("-f", "/dev/null", "new-session", "-d", *size, "-c", str(directory), command)

    def do(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=True,
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names; text is typed."""
        self.do("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type characters as they are."""
        self.do("send-keys", "-l", text)

    def screen(self) -> str:
        """What the window shows."""
        return self.do("capture-pane", "-p")

    def waits(self, is_there: Callable[[str], bool], what: str) -> str:
        """Look until the screen is as wanted; gives it."""
        deadline = time.monotonic() + GUARD_S
        while not is_there(shown := self.screen()):
            assert time.monotonic() < deadline, f"{what}:\n{shown}"
            time.sleep(LOOK_S)
        return shown

    def shows(self, *texts: str) -> str:
        """Wait until the screen shows all of these texts; gives it."""
        return self.waits(lambda shown: all(each in shown for each in texts), f"no {texts}")

    def hides(self, text: str) -> str:
        """Wait until the screen shows the text no more."""
        return self.waits(lambda shown: text not in shown, f"still {text!r}")

    def pid(self) -> int:
        """The process of the window."""
        return int(self.do("display-message", "-p", "#{pane_pid}"))

    def close(self) -> None:
        subprocess.run(
            ["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False
        )


@contextmanager
def interface(
    daemon: DaemonProcess, socket: Path, *words: str, cols: int = 110, rows: int = 32
) -> Iterator[Tmux]:
    """A window with ``aegis-actors tui``; the shell in it tells the end."""
    command = shlex.join([*daemon.program, *words, "tui"])
    window = Tmux(
        socket,
        f"{command}; echo left with $?; exec sleep 1000",
        environment={**os.environ, **daemon.environment, "COLORTERM": "truecolor"},
        directory=daemon.root,
        cols=cols,
        rows=rows,
    )
    try:
        yield window
    finally:
        window.close()

"""``aegis-actors term run`` as a process of its own, whose output is read as it comes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.chaos.real.scratch import wait_readable
from tests.e2e.harness import GUARD_S, LiveTerminal


class Ended(NamedTuple):
    """How it ended: everything that it printed, and its exit code."""

    code: int
    out: str
    err: str


class RunProcess:
    """``term run WORDS``; ``out`` and ``err`` are what was read of it until now."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.out = b""
        self.err = b""

    def wait_for(self, text: str) -> None:
        """Wait until its standard output has this."""
        assert self.process.stdout is not None
        while text.encode() not in self.out:
            self.out += _more(self.process.stdout.fileno(), self.out)

    def wait_for_error(self, text: str) -> None:
        """Wait until its standard error has this."""
        assert self.process.stderr is not None
        while text.encode() not in self.err:
            self.err += _more(self.process.stderr.fileno(), self.err)

    def pass_by(self, last: str) -> int:
        """Read standard output up to this and keep nothing; gives how many bytes that were."""
        assert self.process.stdout is not None
        size, tail = 0, b""
        while not tail.endswith(last.encode()):
            data = _more(self.process.stdout.fileno(), tail)
            size += len(data)
            tail = (tail + data)[-len(last) :]
        return size

    def peak_memory_kib(self) -> int:
        """How much memory it had at most, of its own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    def interrupt(self) -> None:
        """Press Ctrl-C, as a window sends it."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> Ended:
        """Wait until it has ended."""
        out, err = self.process.communicate(timeout=GUARD_S)
        self.out, self.err = self.out + out, self.err + err
        return Ended(self.process.returncode, self.out.decode(), self.err.decode())


def _more(descriptor: int, until_now: bytes) -> bytes:
    wait_readable(descriptor)
    data = os.read(descriptor, 65_536)
    assert data, f"it ended after {until_now[-2000:]!r}"
    return data


@contextmanager
def running(terminal: LiveTerminal, *words: str) -> Iterator[RunProcess]:
    """``term run`` with these words: options, or else the command, on ``terminal``.

    The last word is the command.
    """
    *options, command = words
    process = subprocess.Popen(
        [*terminal.daemon.program, "term", "run", *options, terminal.name, command],
        env=terminal.daemon.environment,
        cwd=terminal.daemon.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield RunProcess(process)
        finally:
            if process.poll() is None:
                process.kill()

"""``LiveRun`` against a scripted daemon, for moments that a real one meets by chance."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from select import POLLIN
from typing import Any

import pytest

from aegis.cli.printing import standard_streams
from aegis.cli.printing.run import INTERRUPTED, TERMINATED, LiveRun
from aegis.client.nonblocking_line import Response

BEGUN = {"seq": 3, "raw_start": 0, "end": None, "needs_input": None, "timed_out": False}
OUTPUT = {"text": "y\n" * 100, "next_cursor": 200, "running": True, "dropped": 0}
GUARD_S = 20.0


class ScriptedDaemon:
    """Answers each request at once; ``signals`` reach this process with the first output."""

    def __init__(self, *signals: signal.Signals) -> None:
        self.commands: list[str] = []
        self._signals = [*signals]
        self._answers: list[Response] = []
        self._readable, self._writing = os.pipe()
        os.write(self._writing, b"!")
        self.events = POLLIN
        self.on_interrupt: Callable[[], None] = lambda: None

    @contextmanager
    def connect_nonblocking(self) -> Iterator[ScriptedDaemon]:
        yield self
        os.close(self._readable)
        os.close(self._writing)

    def with_handle(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    def fileno(self) -> int:
        return self._readable

    def send(self, command: str, arguments: dict[str, Any]) -> int:
        self.commands.append(command)
        if command == "term_signal":
            self.on_interrupt()
        results = {"term_run": BEGUN, "term_list": {"result": []}, "term_output": OUTPUT}
        if command in results:
            self._answers.append(Response(len(self.commands), results[command], None))
        return len(self.commands)

    def cancel(self, number: int) -> None:
        del number

    def push(self) -> None:
        pass

    def exchange(self) -> list[Response]:
        answers, self._answers = self._answers, []
        if "term_output" in self.commands:
            for each in self._signals:
                os.kill(os.getpid(), each)
            self._signals.clear()
        return answers


@contextmanager
def full_pipe() -> Iterator[threading.Event]:
    """Give standard output a pipe that takes nothing more; yield whether it was read after all.

    It is read after ``GUARD_S``, so that no test hangs.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    was_read = threading.Event()

    def read() -> None:
        was_read.set()
        os.read(reading, 1 << 20)

    guard = threading.Timer(GUARD_S, read)
    guard.start()
    stream = standard_streams._writer(writing, sys.stdout)
    # In the test itself: a fixture would run before pytest replaces standard output.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield was_read
    guard.cancel()
    os.close(reading)
    with contextlib.suppress(OSError):
        stream.close()
    os.close(writing)


@pytest.mark.parametrize(
    ("signals", "code"),
    [((signal.SIGINT, signal.SIGINT), INTERRUPTED), ((signal.SIGTERM,), TERMINATED)],
    ids=["a second Ctrl-C", "SIGTERM"],
)
def test_a_signal_right_before_a_write_that_blocks_ends_the_run(
    signals: tuple[signal.Signals, ...], code: int
) -> None:
    daemon: Any = ScriptedDaemon(*signals)
    with full_pipe() as was_read:
        assert LiveRun(daemon, "build", "yes", None).run() == code
    assert not was_read.is_set()


def test_a_ctrl_c_right_before_a_write_that_blocks_interrupts_the_command() -> None:
    daemon: Any = ScriptedDaemon(signal.SIGINT)
    daemon.on_interrupt = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with full_pipe() as was_read:
        assert LiveRun(daemon, "build", "yes", None).run() == TERMINATED
    assert daemon.commands[-1] == "term_signal"
    assert not was_read.is_set()

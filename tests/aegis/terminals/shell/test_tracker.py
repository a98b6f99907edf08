"""What a tracker makes of what a PTY prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.journal.raw_log import RawLog
from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.hooks.submission import PROBE_KEY
from aegis.terminals.shell.tracker import Tracker

ECHO = PROBE_KEY.replace(b"\x1b", b"^[")


@attrs.define
class QuietShell:
    """The shell behind a tracker, which does nothing; ``written`` is what was sent to it."""

    written: list[bytes] = attrs.field(factory=list)

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def look_again_after(self, seconds: float) -> None:
        pass

    def hook_answered(self) -> None:
        pass

    def working_directory(self) -> str | None:
        return "/"

    def waits_for_keys(self) -> bool:
        return False

    def is_in_front(self) -> bool:
        return True


@pytest.fixture
def raw_log(tmp_path: Path) -> Iterator[RawLog]:
    opened = RawLog.open(tmp_path)
    yield opened
    opened.close()


def mark(kind: str, number: int, rest: str = "") -> bytes:
    return f"\x1b]133;{kind};n=0123456789abcdef;q={number}{rest}\x07".encode()


async def test_the_echo_of_a_probe_is_in_no_output_of_a_line_typed_ahead(
    raw_log: RawLog, tmp_path: Path
) -> None:
    """The shell had begun the typed line when the probe key came, so the tty echoed the key."""
    shell, told = QuietShell(), list[Any]()
    adapter = ShellAdapter(secret=b"0123456789abcdef", argv=("bash",), directory=tmp_path)
    tracker = Tracker("one", adapter, raw_log, shell, told.append)
    tracker.feed(mark("D;0", 1) + mark("B", 1) + mark("C", 2, ";s=0"))
    tracker.keys("human", b"echo typed\r")
    tracker.feed(mark("D;0", 3) + mark("B", 3))
    tracker.submit(msg.Submit(call=1, cmd="make", writer="agent:ada"))
    assert shell.written[-1] == PROBE_KEY
    tracker.feed(mark("C", 4) + ECHO + b"typed\r\n" + mark("D;0", 5) + mark("B", 5))
    ended = [news for news in told if isinstance(news, msg.CommandEnded)]
    assert ended[-1].output.text == "typed\n"
    tracker.feed(mark("P;k=l", 5, ";l=0"))
    assert b"make" in shell.written[-1]
    tracker.feed(mark("C", 6, ";s=1") + ECHO + mark("D;0", 7, ";s=1"))
    ended = [news for news in told if isinstance(news, msg.CommandEnded)]
    assert ended[-1].output.text == ECHO.decode(), "a program may print such text"


def tracker_at_prompt(raw_log: RawLog, tmp_path: Path) -> tuple[Tracker, QuietShell, list[Any]]:
    """Return a tracker whose shell may still keep a Ctrl-C, its shell and its notifications."""
    shell, told = QuietShell(), list[Any]()
    adapter = ShellAdapter(secret=b"0123456789abcdef", argv=("bash",), directory=tmp_path)
    tracker = Tracker("one", adapter, raw_log, shell, told.append)
    tracker.feed(mark("D;0", 1) + mark("B", 1))
    tracker.keys("human:ann", b"\x03")
    return tracker, shell, told


async def test_a_late_report_does_not_submit_behind_a_line_typed_since(
    raw_log: RawLog, tmp_path: Path
) -> None:
    tracker, shell, told = tracker_at_prompt(raw_log, tmp_path)
    tracker.submit(msg.Submit(call=1, cmd="make", writer="agent:ada"))
    tracker.keys("agent:bob", b"echo bob\r")
    tracker.look_again()
    assert shell.written == [b"\x03", PROBE_KEY, b"echo bob\r", PROBE_KEY]
    tracker.feed(mark("P;k=l", 1, ";l=0"))
    assert told[-1] == msg.SubmissionRefused(call=1, at_prompt=True)
    assert shell.written[-1] == PROBE_KEY, "nothing was submitted"
    tracker.feed(mark("C", 2, ";s=0") + b"bob\r\n" + mark("D;0", 3, ";s=0") + mark("B", 3))
    [begun] = [news for news in told if isinstance(news, msg.CommandStarted)]
    assert (begun.call, begun.writer) == (None, "agent:bob")


async def test_a_ctrl_c_behind_the_probe_costs_another_probe_and_no_refusal(
    raw_log: RawLog, tmp_path: Path
) -> None:
    tracker, shell, told = tracker_at_prompt(raw_log, tmp_path)
    tracker.submit(msg.Submit(call=1, cmd="make", writer="agent:ada"))
    tracker.keys("agent:bob", b"\x03")
    tracker.feed(mark("P;k=l", 1, ";l=0"))
    assert shell.written[-1] == PROBE_KEY
    tracker.feed(mark("P;k=l", 1, ";l=0"))
    assert b"make" in shell.written[-1]
    assert not any(isinstance(news, msg.SubmissionRefused) for news in told)


async def test_an_interrupt_of_a_command_that_has_just_ended_may_have_dropped_a_line(
    raw_log: RawLog, tmp_path: Path
) -> None:
    """Without a probe a line typed meanwhile could be taken for the submission."""
    shell, told = QuietShell(), list[Any]()
    adapter = ShellAdapter(secret=b"0123456789abcdef", argv=("bash",), directory=tmp_path)
    tracker = Tracker("one", adapter, raw_log, shell, told.append)
    tracker.feed(mark("D;0", 1) + mark("B", 1) + mark("C", 2, ";s=0"))
    tracker.signal("human:ann", lambda: True, is_interrupt=True)
    tracker.feed(mark("D;0", 3) + mark("B", 3))
    tracker.keys("agent:bob", b"echo bob\r")
    tracker.feed(mark("D;130", 4) + mark("B", 4))
    tracker.submit(msg.Submit(call=1, cmd="make", writer="agent:ada"))
    assert shell.written[-1] == PROBE_KEY

"""When the line editor is asked, and what of its answer is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from aegis.terminals.hooks.bash import BashAdapter
from aegis.terminals.hooks.submission import PROBE_KEY
from aegis.terminals.parse.boundaries import Boundaries
from aegis.terminals.parse.osc133 import Mark
from aegis.terminals.shell.typed_line import ASK_AFTER_S, HOLD_S, MAX_WAIT_S, EmptyLineQuery

ADAPTER = BashAdapter(secret=b"s3cret", argv=("bash",), directory=Path("/nonexistent"))
REPORT = b"\x1b]133;P;k=l;n=s3cret;q=1;l=0\x07"
REDRAW = b"\r\x1b[K\r" + REPORT + b"\r\x1b]133;A;n=s3cret;q=1\x07$ \x1b]133;B;n=s3cret;q=1\x07"


class Shell:
    """A shell at its prompt, in the place of its actor: notes what is written, and when."""

    def __init__(self) -> None:
        self.waits = True
        self.written: list[tuple[float, bytes]] = []
        self.timers: list[float] = []
        self.boundaries = Boundaries()
        self.boundaries.mark(Mark(kind="B", number=1))
        there: Any = self
        self.question = EmptyLineQuery(there, lambda: self.boundaries, lambda: ADAPTER)

    def write(self, data: bytes) -> None:
        self.written.append((trio.current_time(), data))

    def look_again_after(self, seconds: float) -> None:
        self.timers.append(trio.current_time() + seconds)

    def waits_for_keys(self) -> bool:
        return self.waits

    def type(self, keys: bytes) -> None:
        self.boundaries.keys("human", keys)
        self.question.typed()

    def report(self, length: int) -> None:
        self.boundaries.mark(Mark(kind="P", number=1, params={"k": "l", "l": str(length)}))
        self.question.answered()

    async def pass_time(self, seconds: float) -> None:
        """Let so many seconds pass, and each timer go off in its time."""
        until = trio.current_time() + seconds
        while self.timers and min(self.timers) <= until:
            self.timers.sort()
            await trio.sleep_until(self.timers.pop(0))
            self.question.look()
        await trio.sleep_until(until)


@pytest.fixture
def shell() -> Shell:
    return Shell()


async def test_a_line_is_asked_about_once_after_its_keys_have_rested(
    shell: Shell, autojump_clock: MockClock
) -> None:
    shell.type(b"x")
    await shell.pass_time(10)
    assert shell.written == []
    shell.type(b"\x7f")
    last_key = trio.current_time()
    await shell.pass_time(60)
    [(asked_at, keys)] = shell.written
    assert keys == PROBE_KEY
    assert asked_at - last_key == pytest.approx(ASK_AFTER_S)


async def test_while_keys_come_there_is_one_timer_and_no_question(
    shell: Shell, autojump_clock: MockClock
) -> None:
    for _ in range(20):
        shell.type(b"x\x7f")
        assert len(shell.timers) == 1
        await shell.pass_time(ASK_AFTER_S / 2)
    assert shell.written == []


async def test_a_report_of_text_is_followed_by_a_question_only_after_more_keys(
    shell: Shell, autojump_clock: MockClock
) -> None:
    shell.type(b"\x1b[A")
    await shell.pass_time(1)
    shell.report(5)
    assert shell.boundaries.typing == "human"
    await shell.pass_time(60)
    assert len(shell.written) == 1
    shell.type(b"\x15")
    await shell.pass_time(1)
    shell.report(0)
    assert len(shell.written) == 2
    assert shell.boundaries.typing is None


async def test_an_answer_from_before_the_last_key_frees_nothing(
    shell: Shell, autojump_clock: MockClock
) -> None:
    shell.type(b"x\x7f")
    await shell.pass_time(1)
    shell.type(b"\x1b[D")
    shell.report(0)
    assert shell.boundaries.typing == "human"
    await shell.pass_time(1)
    assert len(shell.written) == 2


async def test_a_shell_that_cannot_be_asked_is_looked_at_less_and_less_often(
    shell: Shell, autojump_clock: MockClock
) -> None:
    shell.waits = False
    shell.type(b"x\x7f")
    await shell.pass_time(600)
    assert shell.written == []
    shell.waits = True
    await shell.pass_time(MAX_WAIT_S)
    assert len(shell.written) == 1


async def test_nobody_is_asked_below_the_prompt_after_a_completion(
    shell: Shell, autojump_clock: MockClock
) -> None:
    shell.type(b"\t\t")
    shell.question.printed(b"\r\nDisplay all 1541 possibilities? (y or n)")
    await shell.pass_time(60)
    assert shell.written == []
    shell.question.drawn()
    await shell.pass_time(MAX_WAIT_S)
    assert len(shell.written) == 1


async def test_what_bash_draws_on_a_question_is_not_shown_however_it_comes(
    shell: Shell, autojump_clock: MockClock
) -> None:
    for cut in range(1, len(REDRAW)):
        shell.type(b"x\x7f")
        await shell.pass_time(ASK_AFTER_S)
        shown = shell.question.without_redraw(b"x\x08" + REDRAW[:cut])
        shown += shell.question.without_redraw(REDRAW[cut:] + b"y")
        assert shown == b"x\x08" + REPORT + b"y"
        shell.report(0)


async def test_output_that_is_no_redraw_is_shown_after_a_moment(
    shell: Shell, autojump_clock: MockClock
) -> None:
    assert shell.question.without_redraw(b"before") == b"before"
    shell.type(b"x\x7f")
    await shell.pass_time(ASK_AFTER_S)
    assert shell.question.without_redraw(b"a job ") == b""
    assert shell.question.overdue() == b""
    await shell.pass_time(HOLD_S)
    assert shell.question.overdue() == b"a job "
    assert shell.question.without_redraw(b"prints") == b"prints"

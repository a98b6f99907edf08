"""The watch over a program: its output, keys and checks become verdicts, and requests get them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from actors import Reply
from aegis.errors import Busy
from aegis.journal.raw_log import RawLog
from aegis.lifecycle.feed import FollowProgram, ProgramNews, TakeHook
from aegis.lifecycle.hooks import read_hook
from aegis.lifecycle.states import Evidence, State
from aegis.processes.capture import CapturedOutput
from aegis.processes.input_wait import Foreground
from aegis.terminals import messages as msg
from aegis.terminals.output.program_watch import MAX_FOLLOWERS, ProgramWatch
from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.screen.live import LiveScreen

NOTHING = CapturedOutput(text="", total_bytes=0, truncated=False)


def follow(after: int | None = None) -> FollowProgram:
    return FollowProgram(name="t", idle_s=5.0, stale_s=60.0, after=after)


@attrs.define
class Stage:
    """A terminal's screen and watch, and the number of the newest verdict that was seen."""

    watch: ProgramWatch
    screen: LiveScreen
    log: RawLog
    scanner: SequenceScanner = attrs.field(factory=SequenceScanner)
    seen: int | None = None

    def prints(self, data: bytes) -> None:
        cursor = self.log.position
        self.log.write(data)
        sequences = self.scanner.feed(data, cursor)
        for each in sequences:
            self.screen.modes.follow(each)
        self.screen.output(self.log.position, sequences)
        if self.watch.is_running:
            self.watch.output(sequences)

    async def news(self) -> ProgramNews:
        """Return the next verdict; the clock jumps to it."""
        reply: Reply[ProgramNews] = Reply()
        self.watch.follow(follow(self.seen), reply)
        found = await reply.wait()
        self.seen = found.number
        return found

    async def until(self, state: State) -> ProgramNews:
        with trio.fail_after(1000):
            while True:
                news = await self.news()
                if news.verdict is not None and news.verdict.state is state:
                    return news

    def starts(self, raw_start: int = 7) -> None:
        self.watch.handle_news(
            msg.CommandStarted(
                shell="s",
                call=1,
                cmd="agent",
                writer="human",
                cwd="/",
                started_at="",
                moment_s=trio.current_time(),
                raw_start=raw_start,
            )
        )

    def ends(self, code: int | None) -> None:
        self.watch.handle_news(
            msg.CommandEnded(
                raw_start=7,
                exit=code,
                end="exited",
                typed=None,
                incomplete=False,
                output=NOTHING,
                finished_at="",
                moment_s=trio.current_time(),
                raw_end=self.log.position,
            )
        )


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    log = RawLog.open(tmp_path)
    async with trio.open_nursery() as nursery:
        screen = LiveScreen(log, 24, 80, nursery.start_soon)
        stage = Stage(ProgramWatch(screen, nursery.start_soon), screen, log)
        await stage.news()
        yield stage
        nursery.cancel_scope.cancel()
    log.close()


async def test_a_terminal_without_a_command_has_no_verdict(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    reply: Reply[ProgramNews] = Reply()
    stage.watch.follow(follow(), reply)
    assert await reply.wait() == ProgramNews(number=0)


async def test_the_verdict_names_the_command_that_began(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts(raw_start=41)
    news = await stage.news()
    assert news.raw_start == 41
    assert news.verdict is not None
    assert news.verdict.state is State.STARTING


async def test_a_program_that_prints_runs_and_after_the_idle_time_needs_input(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts()
    stage.prints(b"hello\r\n")
    await stage.until(State.RUNNING)
    began = trio.current_time()
    news = await stage.until(State.NEEDS_INPUT)
    assert news.verdict is not None
    assert news.verdict.source is Evidence.SILENCE
    assert 4.5 < trio.current_time() - began < 6


async def test_a_blinking_dot_is_no_work(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts()
    stage.prints(b"Allow? \xe2\x97\x8f")
    await stage.until(State.RUNNING)

    async with trio.open_nursery() as nursery:

        async def blink() -> None:
            while True:
                for dot in (b"\b ", b"\b\xe2\x97\x8f"):
                    await trio.sleep(0.6)
                    stage.prints(dot)

        nursery.start_soon(blink)
        await stage.until(State.NEEDS_INPUT)
        await stage.until(State.STALE)
        nursery.cancel_scope.cancel()


async def test_a_report_counts_at_once_and_an_answer_ends_it(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts()
    stage.prints(b"\x1b]7501;state=blocked:kind=permission:msg=cm0gLXJm\x07")
    began = trio.current_time()
    news = await stage.until(State.NEEDS_INPUT)
    assert trio.current_time() == began
    assert news.verdict is not None
    assert news.verdict.source is Evidence.REPORT
    assert news.verdict.need is not None
    assert news.verdict.need.text == "rm -rf"
    stage.watch.typed(b"1")
    await stage.until(State.RUNNING)


async def test_a_hook_adds_its_tool_and_is_refused_without_a_program(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    hook = read_hook(
        b'{"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash", '
        b'"tool_input": {"command": "make"}}'
    )
    assert hook is not None
    refused: Reply[bool] = Reply()
    stage.watch.take_hook(TakeHook(name="t", hook=hook), refused)
    assert await refused.wait() is False
    stage.starts()
    taken: Reply[bool] = Reply()
    stage.watch.take_hook(TakeHook(name="t", hook=hook), taken)
    assert await taken.wait() is True
    news = await stage.until(State.NEEDS_INPUT)
    assert news.verdict is not None
    assert news.verdict.need is not None
    assert news.verdict.need.tool == "Bash"


async def test_the_end_of_the_command_is_the_exit_of_the_program(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts()
    stage.prints(b"bye\r\n")
    stage.ends(3)
    await stage.until(State.EXITED)


async def test_a_second_command_is_judged_anew_with_its_timer(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts(raw_start=7)
    stage.prints(b"\x1b]7501;state=working\x07")
    await stage.until(State.RUNNING)
    stage.ends(0)
    await stage.until(State.EXITED)
    await trio.sleep(100)  # the timer of the first one runs out in between
    stage.starts(raw_start=99)
    news = await stage.until(State.NEEDS_INPUT)
    assert news.raw_start == 99
    assert news.verdict is not None
    assert news.verdict.source is Evidence.SILENCE


async def test_a_command_whose_end_was_lost_ends_with_the_next_one(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts(raw_start=7)
    stage.prints(b"x")
    await stage.until(State.RUNNING)
    stage.starts(raw_start=8)
    news = await stage.until(State.STARTING)
    assert news.raw_start == 8


async def test_a_flood_of_titles_costs_one_answer_per_change(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts()
    await stage.news()
    for _ in range(1000):
        stage.prints(b"\x1b]0;\xe2\xa0\x8b work\x07")
    news = await stage.news()
    assert news.verdict is not None
    assert news.verdict.source is Evidence.TITLE
    assert news.number < 5


async def test_the_number_of_waiting_requests_is_bounded(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    for _ in range(MAX_FOLLOWERS):
        stage.watch.follow(follow(stage.seen), Reply())
    with pytest.raises(Busy, match="16 requests follow the program of 't' already"):
        stage.watch.follow(follow(stage.seen), Reply())


async def test_a_check_right_after_a_prompt_is_not_refuted_by_that_prompt(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    stage.starts()
    stage.prints(b"Password: ")
    await trio.sleep(0.1)
    stage.watch.checked(
        Foreground(group=9, program="sudo", reader="sudo", is_canonical=True, echoes=False),
        0.1,
    )
    asked = await stage.until(State.NEEDS_INPUT)
    assert asked.verdict is not None
    assert asked.verdict.source is Evidence.TTY
    stale = await stage.news()
    assert stale.verdict is not None
    assert stale.verdict.state is State.STALE

"""Long polls of output on a clock that jumps, over a real raw log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from actors import Reply
from aegis.errors import Busy, InvalidRequest, StorageError, Unavailable
from aegis.journal.raw_log import RawLog
from aegis.protocol.output import OutputChunk, Progress
from aegis.terminals.messages import CommandKey, FetchLine, FetchOutput, FetchPrinted, PrintedSoFar
from aegis.terminals.output.readers import COALESCE_S, MAX_READERS, OutputReaders
from aegis.terminals.output.shell_output import CommandOutput
from aegis.terminals.shell.notifications import NotificationLog
from tests.aegis.terminals.samples import ended, started

Clock = trio.testing.MockClock


BEGUN = CommandKey(shell="sh", call=7, began_at=2, raw_start=2)
STARTED, ENDED = started(2, 7), ended(2, 5)


class Shell:
    """What runs: a line that was printed last."""

    is_running = True
    submitted: int | None = None

    def __init__(self) -> None:
        self.printed = CommandOutput()

    line = ""

    def newest_line(self) -> str:
        return self.line


class Output:
    """A raw log that is written to, and its readers."""

    def __init__(self, directory: Path, nursery: trio.Nursery) -> None:
        self.log = RawLog.open(directory)
        self.shell: Shell | None = Shell()
        self.flushes = 0
        self.news = NotificationLog()
        self._began_at = trio.current_time()
        self.readers = OutputReaders(
            "build",
            self.log,
            flush=self._flush,
            tracker=lambda: self.shell,
            progress_of=self.news.progress_of,
            start_soon=nursery.start_soon,
        )

    @property
    def seconds(self) -> float:
        """How much time has passed."""
        return round(trio.current_time() - self._began_at, 6)

    def _flush(self) -> None:
        self.flushes += 1
        self.log.flush()

    def prints(self, data: bytes) -> None:
        self.log.write(data)
        self.readers.came.notify()

    def poll(self, cursor: int | None, wait_s: float = 100.0) -> Reply[OutputChunk]:
        reply: Reply[OutputChunk] = Reply()
        self.readers.take(FetchOutput(cursor=cursor, max_bytes=1000, wait_s=wait_s), reply)
        return reply

    def tells(self, news: object) -> None:
        """The front is told this, as the shell's actor does it."""
        self.news.keep(news)
        self.readers.handle_news(news)

    def poll_command(self, cursor: int = 2, wait_s: float = 100.0) -> Reply[OutputChunk]:
        reply: Reply[OutputChunk] = Reply()
        request = FetchOutput(cursor=cursor, max_bytes=1000, wait_s=wait_s, command=BEGUN)
        self.readers.take(request, reply)
        return reply

    def follow(self, after: int) -> Reply[Progress]:
        reply: Reply[Progress] = Reply()
        self.readers.take(FetchLine(after=after), reply)
        return reply


@pytest.fixture
async def output(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Output]:
    output = Output(tmp_path, nursery)
    yield output
    output.readers.close()
    await trio.testing.wait_all_tasks_blocked()
    output.log.close()


async def test_what_is_there_is_given_at_once_and_is_in_the_file(
    output: Output, autojump_clock: Clock
) -> None:
    output.prints(b"hello")
    chunk = await output.poll(0).wait()
    assert (chunk.text, chunk.next_cursor, chunk.running) == ("hello", 5, True)
    assert output.seconds == 0
    assert output.log.path.read_bytes() == b"hello"


async def test_a_burst_is_one_answer(output: Output, autojump_clock: Clock) -> None:
    reply = output.poll(0)
    await trio.sleep(1)
    output.prints(b"a")
    await trio.sleep(COALESCE_S / 2)
    output.prints(b"b")
    assert (await reply.wait()).text == "ab"
    assert output.seconds == 1 + COALESCE_S


async def test_nothing_comes_and_the_time_is_up(output: Output, autojump_clock: Clock) -> None:
    output.prints(b"old")
    chunk = await output.poll(3, wait_s=7).wait()
    assert (chunk.text, chunk.cursor, chunk.next_cursor) == ("", 3, 3)
    assert output.seconds == 7


async def test_half_a_sequence_is_waited_on(output: Output, autojump_clock: Clock) -> None:
    reply = output.poll(0, wait_s=10)
    output.prints(b"\x1b[3")
    await trio.sleep(5)
    assert not reply.is_settled
    output.prints(b"1mred")
    assert (await reply.wait()).text == "red"


async def test_who_reads_from_now_sees_only_what_comes(
    output: Output, autojump_clock: Clock
) -> None:
    output.prints(b"old")
    reply = output.poll(None)
    await trio.sleep(1)
    output.prints(b"new")
    chunk = await reply.wait()
    assert (chunk.text, chunk.cursor) == ("new", 3)


async def test_of_one_command_nothing_behind_its_end_is_given(
    output: Output, autojump_clock: Clock
) -> None:
    output.prints(b"$ ")
    output.tells(STARTED)
    reply = output.poll_command()
    await trio.sleep(1)
    output.prints(b"out")
    output.tells(ENDED)
    output.prints(b"$ next")
    chunk = await reply.wait()
    assert (chunk.text, chunk.next_cursor, chunk.running) == ("out", 5, False)
    again = await output.poll_command(5).wait()
    assert (again.text, again.next_cursor, again.running) == ("", 5, False)
    assert output.seconds <= 1 + COALESCE_S


async def test_who_waits_is_answered_at_the_end_of_its_command_at_once(
    output: Output, autojump_clock: Clock
) -> None:
    output.prints(b"$ out")
    output.tells(STARTED)
    reply = output.poll_command(5)
    other = output.poll(5)
    await trio.sleep(3)
    output.tells(ENDED)
    chunk = await reply.wait()
    assert (chunk.text, chunk.next_cursor, chunk.running) == ("", 5, False)
    assert output.seconds == 3
    assert not other.is_settled


async def test_what_seems_to_be_the_prompt_is_not_given_unless_the_command_goes_on(
    output: Output, autojump_clock: Clock
) -> None:
    assert output.shell is not None
    output.prints(b"$ out")
    output.tells(STARTED)
    output.shell.printed.suspend(5)
    output.prints(b"> ")
    assert (await output.poll_command().wait()).text == "out"
    waiting = await output.poll_command(5, wait_s=3).wait()
    assert (waiting.text, waiting.running, output.seconds) == ("", True, 3)
    output.shell.printed.resume()
    assert (await output.poll_command(5).wait()).text == "> "


async def test_a_command_that_runs_on_is_waited_for(output: Output, autojump_clock: Clock) -> None:
    output.prints(b"$ ")
    output.tells(STARTED)
    quiet = await output.poll_command(wait_s=4).wait()
    assert (quiet.text, quiet.running, output.seconds) == ("", True, 4)
    output.prints(b"out")
    chunk = await output.poll_command().wait()
    assert (chunk.text, chunk.running) == ("out", True)


async def test_of_a_command_that_was_lost_with_an_earlier_life_nothing_is_given(
    output: Output,
) -> None:
    output.prints(b"$ out")
    with pytest.raises(Unavailable, match="ask again"):
        output.poll_command()


async def test_the_end_answers_everybody_and_nobody_waits_again(
    output: Output, autojump_clock: Clock
) -> None:
    waiting = [output.poll(0) for _ in range(3)]
    line = output.follow(0)
    await trio.sleep(1)
    output.shell = None
    output.readers.end()
    chunks = [await reply.wait() for reply in waiting]
    assert {(chunk.text, chunk.running) for chunk in chunks} == {("", False)}
    assert (await line.wait()).line is None
    assert (await output.poll(0).wait()).text == ""
    assert output.seconds == 1


async def test_the_end_does_not_wait_for_the_rest_of_a_burst(
    output: Output, autojump_clock: Clock
) -> None:
    reply = output.poll(0)
    await trio.sleep(1)
    output.prints(b"last words")
    await trio.testing.wait_all_tasks_blocked()
    output.readers.end()
    assert (await reply.wait()).text == "last words"
    assert output.seconds == 1


async def test_so_many_may_wait_and_who_went_away_makes_room(output: Output) -> None:
    async def wait() -> None:
        await output.poll(0).wait()

    async with trio.open_nursery() as clients:
        for _ in range(MAX_READERS):
            clients.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Busy, match="256 calls already wait for output of terminal 'build'"):
            output.poll(0)
        clients.cancel_scope.cancel()
    reply = output.poll(0)
    output.prints(b"x")
    assert (await reply.wait()).text == "x"


async def test_nobody_waits_and_output_wakes_nobody(output: Output, autojump_clock: Clock) -> None:
    assert (await output.poll(0, wait_s=0).wait()).text == ""
    flushes = output.flushes
    for _ in range(100):
        output.prints(b"x")
    await trio.sleep(10)
    assert output.flushes == flushes


async def test_a_cursor_beyond_the_end_is_refused(output: Output) -> None:
    with pytest.raises(InvalidRequest, match="cursor 1 is beyond"):
        output.poll(1)


async def test_a_disk_that_cannot_be_read_is_told(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    output.prints(b"x")

    def refuse(start: int, max_bytes: int) -> tuple[int, bytes]:
        raise StorageError("cannot read raw.log: Input/output error")

    monkeypatch.setattr(output.log, "stretch", refuse)
    with pytest.raises(StorageError, match="Input/output error"):
        await output.poll(0).wait()


async def test_the_newest_line_is_told_once_there_is_more(
    output: Output, autojump_clock: Clock
) -> None:
    assert output.shell is not None
    output.shell.line = "10%"
    output.prints(b"10%")
    first = await output.follow(0).wait()
    assert first == Progress(line="10%", cursor=3)
    reply = output.follow(first.cursor)
    await trio.sleep(3)
    assert not reply.is_settled
    output.shell.line = "20%"
    output.prints(b"\r20%")
    assert await reply.wait() == Progress(line="20%", cursor=7)


async def test_what_was_printed_so_far_is_told_as_a_record_has_it(output: Output) -> None:
    assert output.shell is not None
    output.shell.printed.begin()
    output.shell.printed.feed(b"so far")
    output.prints(b"so far")
    reply: Reply[PrintedSoFar] = Reply()
    output.readers.take(FetchPrinted(), reply)
    printed = await reply.wait()
    assert (printed.output.text, printed.raw_end) == ("so far", 6)
    assert output.log.path.read_bytes() == b"so far"

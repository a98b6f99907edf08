"""What decides a wait beside the output: a program that wants input, failures, crashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import ActorCrashed, Reply
from aegis.errors import Busy, InvalidRequest, Unavailable
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.note import Note
from aegis.journal.raw_log import RawLog
from aegis.processes.capture import CapturedOutput
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.output import OutputChunk, WaitOutcome, WaitTerminal
from aegis.protocol.terminals import CommandRecord, NeedsInput
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.front.waits import MAX_WAITS, Waits
from aegis.terminals.history import History
from aegis.terminals.messages import CommandStarted, FetchOutput, FetchPrinted, PrintedSoFar
from aegis.terminals.output.readers import OutputReaders
from aegis.terminals.record import final_record, outcome_of
from aegis.terminals.shell.notifications import NotificationLog

PRINTED = CapturedOutput(text="Password: ", total_bytes=10, truncated=False)
NEEDS = NeedsInput(kind="secret", program="sudo")


class FakeShell:
    """Reads from a real raw log, as the shell's actor does; ``crashes`` of its answers are none."""

    def __init__(self, directory: Path, nursery: trio.Nursery) -> None:
        self.log = RawLog.open(directory)
        self.crashes = 0
        self.readers = OutputReaders(
            "build",
            self.log,
            flush=self.log.flush,
            tracker=lambda: None,
            progress_of=NotificationLog().progress_of,
            start_soon=nursery.start_soon,
        )

    def prints(self, data: bytes) -> None:
        self.log.write(data)
        self.readers.came.notify()

    async def ask(self, request: Any, *, timeout: float) -> OutputChunk | PrintedSoFar:
        await trio.lowlevel.checkpoint()
        if self.crashes:
            self.crashes -= 1
            raise ActorCrashed("the shell crashed")
        if isinstance(request, FetchPrinted):
            return PrintedSoFar(output=PRINTED, raw_end=self.log.position)
        assert isinstance(request, FetchOutput)
        reply: Reply[OutputChunk] = Reply()
        self.readers.fetch(request, reply)
        return await reply.wait()


@attrs.define
class Bench:
    """A terminal's front, as far as waits know it."""

    shell: FakeShell
    current: CurrentCommand
    waits: Waits
    ledger: Path
    last: CommandRecord | None = None

    failure: str = ""

    def wait(self, **arguments: Any) -> Reply[WaitOutcome]:
        reply: Reply[WaitOutcome] = Reply()
        request = WaitTerminal(name="build", **arguments)
        self.waits.add(request, reply, None, failure=self.failure)
        return reply

    def begin(self) -> None:
        """A command begins to run."""
        self.current.begin(
            CommandStarted(
                shell="sh",
                call=None,
                cmd="sudo make",
                writer="human",
                cwd="/",
                started_at="2026-05-22T14:03:25.000Z",
                moment_s=0.0,
                raw_start=self.shell.log.position,
            )
        )
        assert self.current.command is not None
        self.waits.began(self.current.command.seq)

    def end(self, *, is_recorded: bool = True) -> None:
        """It ends, and its record is in the ledger, or will be."""
        assert self.current.command is not None
        ended = self.current.end(self.current.command.raw_start, None)
        assert ended is not None
        outcome = outcome_of(
            ended[0],
            end="exited",
            exit_code=0,
            finished_at="2026-05-22T14:03:26.000Z",
            moment_s=1.0,
            raw_end=self.shell.log.position,
        )
        self.current.finished(ended[0].seq, outcome)
        self.last = final_record(ended[0], PRINTED, outcome)
        if is_recorded:
            self.record()

    def record(self) -> None:
        """The record of what ended is in the ledger."""
        assert self.last is not None
        self.ledger.write_bytes(encode_line(to_plain(self.last)))
        self.current.recorded(self.last.seq)
        self.waits.recorded(self.last)


@pytest.fixture
def bench(tmp_path: Path, nursery: trio.Nursery) -> Iterator[Bench]:
    shell = FakeShell(tmp_path, nursery)
    current = CurrentCommand.open(Note.open(tmp_path / "note", Flusher()), None, 4)
    waits = Waits(
        "build",
        current,
        History(tmp_path / "ledger.jsonl"),
        shell,  # type: ignore[arg-type]
        start_soon=nursery.start_soon,
    )
    yield Bench(shell, current, waits, tmp_path / "ledger.jsonl")
    shell.readers.close()
    shell.log.close()
    current.close()


async def test_a_command_that_comes_to_wait_for_input_ends_every_wait_for_it(bench: Bench) -> None:
    bench.begin()
    waits = [bench.wait(), bench.wait(pattern="never"), bench.wait(idle_s=100), bench.wait(seq=5)]
    await trio.testing.wait_all_tasks_blocked()
    bench.shell.prints(b"Password: ")
    bench.waits.needs_input(NEEDS)
    for wait in waits:
        outcome = await wait.wait()
        assert (outcome.reason, outcome.match) == ("needs_input", None)
        assert outcome.record is not None
        assert (outcome.record.seq, outcome.record.needs_input) == (5, NEEDS)
        assert (outcome.record.stdout, outcome.record.exit) == ("Password: ", None)
        assert not outcome.record.timed_out
        assert outcome.cursor == 10


async def test_one_that_waits_already_answers_only_who_has_no_condition(bench: Bench) -> None:
    bench.begin()
    bench.waits.needs_input(NEEDS)
    assert (await bench.wait().wait()).reason == "needs_input"
    wait = bench.wait(pattern="compiled")
    await trio.testing.wait_all_tasks_blocked()
    assert not wait.is_settled
    bench.shell.prints(b"compiled\n")
    assert (await wait.wait()).match == "compiled"


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "not recorded yet"])
async def test_one_that_got_its_input_meanwhile_is_waited_for_to_its_end(
    bench: Bench, is_recorded: bool
) -> None:
    bench.begin()
    bench.waits.needs_input(NEEDS)
    wait = bench.wait(seq=5)
    bench.end(is_recorded=is_recorded)
    if not is_recorded:
        await trio.testing.wait_all_tasks_blocked()
        assert not wait.is_settled
        bench.record()
    outcome = await wait.wait()
    assert outcome.record is not None
    assert (outcome.reason, outcome.record.seq, outcome.record.end) == ("ended", 5, "exited")


async def test_a_text_that_asks_for_input_is_matched_first(bench: Bench) -> None:
    bench.begin()
    wait = bench.wait(pattern="(?i)password: ?$")
    await trio.testing.wait_all_tasks_blocked()
    bench.shell.prints(b"Password: ")
    bench.waits.needs_input(NEEDS)
    outcome = await wait.wait()
    assert (outcome.reason, outcome.match, outcome.cursor) == ("matched", "Password: ", 10)


async def test_input_that_was_given_is_waited_for_no_more(bench: Bench) -> None:
    bench.begin()
    bench.waits.needs_input(NEEDS)
    bench.waits.needs_input(None)
    wait = bench.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert not wait.is_settled
    bench.end()
    assert (await wait.wait()).reason == "ended"


async def test_the_next_command_is_not_taken_for_the_one_that_waited(bench: Bench) -> None:
    bench.begin()
    bench.waits.needs_input(NEEDS)
    bench.end()
    bench.begin()
    wait = bench.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert not wait.is_settled
    bench.end()
    outcome = await wait.wait()
    assert outcome.record is not None
    assert (outcome.reason, outcome.record.seq) == ("ended", 6)


async def test_a_crash_of_the_shell_costs_a_wait_nothing(bench: Bench) -> None:
    bench.begin()
    bench.shell.crashes = 3
    wait = bench.wait(pattern="here")
    bench.shell.prints(b"it is here now\n")
    outcome = await wait.wait()
    assert (outcome.match, outcome.cursor) == ("here", 10)
    assert bench.shell.crashes == 0


async def test_a_terminal_that_fails_says_so_to_who_waits_for_output(bench: Bench) -> None:
    wait = bench.wait(pattern="never")
    await trio.testing.wait_all_tasks_blocked()
    bench.waits.failed("terminal 'build' has failed: it has no shell")
    with pytest.raises(Unavailable, match="'build' has failed: it has no shell"):
        await wait.wait()
    bench.failure = "terminal 'build' has failed: it has no shell"
    with pytest.raises(Unavailable, match="'build' has failed: it has no shell"):
        await bench.wait(idle_s=1).wait()
    assert (await bench.wait().wait()).reason == "ended"


async def test_the_record_of_a_command_is_waited_for_after_a_failure(bench: Bench) -> None:
    bench.begin()
    wait = bench.wait(pattern="never")
    await trio.testing.wait_all_tasks_blocked()
    bench.waits.failed("terminal 'build' has failed: it has no shell")
    bench.end()
    assert (await wait.wait()).reason == "ended"


async def test_the_end_waits_until_everybody_is_answered(bench: Bench) -> None:
    waits = [bench.wait(pattern="never") for _ in range(10)]
    await trio.testing.wait_all_tasks_blocked()
    bench.shell.prints(b"last words, never more")
    await bench.waits.end()
    assert {(await wait.wait()).reason for wait in waits} == {"matched"}


async def test_output_that_has_ended_is_not_quiet(bench: Bench) -> None:
    waits = [bench.wait(pattern="never"), bench.wait(idle_s=100)]
    await trio.testing.wait_all_tasks_blocked()
    bench.shell.readers.end()
    await trio.testing.wait_all_tasks_blocked()
    assert not any(wait.is_settled for wait in waits)
    await bench.waits.end()
    assert {(await wait.wait()).reason for wait in waits} == {"closed"}


async def test_what_is_wrong_is_told_at_once(bench: Bench) -> None:
    with pytest.raises(InvalidRequest, match="regular expression"):
        await bench.wait(pattern="(").wait()
    with pytest.raises(InvalidRequest, match="cursor 99 is beyond"):
        await bench.wait(pattern="x", cursor=99).wait()


async def test_so_many_may_wait(bench: Bench) -> None:
    waits = [bench.wait(pattern="never") for _ in range(MAX_WAITS)]
    with pytest.raises(Busy, match="256 calls already wait"):
        await bench.wait(pattern="never").wait()
    waits[0].fail(Busy("it went away"))
    assert not bench.wait(pattern="never").is_settled
    await bench.waits.end()


async def test_quiet_counts_from_the_call_on(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    bench.shell.prints(b"long ago")
    await trio.sleep(100)
    began = trio.current_time()
    assert (await bench.wait(idle_s=3).wait()).reason == "idle"
    assert 3 <= trio.current_time() - began < 3.1


async def test_output_puts_quiet_off(bench: Bench, autojump_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    wait = bench.wait(idle_s=3)
    for _ in range(5):
        await trio.sleep(2)
        bench.shell.prints(b"still here\n")
    assert not wait.is_settled
    assert (await wait.wait()).reason == "idle"
    assert 13 <= trio.current_time() - began < 13.1


async def test_time_runs_out_while_text_goes_on(
    bench: Bench, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    async def chatter() -> None:
        while True:
            await trio.sleep(0.5)
            bench.shell.prints(b"tick\n")

    nursery.start_soon(chatter)
    began = trio.current_time()
    outcome = await bench.wait(pattern="tock", idle_s=3, timeout=20).wait()
    assert outcome.reason == "timeout"
    assert 20 <= trio.current_time() - began < 20.1

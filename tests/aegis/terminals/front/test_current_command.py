"""The command in flight: its number, its note, and a front that begins anew over them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from structlog.testing import capture_logs

from actors import Reply
from actors.timers import Timers
from aegis.errors import StorageError
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front.calls import Call
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.messages import CommandStarted
from aegis.terminals.record import UnrecordedCommand, outcome_of
from aegis.terminals.sentences import not_typed
from aegis.terminals.shell.notifications import notified_up_to
from tests.aegis.terminals.samples import RECORD
from tests.fakes.faulty_disk import FaultyDisk


async def test_a_number_is_noted_before_the_text_is_sent(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        first.submit(call(1, "make"), 0.0)
    with current(tmp_path) as second:
        [(lost, caller)] = second.lost_with(["another"])
    assert (lost.seq, lost.cmd, lost.began_at, caller) == (5, "make", None, None)


async def test_a_submission_that_did_not_run_gives_its_number_back(tmp_path: Path) -> None:
    with current(tmp_path) as one:
        waiting = call(1)
        one.submit(waiting, 0.0)
        assert one.take_back(2) is None
        assert one.take_back(1) is waiting
        one.submit(call(2), 0.0)
        assert one.command is not None
        assert one.command.seq == 5


async def test_what_was_typed_ahead_takes_the_number_and_the_submission_the_next(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as one:
        waiting = call(1)
        one.submit(waiting, 0.0)
        one.begin(started(100))
        assert one.submitted is waiting
        ended = one.end(100, "vim")
        assert ended is not None
        assert (ended[0].seq, ended[0].cmd, ended[1]) == (5, "vim", None)
        assert not one.is_free
        one.begin(started(200, call=1))
        ended = one.end(200, None)
        assert ended is not None
        assert (ended[0].seq, ended[1]) == (6, waiting)
        assert one.is_free


async def test_a_submission_behind_what_was_typed_ends_with_its_shell(tmp_path: Path) -> None:
    with current(tmp_path) as one:
        waiting = call(1)
        one.submit(waiting, 0.0)
        one.begin(started(100))
        assert [(each.seq, who) for each, who in one.end_all("sh")] == [(5, None), (6, waiting)]
        one.submit(call(2), 0.0)
        one.begin(started(200))
        one.end(200, None)
        [(lost, who)] = one.lost_with([])
        assert lost.seq == 8
        assert who is not None
        assert one.is_free


async def test_an_end_that_was_told_twice_counts_once(tmp_path: Path) -> None:
    with current(tmp_path) as one:
        one.begin(started(100))
        assert one.end(99, None) is None
        assert one.end(100, "ls") is not None
        assert one.end(100, "ls") is None
        one.begin(started(100))
        assert one.command is None


async def test_a_new_front_takes_up_the_command_that_runs(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        first.submit(call(7), 0.0)
        first.begin(started(100, call=7))
    with current(tmp_path) as second:
        assert second.lost_with(["sh"]) == []
        second.resume()
        second.begin(attrs.evolve(started(100, call=7), moment_s=3.5))
        assert second.settle_found(None) == []
        assert second.command is not None
        assert (second.command.seq, second.command.moment_s) == (5, 3.5)
        ended = second.end(100, None)
        assert ended is not None
        assert ended[0].cmd == "echo"


async def test_a_new_front_knows_how_long_a_command_took_behind_which_another_was_submitted(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        first.begin(started(100))
        first.end(100, "ls")
        first.submit(call(7), 0.0)
    with current(tmp_path) as second:
        second.resume()
        second.begin(attrs.evolve(started(100), moment_s=3.5))
        ended = second.end(100, "ls")
        assert ended is not None
        assert (ended[0].seq, ended[0].moment_s) == (5, 3.5)


async def test_a_new_front_hears_of_a_start_that_the_old_one_never_noted(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        first.submit(call(7), 0.0)
    with current(tmp_path) as second:
        second.resume()
        second.begin(started(100, call=7))
        ended = second.end(100, None)
        assert ended is not None
        assert (ended[0].seq, ended[0].raw_start) == (5, 100)


@pytest.mark.parametrize("submitted", [7, None])
async def test_a_new_front_drops_a_submission_that_never_reached_the_shell(
    tmp_path: Path, submitted: int | None
) -> None:
    with current(tmp_path) as first:
        first.submit(call(7), 0.0)
    with current(tmp_path) as second:
        second.resume()
        assert second.settle_found(submitted) == []
        assert second.is_free == (submitted is None)
        second.begin(started(100))
        assert second.command is not None
        assert second.command.seq == 5


async def test_commands_whose_records_were_under_way_keep_their_numbers(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        for number, position in ((1, 100), (2, 200)):
            first.submit(call(number), 0.0)
            first.begin(started(position, call=number))
            first.end(position, None)
        first.begin(started(300))
    with current(tmp_path) as second:
        second.resume()
        for position, seq in ((100, 5), (200, 6)):
            second.begin(started(position))
            ended = second.end(position, None)
            assert ended is not None
            assert ended[0].seq == seq
        assert second.command is not None
        assert second.command.seq == 7
    with current(tmp_path, last_seq=5) as third:
        assert [each.seq for each, _ in third.lost_with([])] == [6, 7]


async def test_what_was_submitted_and_ran_nothing_is_found_by_its_call(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        first.submit(call(1, "# nothing"), 0.0)
        assert first.end_submitted(2) is None
        assert first.end_submitted(1) is not None
        first.submit(call(2), 0.0)
    with current(tmp_path) as second:
        second.resume()
        ended = second.end_submitted(1)
        assert ended is not None
        assert (ended[0].seq, ended[0].cmd) == (5, "# nothing")


async def test_the_directory_of_the_prompt_is_kept(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        assert first.cwd is None
        first.moved("/srv")
        first.moved(None)
        first.begin(started(1))
    with current(tmp_path) as second:
        assert second.cwd == "/srv"
        assert [each.seq for each, _ in second.lost_with([])] == [5]


async def test_what_was_shown_of_a_submission_stays_true_when_it_begins(tmp_path: Path) -> None:
    with current(tmp_path) as one:
        one.cursor = 60
        one.submit(call(1), 0.5)
        shown = one.mark_timed_out()
        one.begin(started(100, call=1))
        ended = one.end(100, None)
        assert ended is not None
        assert ended[0] == attrs.evolve(shown, began_at=100)


async def test_a_command_whose_caller_was_answered_early_goes_on_as_not_timed_out(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        waiting = call(1)
        first.submit(waiting, 0.5)
        first.begin(started(100, call=1))
        left = first.leave_running()
        assert (left.timed_out, first.call, first.is_free) == (False, None, False)
    with current(tmp_path) as second:
        [(found, _)] = second.lost_with([])
    assert (found.seq, found.began_at, found.timed_out) == (5, 100, False)


async def test_an_end_that_is_noted_is_known_without_its_record(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        first.begin(started(100))
        ended = first.end(100, "make")
        assert ended is not None
        outcome = outcome_of(
            ended[0],
            end="exited",
            exit_code=2,
            finished_at="2026-01-01T00:00:01.000Z",
            moment_s=1.5,
            raw_end=130,
        )
        first.finished(5, outcome)
        first.note_down()
    with current(tmp_path) as second:
        [(found, _)] = second.lost_with([])
    assert (found.cmd, found.outcome) == ("make", outcome)
    assert outcome.duration_s == 0.5


@contextmanager
def current(
    directory: Path, last_seq: int = 4, given: int = 0, disk: FaultyDisk | None = None
) -> Iterator[CurrentCommand]:
    """A life of a front whose shell is called ``sh``."""
    last = attrs.evolve(RECORD, seq=last_seq)
    note = Note.open(directory / "in_flight.json", Flusher(disk))
    opened = CurrentCommand.open(note, last, max(last_seq, given))
    opened.shell = "sh"
    try:
        yield opened
    finally:
        opened.close()


def call(number: int, cmd: str = "echo") -> Call:
    reply: Reply[CommandRecord] = Reply()
    timer = Timers().after(10, None)
    return Call(number, cmd, "agent:ada", 10.0, reply, timer)


def started(position: int, call: int | None = None) -> CommandStarted:
    return CommandStarted(
        shell="sh",
        call=call,
        cmd=None if call is None else "echo",
        writer="human",
        cwd="/",
        started_at="2026-01-01T00:00:00.000Z",
        moment_s=1.0,
        raw_start=position,
    )


def begin_first(first: CurrentCommand) -> None:
    """The next command runs, from cursor 100 on."""
    first.submit(call(1), 1.0)
    first.begin(started(100, call=1))


async def test_a_command_whose_line_may_be_damaged_is_found_and_its_number_given_to_no_other(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        begin_first(first)
    with current(tmp_path, given=6) as second:
        assert [each.seq for each in second.unrecorded()] == [5]
        assert second.is_shown(5)
        second.lost_with([])
        second.submit(call(2), 2.0)
        assert second.command is not None
        assert second.command.seq == 7


async def test_a_command_may_begin_where_one_of_a_shell_that_is_gone_began(tmp_path: Path) -> None:
    """A kill takes raw bytes that were not written yet, so cursors come again."""
    with current(tmp_path) as first:
        begin_first(first)
    with current(tmp_path) as second:
        second.shell = "next"
        second.lost_with(["next"])
        second.submit(call(2), 2.0)
        second.begin(attrs.evolve(started(100, call=2), shell="next"))
        ended = second.end(100, None)
    assert ended is not None
    assert ended[0].seq == 6


async def test_what_was_synced_to_be_shown_is_known_as_shown_until_it_is_recorded(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as only:
        begin_first(only)
        assert not only.is_shown(5)
        await only.sync()
        assert only.is_shown(5)
        only.end(100, None)
        only.recorded(5)
        assert not only.is_shown(5)


async def test_what_the_note_owes_is_written_before_it_is_synced(tmp_path: Path) -> None:
    """The disk refused the note of a start; a number that is shown must be in it all the same."""
    disk = FaultyDisk()
    with current(tmp_path, disk=disk) as first:
        first.submit(call(1), 0.0)
        disk.fail("pwrite", errno.EIO)
        first.begin(started(100, call=1))
        await first.sync()
        assert first.is_shown(5)
    with current(tmp_path) as second:
        assert [each.began_at for each in second.unrecorded()] == [100]


async def test_a_sync_that_failed_is_still_owed(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with current(tmp_path, disk=disk) as first:
        first.submit(call(1), 0.0)
        first.take_back(1)
        disk.fail("fdatasync", errno.EIO)
        with pytest.raises(StorageError):
            await first.sync()
        owed = first.owes_sync
        await first.sync()
        assert (owed, first.owes_sync) == (True, False)
    with current(tmp_path) as second:
        assert second.unrecorded() == []


FINISHED = attrs.evolve(RECORD, seq=8, raw_start=3056, raw_end=3060)
FOUND = attrs.evolve(
    FINISHED, exit=None, duration_s=None, killed_by_restart=True, end="killed_by_restart"
)


@pytest.mark.parametrize(("last", "heard"), [(None, -1), (FINISHED, 3056), (FOUND, -1)])
def test_a_record_that_was_found_is_not_taken_for_one_that_this_life_told_of(
    last: CommandRecord | None, heard: int
) -> None:
    """After a loss of power its place may lie ahead of the output: a command was passed over."""
    assert notified_up_to(last) == heard


async def test_trap_37_a_submission_behind_a_typed_line_is_in_the_note(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        first.submit(call(1, "make"), 0.0)
        first.begin(started(100))
    with current(tmp_path) as second:
        lost = [each for each, _ in second.lost_with([])]
        assert [(each.seq, each.cmd, each.began_at) for each in lost] == [
            (5, None, 100),
            (6, "make", None),
        ]
        second.submit(call(2), 0.0)
        assert second.command is not None
        assert second.command.seq == 7


async def test_trap_37_a_submission_is_in_the_note_behind_any_number_of_typed_lines(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        first.submit(call(1, "make"), 0.0)
        for position in (100, 200, 300):
            first.begin(started(position))
            first.end(position, f"typed at {position}")
            first.finished(first.unrecorded()[-1].seq, OUTCOME)
            first.note_down()
    with current(tmp_path) as second:
        lost = [each for each, _ in second.lost_with([])]
    assert [(each.seq, each.cmd) for each in lost] == [
        (5, "typed at 100"),
        (6, "typed at 200"),
        (7, "typed at 300"),
        (8, "make"),
    ]


async def test_a_submission_behind_a_typed_line_that_did_not_run_leaves_the_note(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        waiting = call(1)
        first.submit(waiting, 0.0)
        first.begin(started(100))
        assert first.take_back(1) is waiting
        assert first.owes_sync  # before the caller is told that it did not run
    with current(tmp_path) as second:
        assert [each.seq for each, _ in second.lost_with([])] == [5]


async def test_a_new_front_takes_up_a_typed_line_and_the_submission_behind_it(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        first.submit(call(7), 0.0)
        first.begin(started(100))
    with current(tmp_path) as second:
        assert second.lost_with(["sh"]) == []
        second.resume()
        second.begin(started(100))
        assert second.settle_found(7) == []
        assert second.command is not None
        assert (second.command.seq, second.command.began_at) == (5, 100)
        second.end(100, "ls")
        assert not second.is_free
        second.begin(started(150))
        second.end(150, "pwd")
    with current(tmp_path) as third:
        third.resume()
        for position in (100, 150):
            third.begin(started(position))
            third.end(position, None)
        third.begin(started(200, call=7))
        assert third.settle_found(None) == []
        assert third.command is not None
        assert (third.command.seq, third.command.call) == (7, 7)


@pytest.mark.parametrize("submitted", [7, None])
async def test_a_new_front_drops_a_submission_behind_a_typed_line_that_the_shell_does_not_have(
    tmp_path: Path, submitted: int | None
) -> None:
    with current(tmp_path) as first:
        first.submit(call(7), 0.0)
        first.begin(started(100))
    with current(tmp_path) as second:
        second.resume()
        assert second.settle_found(submitted) == []
        second.end(100, "ls")
        assert second.is_free == (submitted is None)


async def test_trap_37_a_number_that_was_shown_is_not_given_to_a_line_typed_ahead(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        first.submit(call(1, "make"), 0.0)
        shown = first.mark_timed_out()
        first.begin(started(100))
        assert first.command is not None
        assert (shown.seq, first.command.seq) == (5, 6)
        assert [each.seq for each in first.unrecorded()] == [5, 6]
        first.end(100, "vim")
        assert first.holds_back(6)
    with current(tmp_path) as second:
        second.resume()
        second.begin(started(100))
        second.end(100, "vim")
        assert second.holds_back(6)
        second.begin(started(200, call=1))
        ended = second.end(200, None)
        assert ended is not None
        assert ended[0] == attrs.evolve(shown, began_at=200, moment_s=None)
        assert not second.holds_back(6)


async def test_a_submission_whose_number_was_shown_is_lost_if_the_shell_does_not_have_it(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as first:
        first.submit(call(1, "make"), 0.0)
        first.mark_timed_out()
        first.begin(started(100))
    with current(tmp_path) as second:
        second.resume()
        assert [each.seq for each in second.settle_found(None)] == [5]
        assert [each.seq for each in second.unrecorded()] == [5, 6]
        assert not second.holds_back(6)


async def test_a_shell_that_ends_takes_the_typed_line_and_the_submission_in_their_order(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as one:
        one.submit(call(1), 0.0)
        one.mark_timed_out()
        one.begin(started(100))
        assert one.take_unread("sh") is None
        assert [each.seq for each, _ in one.end_all("sh")] == [5, 6]
        assert one.is_free


OUTCOME = outcome_of(
    UnrecordedCommand(
        seq=5,
        cmd=None,
        writer="human",
        cwd=None,
        started_at="2026-01-01T00:00:00.000Z",
        moment_s=None,
        raw_start=0,
    ),
    end="exited",
    exit_code=0,
    finished_at="2026-01-01T00:00:01.000Z",
    moment_s=None,
    raw_end=130,
)


async def test_who_is_refused_is_shown_no_number_that_another_command_may_get(
    tmp_path: Path,
) -> None:
    with current(tmp_path) as one:
        one.submit(call(1, "make"), 0.0)
        assert "seq" not in str(not_typed("build", 1.0, one.command, None))
        one.begin(started(100, call=1))
        assert "(seq 5)" in str(not_typed("build", 1.0, one.command, None))


async def test_no_number_is_given_again_though_the_ledger_has_lost_its_end(tmp_path: Path) -> None:
    with current(tmp_path) as first:
        for number in (1, 2, 3):
            first.submit(call(number), 1.0)
            first.begin(started(100 * number, call=number))
            first.end(100 * number, None)
            first.recorded(4 + number)
        first.moved("/tmp")
    with capture_logs() as logs, current(tmp_path, last_seq=5) as second:
        assert second.unrecorded() == []
        second.submit(call(4), 2.0)
        assert second.command is not None
        assert second.command.seq == 8
    [lost] = [each for each in logs if each["event"] == "ledger lost records"]
    assert (lost["ends"], lost["given"]) == (5, 7)

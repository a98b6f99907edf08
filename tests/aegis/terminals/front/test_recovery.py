"""The records of what was in flight on a terminal that has no front any more."""

from __future__ import annotations

import errno
from pathlib import Path

import attrs
import pytest

from aegis.errors import StorageError
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.journal.raw_log import RawLog
from aegis.protocol.terminals import CommandRecord, ReadRecords
from aegis.terminals.front.recovery import finalise
from aegis.terminals.history import History
from aegis.terminals.record import Outcome, UnrecordedCommand
from aegis.terminals.settings import TerminalFiles
from tests.fakes.faulty_disk import FaultyDisk

OUTPUT = b"one\r\ntwo\r\n"


def command(seq: int, start: int) -> UnrecordedCommand:
    return UnrecordedCommand(
        seq=seq,
        cmd=f"command {seq}",
        writer="human",
        cwd="/",
        started_at="2026-05-22T14:03:25.000Z",
        moment_s=None,
        raw_start=start,
        began_at=start,
    )


@pytest.fixture
def files(tmp_path: Path) -> TerminalFiles:
    return make_files(tmp_path)


def make_files(directory: Path, *noted: UnrecordedCommand) -> TerminalFiles:
    """A terminal whose note tells of ``noted``, else two commands that each printed a line."""
    made = TerminalFiles(directory / "build")
    note = Note.open(made.note, Flusher())
    commands = [each.note() for each in noted or (command(0, 0), command(1, 5))]
    note.write({"commands": commands, "cwd": "/somewhere"})
    note.close()
    raw_log = RawLog.open(made.directory)
    raw_log.write(OUTPUT)
    raw_log.close()
    return made


async def records(files: TerminalFiles) -> list[CommandRecord]:
    reading = await History(files.ledger).read(ReadRecords(name="build", since_seq=-1))
    return reading.result


async def test_each_command_gets_one_record_with_its_own_output(files: TerminalFiles) -> None:
    flusher = Flusher()
    last = await finalise(files, flusher)
    found = await records(files)
    assert [(each.seq, each.stdout, each.end) for each in found] == [
        (0, "one\n", "killed_by_restart"),
        (1, "two\n", "killed_by_restart"),
    ]
    assert last == found[-1]
    assert all(each.killed_by_restart and each.duration_s is None for each in found)
    assert await finalise(files, flusher) == last
    assert await records(files) == found
    note = Note.open(files.note, flusher)
    assert note.load() == {"commands": [], "cwd": "/somewhere"}


async def test_a_run_behind_a_typed_line_has_no_output_of_that_line(tmp_path: Path) -> None:
    behind = attrs.evolve(command(1, 0), began_at=None, call=7)
    files = make_files(tmp_path, command(0, 0), behind)
    await finalise(files, Flusher())
    typed, waited = await records(files)
    assert (typed.stdout, typed.raw_start, typed.raw_end) == ("one\ntwo\n", 0, 10)
    assert (waited.stdout, waited.raw_start, waited.raw_end) == ("", 10, 10)


async def test_commands_that_began_in_another_order_than_their_numbers_have_their_own_output(
    tmp_path: Path,
) -> None:
    """The number of the first was shown before a typed line ran ahead of it."""
    first = attrs.evolve(command(0, 5), raw_start=0, timed_out=True, call=7)
    files = make_files(tmp_path, command(1, 0), first)
    await finalise(files, Flusher())
    assert [(each.seq, each.stdout) for each in await records(files)] == [
        (0, "two\n"),
        (1, "one\n"),
    ]


async def test_killed_at_any_step_and_done_again_it_comes_to_the_same(tmp_path: Path) -> None:
    for step in range(1, 200):
        made = make_files(tmp_path / str(step))
        disk, is_over = FaultyDisk(crash_at=step), True
        try:
            await finalise(made, Flusher(disk))
        except Exception:
            is_over = False
            await finalise(made, Flusher())
        found = await records(made)
        assert [(each.seq, each.stdout) for each in found] == [(0, "one\n"), (1, "two\n")]
        if is_over:
            assert step > 10
            return
    raise AssertionError("it never came to its end")


async def test_a_disk_that_refuses_is_told_and_the_note_still_tells_of_the_commands(
    files: TerminalFiles,
) -> None:
    disk = FaultyDisk()
    disk.fail("fdatasync", errno.EIO)
    with pytest.raises(StorageError):
        await finalise(files, Flusher(disk))
    await finalise(files, Flusher())
    assert [each.seq for each in await records(files)] == [0, 1]


async def test_a_terminal_without_files_has_nothing_to_finalise(tmp_path: Path) -> None:
    assert await finalise(TerminalFiles(tmp_path / "never"), Flusher()) is None
    assert not (tmp_path / "never").exists()


async def test_a_recovery_that_was_killed_leaves_the_next_one_the_same_record(
    tmp_path: Path,
) -> None:
    """It had noted the end of a command that never began, behind the output of another one."""
    ended = Outcome(
        end="killed_by_restart",
        exit=None,
        finished_at="2026-05-22T14:03:26.000Z",
        duration_s=None,
        raw_end=9,
    )
    submitted = attrs.evolve(command(1, 5), began_at=None, outcome=ended)
    files = make_files(tmp_path, submitted)
    await finalise(files, Flusher())
    [found] = await records(files)
    assert (found.raw_start, found.raw_end, found.stdout) == (9, 9, "")

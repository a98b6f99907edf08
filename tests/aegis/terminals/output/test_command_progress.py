"""The progress of a command, by the messages of its shell's actor: a table of stories."""

from __future__ import annotations

import attrs
import pytest

from aegis.errors import Unavailable
from aegis.terminals import messages as msg
from aegis.terminals.messages import NO_OUTPUT, CommandKey
from aegis.terminals.output.command_progress import CommandProgress, progress_of
from aegis.terminals.shell.notifications import NotificationLog
from tests.aegis.terminals.samples import AT, ended, started

BEGUN = CommandKey(shell="sh", call=7, began_at=30, raw_start=30)
TYPED = CommandKey(shell="sh", call=None, began_at=30, raw_start=30)
SUBMITTED = CommandKey(shell="sh", call=7, began_at=None, raw_start=12)


def nothing_ran(call: int, end: int) -> msg.NothingRan:
    return msg.NothingRan(
        call=call, exit=0, output=NO_OUTPUT, finished_at=AT, moment_s=0.0, raw_end=end
    )


def shell_ended(end: int, shell: str = "sh") -> msg.ShellEnded:
    return msg.ShellEnded(
        shell=shell, exit=0, output=NO_OUTPUT, finished_at=AT, moment_s=0.0, raw_end=end
    )


FAILED = msg.SubmissionFailed(call=7, why="swallowed")


@pytest.mark.parametrize(
    ("command", "news", "began_at", "ended_at"),
    [
        (BEGUN, [started(30, 7)], 30, None),
        (BEGUN, [started(10), ended(10, 20), started(30, 7)], 30, None),
        (BEGUN, [started(30, 7), ended(30, 44)], 30, 44),
        (BEGUN, [started(30, 7), ended(30, 44), started(60), ended(60, 70)], 30, 44),
        (BEGUN, [started(30, 7), ended(30, 44), shell_ended(99)], 30, 44),
        (BEGUN, [started(30, 7), shell_ended(50)], 30, 50),
        (BEGUN, [started(30, 7, shell="earlier"), shell_ended(50, "earlier")], None, None),
        (BEGUN, [started(40, 8), ended(40, 50)], None, None),
        (BEGUN, [started(30, 7), nothing_ran(7, 60), FAILED], 30, None),
        (TYPED, [started(30), ended(30, 31)], 30, 31),
        (TYPED, [FAILED, nothing_ran(7, 60)], None, None),
        (SUBMITTED, [started(10), ended(10, 20)], None, None),
        (SUBMITTED, [started(30, 7)], 30, None),
        (SUBMITTED, [started(30, 7), ended(30, 44)], 30, 44),
        (SUBMITTED, [nothing_ran(7, 15)], None, 15),
        (SUBMITTED, [FAILED], None, 12),
        (SUBMITTED, [shell_ended(18)], None, 18),
        (SUBMITTED, [started(10), shell_ended(18, "other")], None, None),
    ],
)
def test_what_is_heard_of_a_command(
    command: CommandKey, news: list[object], began_at: int | None, ended_at: int | None
) -> None:
    progress = progress_of(command, news)
    assert (progress.began_at, progress.ended_at) == (began_at, ended_at)
    assert progress.runs is (began_at is not None and ended_at is None)


def test_one_of_which_nothing_is_known_is_said_to_be_lost_unless_its_text_waits() -> None:
    log = NotificationLog()
    with pytest.raises(Unavailable, match="ask again"):
        log.progress_of(BEGUN, None)
    with pytest.raises(Unavailable, match="ask again"):
        log.progress_of(SUBMITTED, 8)
    with pytest.raises(Unavailable, match="ask again"):
        log.progress_of(TYPED, None)
    assert log.progress_of(SUBMITTED, 7) == CommandProgress(command=SUBMITTED)
    log.keep(started(30, 7))
    assert log.progress_of(BEGUN, None).runs
    assert log.runs(BEGUN)
    assert not log.runs(attrs.evolve(BEGUN, began_at=31))

"""Records that wait for the writer, also when the disk refuses them for long."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from actors import Reply
from actors.timers import Timers
from aegis.errors import StorageError
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front.calls import Call
from aegis.terminals.front.recorder import MAX_UNSAVED, MAX_UNSAVED_TYPED, Recorder
from aegis.terminals.messages import AppendFailed, AppendRecord, RecordAppended


class Told:
    """An address that remembers what it was told."""

    def __init__(self) -> None:
        self.messages: list[AppendRecord] = []

    def hand_over(self, message: AppendRecord) -> None:
        self.messages.append(message)

    def sent(self) -> list[int]:
        seqs = [message.record.seq for message in self.messages]
        self.messages.clear()
        return seqs


def record(seq: int) -> CommandRecord:
    fields: dict[str, Any] = dict.fromkeys(CommandRecord.__annotations__)
    fields |= {"seq": seq, "stdout": "text", "truncated": False, "stderr": ""}
    return CommandRecord(**fields)


def never(seq: int) -> bool:
    return False


def call(number: int) -> Call:
    reply: Reply[CommandRecord] = Reply()
    return Call(number, "echo", "agent:ada", 10.0, reply, Timers().after(10, None))


async def test_everybody_behind_a_refused_record_is_told_of_the_disk() -> None:
    recorder = Recorder(Told(), never, never)  # type: ignore[arg-type]
    calls = [call(number) for number in range(4)]
    for seq, each in enumerate(calls):
        recorder.append(record(seq), each)
    recorder.refused(AppendFailed(seq=1, why="the disk is full"))
    assert [each.reply.is_settled for each in calls] == [False, True, True, True]
    recorder.confirmed(RecordAppended(seq=0))
    assert calls[0].reply.is_settled


def test_a_record_waits_for_the_command_with_the_number_before_it() -> None:
    writer, early = Told(), {6, 7}
    recorder = Recorder(writer, never, lambda seq: seq in early)  # type: ignore[arg-type]
    recorder.append(record(6))
    recorder.append(record(7))
    assert writer.sent() == []
    settled = [recorder.is_settled]  # a command that runs holds up no reader
    recorder.send_again()  # the writer has crashed
    assert writer.sent() == []
    early.clear()
    recorder.append(record(5))
    assert [*settled, recorder.is_settled] == [True, False]
    assert writer.sent() == [5, 6, 7]


def test_records_that_wait_for_a_command_are_kept_within_bounds() -> None:
    writer, early = Told(), set(range(1, 100))
    recorder = Recorder(writer, never, lambda seq: seq in early)  # type: ignore[arg-type]
    for seq in range(1, 100):
        recorder.append(record(seq))
    early.clear()
    recorder.append(record(0))
    kept = {message.record.seq: message.record for message in writer.messages}
    assert list(kept) == list(range(100))
    assert sum(bool(each.stdout) for each in kept.values()) == MAX_UNSAVED


def test_what_was_refused_is_sent_again_in_order_and_confirmed_once() -> None:
    writer = Told()
    recorder = Recorder(writer, never, never)  # type: ignore[arg-type]
    for seq in range(3):
        recorder.append(record(seq))
    assert writer.sent() == [0, 1, 2]
    recorder.refused(AppendFailed(seq=1, why="the disk is full"))
    assert recorder.is_settled
    recorder.retry()
    assert writer.sent() == [0, 1, 2]
    assert recorder.confirmed(RecordAppended(seq=1)) == record(1)
    assert recorder.confirmed(RecordAppended(seq=1)) is None


def test_what_is_typed_on_a_full_disk_waits_within_bounds() -> None:
    writer = Told()
    recorder = Recorder(writer, never, never)  # type: ignore[arg-type]
    recorder.append(record(0))
    with capture_logs() as logs:
        for seq in range(1, MAX_UNSAVED_TYPED + 3):
            recorder.refused(AppendFailed(seq=seq - 1, why="the disk is full"))
            recorder.append(record(seq))
    recorder.refused(AppendFailed(seq=5, why="the disk is full"))
    with pytest.raises(StorageError, match="the disk is full"):
        recorder.check("build")
    writer.sent()
    recorder.retry()
    kept = {message.record.seq: message.record for message in writer.messages}
    assert list(kept) == list(range(3, MAX_UNSAVED_TYPED + 3))
    whole = [seq for seq, each in kept.items() if each.stdout]
    assert whole == list(range(3, MAX_UNSAVED))
    assert kept[MAX_UNSAVED].truncated
    assert [each["seq"] for each in logs if each["event"] == "record given up"] == [0, 1, 2]


@pytest.mark.parametrize("refused_first", [True, False])
def test_what_is_refused_while_the_terminal_ends_is_tried_once_more_at_once(
    refused_first: bool,
) -> None:
    writer = Told()
    recorder = Recorder(writer, never, never)  # type: ignore[arg-type]
    refusal = AppendFailed(seq=0, why="the disk fails")
    recorder.append(record(0))
    if refused_first:
        recorder.refused(refusal)
    recorder.end()
    if not refused_first:
        recorder.refused(refusal)
    assert writer.sent() == [0, 0]
    assert not recorder.is_settled, "the terminal waits for the answer"
    recorder.refused(refusal)
    assert writer.sent() == []
    assert recorder.is_settled, "it ends without: the note has what is missing"


def test_what_is_confirmed_while_the_terminal_ends_is_sent_once() -> None:
    writer = Told()
    recorder = Recorder(writer, never, never)  # type: ignore[arg-type]
    recorder.append(record(0))
    recorder.end()
    recorder.confirmed(RecordAppended(seq=0))
    assert writer.sent() == [0]
    assert recorder.is_settled


def test_behind_a_record_that_is_shown_none_is_sent_before_it_is_confirmed() -> None:
    writer = Told()
    recorder = Recorder(writer, lambda seq: seq in (1, 3), never)  # type: ignore[arg-type]
    for seq in range(6):
        recorder.append(record(seq))
    assert writer.sent() == [0, 1]
    recorder.confirmed(RecordAppended(seq=0))
    assert writer.sent() == []
    recorder.refused(AppendFailed(seq=1, why="the disk is full"))
    recorder.retry()
    assert writer.sent() == [1]
    recorder.confirmed(RecordAppended(seq=1))
    assert writer.sent() == [2, 3]
    recorder.send_again()  # the writer has crashed
    assert writer.sent() == [2, 3]
    recorder.confirmed(RecordAppended(seq=2))
    recorder.confirmed(RecordAppended(seq=3))
    assert writer.sent() == [4, 5]

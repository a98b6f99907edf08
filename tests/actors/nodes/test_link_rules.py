"""The pure rules of a link: frames, windows, beats; and how a worker is judged to have ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import LinkLost, MisuseError, NodeError
from actors.nodes.compat.message_frames import MessageReader, framed
from actors.nodes.links.heartbeat import Beat, Pulse
from actors.nodes.links.window import MOST_BYTES, MOST_MESSAGES, ReceiveWindow, SendWindow
from actors.nodes.links.wire import (
    TEXT_LIMIT,
    AckFrame,
    BeatFrame,
    Frame,
    MessageFrame,
    OutcomeFrame,
    OutcomeKind,
    StopFrame,
    decode,
    encode,
)
from actors.nodes.workers.worker_end import EndKind, Seen, how_it_ended

FRAMES: list[Frame] = [
    MessageFrame(b""),
    MessageFrame(b"\x00data"),
    AckFrame(1, 2),
    BeatFrame(),
    StopFrame(),
    OutcomeFrame(OutcomeKind.DONE),
    OutcomeFrame(OutcomeKind.CRASHED, "ValueError: ä"),
]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_comes_back_from_its_bytes(frame: Frame) -> None:
    assert decode(encode(frame)) == frame


@pytest.mark.parametrize(
    "data", [b"", b"\x05", b"\xff", b"\x01", b"\x01123456789", b"\x02x", b"\x03x", b"\x04\x03"]
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(LinkLost):
        decode(data)


def test_of_a_long_text_the_end_is_told() -> None:
    outcome = decode(encode(OutcomeFrame(OutcomeKind.CRASHED, "x" * 100_000 + "the error")))
    assert isinstance(outcome, OutcomeFrame)
    assert outcome.text.endswith("the error")
    assert len(outcome.text) == TEXT_LIMIT


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 50))
def test_messages_come_whole_however_their_bytes_are_cut(
    messages: list[bytes], at_once: int
) -> None:
    reader, data = MessageReader(limit=40), b"".join(framed(each) for each in messages)
    got: list[bytes] = []
    for at in range(0, len(data), at_once):
        got += reader.feed(data[at : at + at_once])
    assert got == messages


def test_a_length_above_the_limit_is_refused_before_what_it_announces() -> None:
    reader = MessageReader(limit=10)
    assert reader.feed(b"\xff\xff\xff") == []
    with pytest.raises(NodeError, match="4294967295 bytes"):
        reader.feed(b"\xff")
    with pytest.raises(NodeError, match="11 bytes"):
        framed(bytes(11), limit=10)


def test_a_window_has_room_until_it_is_full_of_messages_or_bytes() -> None:
    window = SendWindow()
    for _ in range(MOST_MESSAGES):
        assert window.has_room(0)
        window.sent(0)
    assert not window.has_room(0)
    window.taken(AckFrame(1, 0))
    assert window.has_room(0)
    assert window.has_room(MOST_BYTES)
    window.sent(MOST_BYTES)
    window.taken(AckFrame(5, 0))
    assert not window.has_room(1)
    assert window.has_room(0)


def test_more_taken_than_was_sent_breaks_the_rules() -> None:
    window = SendWindow()
    window.sent(10)
    with pytest.raises(LinkLost):
        window.taken(AckFrame(1, 11))


@pytest.mark.parametrize(("count", "size"), [(MOST_MESSAGES + 1, 0), (5, MOST_BYTES // 4)])
def test_more_sent_than_there_was_room_for_breaks_the_rules(count: int, size: int) -> None:
    window = ReceiveWindow()
    for _ in range(count - 1):
        window.received(size)
    with pytest.raises(LinkLost):
        window.received(size)


def test_what_was_taken_is_told_by_half_windows() -> None:
    window = ReceiveWindow()
    told = []
    for _ in range(MOST_MESSAGES):
        window.received(3)
        if window.took(3):
            told.append(window.acknowledge())
    assert told == [AckFrame(MOST_MESSAGES // 2, 3 * MOST_MESSAGES // 2)] * 2
    assert (window.messages, window.size) == (0, 0)


@given(st.lists(st.integers(0, 1_048_576), max_size=300), st.randoms())
def test_two_windows_agree_and_never_stop_each_other_for_ever(sizes: list[int], random) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    sender, receiver = SendWindow(), ReceiveWindow()
    waiting, inbox = list(sizes), list[int]()
    while waiting or inbox:
        can_send = bool(waiting) and sender.has_room(waiting[0])
        assert can_send or inbox  # something can always go on
        if can_send and (not inbox or random.random() < 0.5):
            size = waiting.pop(0)
            sender.sent(size)
            receiver.received(size)
            inbox.append(size)
        elif receiver.took(inbox.pop(0)):
            sender.taken(receiver.acknowledge())
    assert (sender.messages, sender.size) == (receiver.messages, receiver.size)


@pytest.mark.parametrize("times", [(1.0, 1.5), (0.0, 5.0), (-1.0, 5.0), (1.0, 0.0)])
def test_a_beat_is_at_least_twice_in_the_time_of_silence(times: tuple[float, float]) -> None:
    with pytest.raises(MisuseError):
        Beat(*times)


# (what happens at which second; when it ticks) -> whether it is there at each tick
@pytest.mark.parametrize(
    ("heard", "ticks", "there"),
    [
        ([], [1, 2, 3, 4], [True, True, True, False]),
        ([2.5], [1, 2, 3, 4, 5, 6, 6.5], [True] * 6 + [False]),
        # The tick comes late: this side was held up, and the silence of that time does not count.
        ([], [1, 30, 31, 32], [True, True, True, False]),
        ([], [1, 2.5, 3, 4], [True, True, True, False]),
        # Held up, and what came meanwhile is read only afterwards.
        ([30.1], [1, 30, 31, 32, 33, 34.1], [True] * 5 + [False]),
    ],
)
def test_who_is_silent_for_too_long_is_lost(
    heard: list[float], ticks: list[float], there: list[bool]
) -> None:
    pulse = Pulse(Beat(1.0, 4.0), now=0.0)
    events = sorted([(time, "heard") for time in heard] + [(time, "tick") for time in ticks])
    got = []
    for time, what in events:
        if what == "heard":
            pulse.seen(time)
        else:
            got.append(pulse.tick(time))
    assert got == there


def test_a_tick_is_due_every_beat_and_at_the_very_end_of_a_silence() -> None:
    pulse = Pulse(Beat(2.0, 5.0), now=0.0)
    due = []
    while pulse.tick(pulse.next_at):
        due.append(pulse.next_at)
    assert due == [4.0, 5.0]


@pytest.mark.parametrize(
    ("seen", "kind", "text"),
    [
        (Seen(was_up=True, outcome=OutcomeFrame(OutcomeKind.DONE)), EndKind.DONE, ""),
        (
            Seen(
                was_up=True, stop_asked=True, outcome=OutcomeFrame(OutcomeKind.DONE), returncode=-9
            ),
            EndKind.DONE,
            "",
        ),
        (
            Seen(was_up=True, outcome=OutcomeFrame(OutcomeKind.CRASHED, "ValueError")),
            EndKind.CRASHED,
            "ValueError",
        ),
        (Seen(was_up=True, stop_asked=True, returncode=0), EndKind.STOPPED, ""),
        (
            Seen(was_up=True, stop_asked=True, overdue=True, returncode=-9),
            EndKind.STOPPED,
            "It did not stop in time and was killed.",
        ),
        (Seen(was_up=True, lost="Silent.", returncode=-9), EndKind.LOST, "Silent."),
        (Seen(was_up=True, returncode=-11), EndKind.KILLED, ""),
        (Seen(was_up=True, returncode=3), EndKind.CRASHED, "Its process ended with code 3."),
        (Seen(was_up=True, trouble="KeyError: x"), EndKind.CRASHED, "KeyError: x"),
        (Seen(trouble="OSError: no"), EndKind.NEVER_STARTED, "OSError: no"),
        (Seen(overdue=True, returncode=-9), EndKind.NEVER_STARTED, "It did not start in time."),
        (Seen(returncode=1), EndKind.NEVER_STARTED, "Its process ended with code 1."),
        (Seen(returncode=-9), EndKind.NEVER_STARTED, "Its process was killed by signal 9."),
        (Seen(stop_asked=True), EndKind.STOPPED, ""),
        (Seen(), EndKind.NEVER_STARTED, "There was no process."),
    ],
)
def test_how_it_ended_is_what_was_seen(seen: Seen, kind: EndKind, text: str) -> None:
    end = how_it_ended(seen)
    assert (end.kind, end.text) == (kind, text)
    assert end.signal == (11 if kind is EndKind.KILLED else None)
    assert str(end).startswith(kind.value)

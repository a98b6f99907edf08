from __future__ import annotations

import itertools

from aegis.protocol.streams import MAX_CHUNK_BYTES
from aegis.servers.streams.pace import FRAME_S, QUICK_BYTES, QUICK_COST, FramePace, Pace


def test_a_key_is_echoed_at_once_however_often_one_is_typed_by_hand() -> None:
    pace, now = Pace(), 100.0
    for _ in range(100):
        assert pace.next_at <= now
        pace = pace.after(3, now)
        now += 0.02


def test_a_flood_gets_one_message_in_each_stretch_of_time() -> None:
    pace = Pace().after(MAX_CHUNK_BYTES, 100.0)
    assert pace.next_at == 100.0 + FRAME_S
    assert pace.after(MAX_CHUNK_BYTES, pace.next_at).next_at == 100.0 + FRAME_S + FRAME_S


def test_messages_without_a_pause_are_held_up_once_there_were_many() -> None:
    pace = Pace()
    sent = next(count for count in itertools.count(1) if _is_held(pace := pace.after(1, 5.0)))
    assert sent == QUICK_BYTES // QUICK_COST + 1
    assert pace.next_at == 5.0 + FRAME_S


def _is_held(pace: Pace) -> bool:
    return pace.next_at > 5.0


def test_eight_frames_are_sent_at_once_and_then_one_in_each_interval() -> None:
    pace, now, sent = FramePace(), 100.0, []
    for _ in range(20):
        now = max(now, pace.next_at)
        sent.append(round((now - 100.0) / FRAME_S, 3))
        pace = pace.after(now)
    assert sent == [0.0] * 8 + [float(number) for number in range(1, 13)]


def test_a_pause_lets_frames_be_sent_at_once_again() -> None:
    pace = FramePace()
    for _ in range(20):
        pace = pace.after(100.0)
    assert pace.next_at > 100.0
    assert pace.after(200.0).next_at <= 200.0

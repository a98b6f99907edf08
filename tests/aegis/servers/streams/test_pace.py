from __future__ import annotations

import itertools

from aegis.protocol.streams import MAX_CHUNK_BYTES
from aegis.servers.streams.pace import FRAME_S, QUICK_BYTES, QUICK_COST, Pace


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

"""What an inbox holds and shows: acknowledging, known ids, room."""

from __future__ import annotations

import pytest

from aegis.errors import InvalidRequest, Unavailable
from aegis.inboxes import state as state_module
from aegis.inboxes.rules import message_line, message_of, read_line
from aegis.inboxes.state import Arriving, InboxState
from aegis.protocol.inboxes import Deliver, Message


def delivery(number: int, body: str = "hello") -> Deliver:
    return Deliver(
        handle="pm",
        id=f"m{number}",
        sender="agent:alice",
        body=body,
        timestamp="2026-05-22T14:03:25.120Z",
    )


def message(number: int, body: str = "hello") -> Message:
    return message_of(delivery(number, body))


NONE = Arriving()


def add(state: InboxState, number: int, *, at: int, body: str = "hello") -> None:
    state.add(f"m{number}", len(body), at=at, size=1)


def test_unread_messages_come_oldest_first_and_at_most_so_many() -> None:
    state = InboxState()
    for number in range(5):
        add(state, number, at=number)
    assert [each.id for each in state.unread(3)] == ["m0", "m1", "m2"]


def test_acknowledging_takes_the_message_and_all_older_ones() -> None:
    state = InboxState()
    for number in range(5):
        add(state, number, at=number)
    state.acknowledge("m2")
    assert [each.id for each in state.unread(10)] == ["m3", "m4"]


def test_acknowledging_twice_changes_nothing() -> None:
    state = InboxState()
    add(state, 1, at=1)
    state.acknowledge("m1")
    assert state.check_cursor("m1") is False
    add(state, 2, at=2)
    state.acknowledge("m1")
    assert [each.id for each in state.unread(10)] == ["m2"]


def test_a_cursor_that_never_was_is_refused() -> None:
    state = InboxState()
    with pytest.raises(InvalidRequest, match="not the 'next' of an earlier reply"):
        state.check_cursor("nonsense")


def test_a_known_id_stays_known_after_it_was_read() -> None:
    state = InboxState()
    add(state, 1, at=1)
    state.acknowledge("m1")
    assert state.knows("m1")


def test_the_ledgers_lines_rebuild_the_state() -> None:
    lines = [
        message_line(message(1)),
        message_line(message(2)),
        read_line("m1", needed_from=0),
    ]
    state = InboxState()
    for at, line in enumerate(lines):
        state.apply(line, at, 1)
    assert [each.id for each in state.unread(10)] == ["m2"]
    assert state.knows("m1")


@pytest.mark.parametrize(
    "line",
    [{}, {"kind": "message"}, {"kind": "message", "id": 7}, {"kind": "read"}, {"kind": "later"}],
)
def test_a_line_of_another_kind_or_shape_is_skipped(line: dict[str, object]) -> None:
    state = InboxState()
    state.apply(line, 0, 1)
    assert len(state) == 0


def test_a_full_inbox_takes_no_more_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_UNREAD", 2)
    state = InboxState()
    add(state, 1, at=1)
    state.check_room("pm", delivery(3), NONE)
    add(state, 2, at=2)
    with pytest.raises(Unavailable, match="inbox of 'pm' is full: 2 messages wait"):
        state.check_room("pm", delivery(3), NONE)
    state.acknowledge("m1")
    state.check_room("pm", delivery(3), NONE)


def test_an_inbox_is_full_by_size_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_UNREAD_CHARS", 100)
    state = InboxState()
    add(state, 1, at=1, body="x" * 100)
    with pytest.raises(Unavailable):
        state.check_room("pm", delivery(3), NONE)
    state.acknowledge("m1")
    state.check_room("pm", delivery(3), NONE)


def test_what_waits_for_its_sync_takes_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_UNREAD", 3)
    monkeypatch.setattr(state_module, "MAX_UNREAD_CHARS", 100)
    state = InboxState()
    add(state, 1, at=1)
    state.check_room("pm", delivery(3), Arriving(messages=1, chars=5))
    with pytest.raises(Unavailable, match="inbox of 'pm' is full: 3 messages wait"):
        state.check_room("pm", delivery(3), Arriving(messages=2, chars=10))
    with pytest.raises(Unavailable, match="inbox of 'pm' is full: 2 messages wait"):
        state.check_room("pm", delivery(3), Arriving(messages=1, chars=95))


def test_only_so_many_ids_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_KNOWN_IDS", 3)
    state = InboxState()
    for number in range(5):
        add(state, number, at=number)
        state.acknowledge(f"m{number}")
    assert [state.knows(f"m{number}") for number in range(5)] == [False, False, True, True, True]

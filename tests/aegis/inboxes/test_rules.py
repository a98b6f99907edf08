"""The pure rules of an inbox: what it holds, what it shows, how it reads."""

from __future__ import annotations

import pytest

from aegis.errors import InvalidRequest, Unavailable
from aegis.inboxes import rules
from aegis.inboxes.rules import InboxState, message_line, message_of, read_line, render_header
from aegis.protocol.inboxes import Deliver, Message


def message(number: int, body: str = "hello") -> Message:
    return message_of(
        Deliver(
            handle="pm",
            id=f"m{number}",
            sender="agent:alice",
            body=body,
            timestamp="2026-05-22T14:03:25.120Z",
        )
    )


@pytest.mark.parametrize(
    ("task_id", "status", "header"),
    [
        (None, None, "> from term:build · 2026-05-22T14:03:25Z"),
        ("01J", "ok", "> from term:build · task#01J · ok · 2026-05-22T14:03:25Z"),
        ("01J", None, "> from term:build · task#01J · 2026-05-22T14:03:25Z"),
    ],
)
def test_a_header_names_sender_task_status_and_time(
    task_id: str | None, status: str | None, header: str
) -> None:
    assert render_header("term:build", "2026-05-22T14:03:25.999Z", task_id, status) == header  # type: ignore[arg-type]


def test_a_message_reads_as_its_header_and_its_body() -> None:
    assert message(1).text == "> from agent:alice · 2026-05-22T14:03:25Z\nhello"


def test_unread_messages_come_oldest_first_and_at_most_so_many() -> None:
    state = InboxState()
    for number in range(5):
        state.add(message(number))
    assert [each.id for each in state.unread(3)] == ["m0", "m1", "m2"]


def test_acknowledging_takes_the_message_and_all_older_ones() -> None:
    state = InboxState()
    for number in range(5):
        state.add(message(number))
    state.acknowledge("m2")
    assert [each.id for each in state.unread(10)] == ["m3", "m4"]


def test_acknowledging_twice_changes_nothing() -> None:
    state = InboxState()
    state.add(message(1))
    state.acknowledge("m1")
    assert state.check_cursor("m1") is False
    state.add(message(2))
    state.acknowledge("m1")
    assert [each.id for each in state.unread(10)] == ["m2"]


def test_a_cursor_that_never_was_is_refused() -> None:
    state = InboxState()
    with pytest.raises(InvalidRequest, match="not the 'next' of an earlier reply"):
        state.check_cursor("nonsense")


def test_a_known_id_stays_known_after_it_was_read() -> None:
    state = InboxState()
    state.add(message(1))
    state.acknowledge("m1")
    assert state.knows("m1")


def test_the_ledgers_lines_rebuild_the_state() -> None:
    lines = [message_line(message(1)), message_line(message(2)), read_line("m1")]
    state = InboxState()
    for line in lines:
        state.apply(line)
    assert [each.id for each in state.unread(10)] == ["m2"]
    assert state.knows("m1")


@pytest.mark.parametrize(
    "line",
    [{}, {"kind": "message"}, {"kind": "message", "id": 7}, {"kind": "read"}, {"kind": "later"}],
)
def test_a_line_of_another_kind_or_shape_is_skipped(line: dict[str, object]) -> None:
    state = InboxState()
    state.apply(line)
    assert len(state) == 0


def test_a_full_inbox_takes_no_more_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_UNREAD", 2)
    state = InboxState()
    state.add(message(1))
    state.check_room("pm")
    state.add(message(2))
    with pytest.raises(Unavailable, match="inbox of 'pm' is full: 2 messages wait"):
        state.check_room("pm")
    state.acknowledge("m1")
    state.check_room("pm")


def test_an_inbox_is_full_by_size_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_UNREAD_BYTES", 100)
    state = InboxState()
    state.add(message(1, body="x" * 100))
    with pytest.raises(Unavailable):
        state.check_room("pm")
    state.acknowledge("m1")
    state.check_room("pm")


def test_only_so_many_ids_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_KNOWN_IDS", 3)
    state = InboxState()
    for number in range(5):
        state.add(message(number))
        state.acknowledge(f"m{number}")
    assert [state.knows(f"m{number}") for number in range(5)] == [False, False, True, True, True]

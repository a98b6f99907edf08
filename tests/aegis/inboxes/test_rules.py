"""How a message reads."""

from __future__ import annotations

import pytest

from aegis.inboxes.rules import message_in, message_line, message_of, render_header
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


def test_a_session_url_in_a_message_is_hidden() -> None:
    """Who has such a URL acts under the handle of its session."""
    body = "use http://127.0.0.1:8/mcp/s/c2VjcmV0 for it"
    stored = message_in(message_line(message(1, body)))
    assert stored is not None
    assert stored.body == "use http://127.0.0.1:8/mcp/s/\u2039secret\u203a for it"

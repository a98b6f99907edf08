"""The messages of an inbox as inputs of the session's machine."""

from __future__ import annotations

import pytest

from aegis.agents.sessions.mail import News
from aegis.protocol.inboxes import Message


@pytest.mark.parametrize(
    ("sender", "is_alone"),
    [
        ("group:reviewers/broadcast:01J", True),
        ("group:reviewers/cancel:01J", True),
        ("workflow:release", True),
        ("queue:build", True),
        ("agent:group", False),
        ("human", False),
        ("term:queue", False),
        ("canvas:workflow", False),
        ("substrate", False),
    ],
)
def test_broadcasts_orders_of_workflows_and_tasks_are_turns_of_their_own(
    sender: str, is_alone: bool
) -> None:
    message = Message(id="m1", sender=sender, body="do", text="> …\ndo", timestamp="t")
    [incoming] = News((message,)).arrived
    assert (incoming.id, incoming.is_alone) == ("m1", is_alone)

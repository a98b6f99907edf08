"""The messages of an inbox as inputs of the session's machine."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from aegis.agents.sessions.mail import AGAIN_S, Mail, News
from aegis.errors import InvalidRequest, Unavailable
from aegis.protocol.inboxes import Message, ReadInbox


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


async def test_an_acknowledgement_is_repeated_until_the_inbox_takes_or_does_not_know_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    asked: list[ReadInbox] = []

    async def wait() -> None:
        if len(asked) < 3:
            raise Unavailable("the disk refuses")
        raise InvalidRequest("'m1' is not the 'next' of an earlier reply of this inbox")

    def send_request(request: ReadInbox) -> Any:
        asked.append(request)
        return SimpleNamespace(wait=wait)

    inbox = SimpleNamespace(send_request=send_request, is_stopped=False)
    registry = SimpleNamespace(find=lambda *_: inbox)
    with capture_logs():
        async with trio.open_nursery() as nursery:
            start_soon: Callable[..., None] = nursery.start_soon
            owner: Any = SimpleNamespace(
                system=SimpleNamespace(registry=registry), start_soon=start_soon
            )
            Mail(owner, "ann").acknowledge("m1")
    assert [each.after for each in asked] == ["m1"] * 3
    assert trio.current_time() == pytest.approx(2 * AGAIN_S)

"""Who is told of messages as they come; the places are what survives, the numbers count a life."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio

from actors import Reply
from aegis.errors import Busy, InvalidRequest
from aegis.inboxes.followers import MAX_FOLLOWERS, Followers
from aegis.inboxes.state import InboxState, Unread
from aegis.protocol.feeds import FollowInbox, InboxNews, InboxPlace
from aegis.protocol.inboxes import Message


def answer(
    reply: Reply[InboxNews],
    unread: Sequence[Unread],
    make: Callable[[list[Message]], InboxNews],
) -> None:
    reply.send(make([_message(each.id) for each in unread]))


class Box:
    """An inbox's state, and its followers in one life."""

    def __init__(self, state: InboxState | None = None, life: int = 1) -> None:
        self.state = InboxState() if state is None else state
        self.followers = Followers(life, answer)
        self._at = 0

    def comes(self, *names: str) -> None:
        for name in names:
            self._at += 100
            self.state.add(name, len(name), at=self._at, size=1)
        self.followers.look(self.state)

    def asks(self, place: InboxPlace | None = None, **options: Any) -> Reply[InboxNews]:
        reply: Reply[InboxNews] = Reply()
        request = FollowInbox(handle="alice", place=place, **options)
        self.followers.take(request, reply, self.state)
        return reply

    async def place(self, **options: Any) -> InboxPlace:
        return (await self.asks(**options).wait()).place


def _message(name: str) -> Message:
    return Message(id=name, sender="human", body=name, text=name, timestamp="2026-01-01T00:00:00Z")


async def told(reply: Reply[InboxNews]) -> tuple[list[str], int]:
    news = await reply.wait()
    return [message.id for message in news.messages], news.missed


async def test_only_what_is_new_is_told_in_order() -> None:
    box = Box()
    box.comes("a", "b")
    reply = box.asks(await box.place())
    assert not reply.is_settled
    box.comes("c")
    assert await told(reply) == (["c"], 0)
    box.comes("d", "e", "f")
    here = InboxPlace(at=300, number=3, life=1)
    assert await told(box.asks(here, limit=2)) == (["d", "e"], 0)


async def test_one_may_begin_behind_a_message_that_one_knows() -> None:
    box = Box()
    box.comes("a", "b", "c")
    place = await box.place(after="a")
    assert await told(box.asks(place)) == (["b", "c"], 0)
    with pytest.raises(InvalidRequest, match="no message 'z' was ever"):
        box.asks(after="z")


async def test_what_was_acknowledged_meanwhile_was_missed() -> None:
    box = Box()
    place = await box.place()
    box.comes("a", "b", "c", "d")
    box.state.acknowledge("b")
    assert await told(box.asks(place)) == (["c", "d"], 2)


async def test_behind_an_acknowledged_message_nothing_was_missed() -> None:
    box = Box()
    box.comes("a", "b", "c")
    box.state.acknowledge("b")
    place = await box.place(after="b")
    assert await told(box.asks(place)) == (["c"], 0)


async def test_another_life_goes_on_at_the_same_place() -> None:
    box = Box()
    box.comes("a", "b")
    place = await box.place(after="a")
    state = InboxState()
    for at, name in ((100, "a"), (200, "b"), (300, "c")):
        state.add(name, len(name), at=at, size=1)
    assert await told(Box(state, life=2).asks(place)) == (["b", "c"], 0)


async def test_who_went_away_leaves_its_place() -> None:
    box = Box()
    place = await box.place()
    gone = [box.asks(place) for _ in range(MAX_FOLLOWERS)]
    with pytest.raises(Busy, match="256 streams"):
        box.asks(place)
    for reply in gone:
        with trio.move_on_after(0):
            await reply.wait()
    here = box.asks(place)
    box.comes("a")
    assert await told(here) == (["a"], 0)
    assert all(reply.late == 0 for reply in gone)

"""``Followers``: the streams that get the messages of an inbox without acknowledging them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from actors import Reply
from aegis.errors import Busy
from aegis.inboxes.state import InboxState, Unread
from aegis.protocol.feeds import FollowInbox, InboxNews, InboxPlace
from aegis.protocol.inboxes import Message

MAX_FOLLOWERS = 256
"""Streams that may wait for messages of one inbox."""

AnswerWith = Callable[
    [Reply[InboxNews], Sequence[Unread], Callable[[list[Message]], InboxNews]], None
]
"""A function that reads unread messages and answers the reply with the result of another one."""


@attrs.frozen
class _Follower:
    request: FollowInbox
    place: InboxPlace
    reply: Reply[InboxNews]


class Followers:
    """The waiting streams, in incarnation ``life`` of the inbox's actor."""

    def __init__(self, life: int, answer: AnswerWith) -> None:
        self._life = life
        self._answer = answer
        self._waiting: list[_Follower] = []

    @property
    def is_waiting(self) -> bool:
        """Whether a stream waits for the next message."""
        return any(not each.reply.is_settled for each in self._waiting)

    def take(self, request: FollowInbox, reply: Reply[InboxNews], state: InboxState) -> None:
        """Answer now, or once there is a message. Raises ``InvalidRequest``, ``Busy``."""
        if request.place is None:
            at = state.newest_at if request.after is None else state.place_of(request.after)
            behind = state.unread_behind(at, 1)
            number = behind[0].number - 1 if behind else state.count
            place = InboxPlace(at=at, number=number, life=self._life)
            reply.send(InboxNews(messages=[], missed=0, place=place))
            return
        follower = _Follower(request, request.place, reply)
        if not self._answered(follower, state):
            self._make_room()
            self._waiting.append(follower)

    def look(self, state: InboxState) -> None:
        """Answer the streams for which there are messages now."""
        if self._waiting:
            self._waiting = [each for each in self._waiting if not self._answered(each, state)]

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_FOLLOWERS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} streams follow this inbox already; close one first")

    def _answered(self, follower: _Follower, state: InboxState) -> bool:
        """Answer the stream if there are messages; return whether it is answered."""
        if follower.reply.is_settled:
            return True
        place = follower.place
        found = state.unread_behind(place.at, follower.request.limit)
        if not found:
            return False
        newest = found[-1]
        # Another incarnation counts from 0 again: the number of missed messages is unknown.
        missed = newest.number - place.number - len(found) if place.life == self._life else 0
        here = InboxPlace(at=newest.at, number=newest.number, life=self._life)
        make = partial(_news, missed=max(missed, 0), place=here)
        self._answer(follower.reply, found, make)
        return True


def _news(messages: list[Message], *, missed: int, place: InboxPlace) -> InboxNews:
    return InboxNews(messages=messages, missed=missed, place=place)

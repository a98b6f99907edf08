"""``Followers``: who is told of the messages of an inbox as they come, and acknowledges nothing."""

from __future__ import annotations

import attrs

from actors import Reply
from aegis.errors import Busy
from aegis.inboxes.state import InboxState
from aegis.protocol.feeds import FollowInbox, InboxNews, InboxPlace

MAX_FOLLOWERS = 256
"""Streams that may wait for messages of one inbox."""


@attrs.frozen
class _Follower:
    request: FollowInbox
    place: InboxPlace
    reply: Reply[InboxNews]


class Followers:
    """Those who wait, in ``life`` of the inbox's actor."""

    def __init__(self, life: int) -> None:
        self._life = life
        self._waiting: list[_Follower] = []

    def take(self, request: FollowInbox, reply: Reply[InboxNews], state: InboxState) -> None:
        """Answer, now or once there is something. Raises ``InvalidRequest``, ``Busy``."""
        if request.place is None:
            at = state.newest_at if request.after is None else state.place_of(request.after)
            behind = state.unread_behind(at, 1)
            number = behind[0][1] - 1 if behind else state.count
            place = InboxPlace(at=at, number=number, life=self._life)
            reply.send(InboxNews(messages=[], missed=0, place=place))
            return
        follower = _Follower(request, request.place, reply)
        if not self._is_told(follower, state):
            self._make_room()
            self._waiting.append(follower)

    def look(self, state: InboxState) -> None:
        """Something may have come."""
        if self._waiting:
            self._waiting = [each for each in self._waiting if not self._is_told(each, state)]

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_FOLLOWERS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} streams show this inbox already")

    def _is_told(self, follower: _Follower, state: InboxState) -> bool:
        """Whether nothing is left to do for this one."""
        if follower.reply.is_settled:
            return True
        place = follower.place
        found = state.unread_behind(place.at, follower.request.limit)
        if not found:
            return False
        at, number, _ = found[-1]
        # Another life counts anew: what was missed in between nobody knows.
        missed = number - place.number - len(found) if place.life == self._life else 0
        messages = [message for _, _, message in found]
        here = InboxPlace(at=at, number=number, life=self._life)
        follower.reply.send(InboxNews(messages=messages, missed=max(missed, 0), place=here))
        return True

"""``Followers``: the streams that wait for changes of requests."""

from __future__ import annotations

import attrs

from actors import Reply
from aegis.errors import Busy
from aegis.protocol.requests import Answerer, FollowRequests, RequestNews, RequestPlace
from aegis.requests.records import Record
from aegis.requests.rights import may_see
from aegis.requests.rules import Requests

MAX_FOLLOWERS = 256
"""Streams that may wait for changes."""

AT_ONCE = 16
"""Changed requests in one answer to a stream."""


@attrs.frozen
class _Follower:
    place: RequestPlace
    by: Answerer | None
    reply: Reply[RequestNews]


class Followers:
    """The waiting streams, in one incarnation of the desk."""

    def __init__(self, rules: Requests, incarnation: str) -> None:
        self._rules = rules
        self._incarnation = incarnation
        self._changes: dict[str, int] = {}
        self._count = 0
        self._dropped_at = 0
        self._waiting: list[_Follower] = []

    def changed(self, request_id: str) -> None:
        """Note that a request has changed."""
        self._count += 1
        self._changes.pop(request_id, None)
        self._changes[request_id] = self._count

    def take(self, request: FollowRequests, by: Answerer | None, reply: Reply[RequestNews]) -> None:
        """Answer now, or once there is a change. Raises ``Busy``."""
        self._drop_old()
        place = request.place
        if place is None or not self._is_known(place):
            reply.send(self._snapshot(by))
            return
        follower = _Follower(place, by, reply)
        if not self._answered(follower):
            self._make_room()
            self._waiting.append(follower)

    def look(self) -> None:
        """Answer the streams for which there are changes now."""
        if self._waiting:
            self._waiting = [each for each in self._waiting if not self._answered(each)]

    def _is_known(self, place: RequestPlace) -> bool:
        """Return whether all changes after ``place`` are known."""
        return place.incarnation == self._incarnation and place.change >= self._dropped_at

    def _answered(self, follower: _Follower) -> bool:
        """Answer the stream if there are changes; return whether it is answered."""
        if follower.reply.is_settled:
            return True
        changed = self._changed_after(follower.place.change)
        seen = [each for each in changed if may_see(each, follower.by)][:AT_ONCE]
        if not seen:
            return False
        place = self._place(self._changes[seen[-1].id])
        follower.reply.send(RequestNews(changed=[each.info() for each in seen], place=place))
        return True

    def _changed_after(self, change: int) -> list[Record]:
        newer = []
        for request_id, number in reversed(self._changes.items()):
            if number <= change:
                break
            record = self._rules.find(request_id)
            if record is not None:
                newer.append(record)
        newer.reverse()
        return newer

    def _snapshot(self, by: Answerer | None) -> RequestNews:
        shown = [
            each.info()
            for each in self._rules.shown()
            if each.phase in ("open", "answering") and may_see(each, by)
        ]
        return RequestNews(
            changed=shown,
            open=[each.id for each in shown],
            place=self._place(self._count),
        )

    def _place(self, change: int) -> RequestPlace:
        return RequestPlace(incarnation=self._incarnation, change=change)

    def _drop_old(self) -> None:
        """Drop the changes of requests that the history has dropped."""
        if len(self._changes) > 2 * len(self._rules.kept) + AT_ONCE:
            gone = [each for each in self._changes if self._rules.kept.get(each) is None]
            for each in gone:
                self._dropped_at = max(self._dropped_at, self._changes.pop(each))

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_FOLLOWERS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} streams follow the requests already; close one first")

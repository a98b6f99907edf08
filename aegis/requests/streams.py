"""Lists of requests, and the streams that wait for changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import attrs
import trio

from actors import Reply
from actors.codec import unstructure
from aegis.errors import Busy
from aegis.protocol.naming import name_key
from aegis.protocol.requests import (
    Answerer,
    FollowRequests,
    ListRequests,
    RequestInfo,
    RequestList,
    RequestNews,
    RequestPlace,
)
from aegis.requests.answers import may_see
from aegis.requests.records import Record

MAX_LIST_BYTES = 240 * 1024
"""The limit of the requests in one list, as JSON; at least one is returned."""

MAX_STREAMS = 256
"""Streams that may wait for changes."""

STEP_WORK = 512
KEPT_WORK = 16
"""The rows that are looked at in one step of a list, about a millisecond; one that is kept counts
as so many."""

AT_ONCE = 16
"""Changed requests in one answer to a stream."""


async def list_requests(
    shown: Iterable[Record], request: ListRequests, by: Answerer | None
) -> RequestList:
    """Return the requests that ``by`` asked for and may see, the oldest first.

    ``shown`` are those that wait in their order, or all, the newest first: beyond the limits the
    first of them are returned. Other tasks run in between.
    """
    kept: list[RequestInfo] = []
    size, has_more, work = 0, False, 0
    for record in shown:
        work += 1
        if work >= STEP_WORK:
            work = 0
            await trio.lowlevel.checkpoint()
        if not (may_see(record, by) and _fits(request, record)):
            continue
        info = record.info()
        work += KEPT_WORK
        size += len(json.dumps(unstructure(info), ensure_ascii=False).encode())
        if len(kept) == request.limit or (kept and size > MAX_LIST_BYTES):
            has_more = True
            break
        kept.append(info)
    if not waits_only(request):
        kept.reverse()
    return RequestList(requests=kept, more=has_more)


def waits_only(request: ListRequests) -> bool:
    """Return whether only open requests are asked for."""
    return request.state == "open" and request.id is None


def _fits(request: ListRequests, record: Record) -> bool:
    if request.id is not None:
        return record.id.startswith(request.id)
    if request.handle is not None and name_key(request.handle) != name_key(record.handle):
        return False
    return request.state == "all" or (record.state == "open") == (request.state == "open")


@attrs.frozen
class _Waiting:
    place: RequestPlace
    by: Answerer | None
    reply: Reply[RequestNews]


class RequestStreams:
    """The streams of one incarnation of the desk, which wait for changes of requests.

    ``find`` returns a request as it is shown, ``shown`` at least all open ones. A change has a
    number; of each request the last is known until it is forgotten. A stream that has not seen that
    begins anew.
    """

    def __init__(
        self,
        incarnation: str,
        find: Callable[[str], Record | None],
        shown: Callable[[], Iterable[Record]],
    ) -> None:
        self._incarnation, self._find, self._shown = incarnation, find, shown
        self._changes: dict[str, int] = {}
        self._count = 0
        self._forgotten = 0
        self._waiting: list[_Waiting] = []

    def changed(self, request_id: str) -> None:
        """Note that a request has changed."""
        self._count += 1
        self._changes.pop(request_id, None)  # they are in the order of their numbers
        self._changes[request_id] = self._count

    def remove(self, request_id: str) -> None:
        """Forget a request that is not shown any more."""
        self._forgotten = max(self._forgotten, self._changes.pop(request_id, 0))

    def take(self, request: FollowRequests, by: Answerer | None, reply: Reply[RequestNews]) -> None:
        """Answer now, or once there is a change. Raises ``Busy``."""
        place = request.place
        if place is None or not self._is_known(place):
            reply.send(self._snapshot(by))
            return
        waiting = _Waiting(place, by, reply)
        if not self._is_answered(waiting):
            self._make_room()
            self._waiting.append(waiting)

    def look(self) -> None:
        """Answer the streams for which there are changes now."""
        if self._waiting:
            self._waiting = [each for each in self._waiting if not self._is_answered(each)]

    def _is_known(self, place: RequestPlace) -> bool:
        """Return whether all changes after ``place`` are known."""
        return place.incarnation == self._incarnation and place.change >= self._forgotten

    def _is_answered(self, waiting: _Waiting) -> bool:
        """Answer the stream if there are changes; return whether it is answered."""
        if waiting.reply.is_settled:
            return True
        changed = self._changed_after(waiting.place.change)
        seen = [each for each in changed if may_see(each, waiting.by)][:AT_ONCE]
        if not seen:
            return False
        place = self._place(self._changes[seen[-1].id])
        waiting.reply.send(RequestNews(changed=[each.info() for each in seen], place=place))
        return True

    def _changed_after(self, change: int) -> list[Record]:
        newer = []
        for request_id, number in reversed(self._changes.items()):
            if number <= change:
                break
            record = self._find(request_id)
            if record is not None:
                newer.append(record)
        newer.reverse()
        return newer

    def _snapshot(self, by: Answerer | None) -> RequestNews:
        shown = [
            each.info() for each in self._shown() if each.state == "open" and may_see(each, by)
        ]
        return RequestNews(
            changed=shown, open=[each.id for each in shown], place=self._place(self._count)
        )

    def _place(self, change: int) -> RequestPlace:
        return RequestPlace(incarnation=self._incarnation, change=change)

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_STREAMS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_STREAMS:
            raise Busy(f"{MAX_STREAMS} streams follow the requests already; close one first")

"""The stream of requests to people for the blocking client, made of repeated calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal, Protocol

from aegis.client.stream_kinds import RequestValue
from aegis.protocol.requests import RequestInfo, RequestList
from aegis.protocol.streams import OpenRequestsItem, RequestItem

PAUSE_S = 0.5
"""Seconds between two calls."""

MAX_OPEN = 500
"""Open requests that one call returns, the oldest first."""


class RequestCalls(Protocol):
    """The call that the stream is made of, as ``Requests`` has it."""

    def list(
        self,
        *,
        state: Literal["open", "closed", "all"] = "open",
        id: str | None = None,  # noqa: A002 -- its name on the wire
        limit: int = 50,
    ) -> RequestList:
        """List requests, the oldest first."""
        ...


def requests_of(calls: RequestCalls) -> Iterator[RequestValue]:
    """Yield the ids of all open requests, each of these, and then each that changes."""
    known = _open(calls)
    yield OpenRequestsItem(open=list(known))
    yield from map(_item, known.values())
    while True:
        time.sleep(PAUSE_S)
        found = _open(calls)
        for gone in known.keys() - found.keys():
            yield from map(_item, calls.list(state="all", id=gone).requests)
        for id_, request in found.items():
            if request != known.get(id_):
                yield _item(request)
        known = found


def _open(calls: RequestCalls) -> dict[str, RequestInfo]:
    return {each.id: each for each in calls.list(limit=MAX_OPEN).requests}


def _item(request: RequestInfo) -> RequestItem:
    return RequestItem(request=request)

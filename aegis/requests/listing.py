"""The list of requests that a caller gets. Pure."""

from __future__ import annotations

import json

from actors.codec import unstructure
from aegis.protocol.naming import name_key
from aegis.protocol.requests import Answerer, ListRequests, RequestInfo, RequestList
from aegis.requests.records import SHOWN_AS, Record
from aegis.requests.rights import may_see
from aegis.requests.rules import Requests

MAX_LIST_BYTES = 240 * 1024
"""The limit of the requests in one list, as JSON; at least one is returned."""


def list_requests(rules: Requests, request: ListRequests, by: Answerer | None) -> RequestList:
    """Return the requests that ``by`` asked for and may see, the oldest first.

    Beyond the limits the open ones that have waited longest are returned, of others the newest.
    """
    fitting = [each for each in rules.shown() if may_see(each, by) and _fits(request, each)]
    is_oldest = request.state == "open"
    kept: list[RequestInfo] = []
    size = 0
    for record in fitting if is_oldest else reversed(fitting):
        info = record.info()
        size += len(json.dumps(unstructure(info), ensure_ascii=False).encode())
        if len(kept) == request.limit or (kept and size > MAX_LIST_BYTES):
            break
        kept.append(info)
    if not is_oldest:
        kept.reverse()
    return RequestList(requests=kept, more=len(kept) < len(fitting))


def _fits(request: ListRequests, record: Record) -> bool:
    if request.id is not None:
        return record.id == request.id
    if request.handle is not None and name_key(request.handle) != name_key(record.handle):
        return False
    is_open = SHOWN_AS[record.phase] == "open"
    return request.state == "all" or is_open == (request.state == "open")

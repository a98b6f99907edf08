"""The rows of the ledger of notifications. Pure."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import attrs

from aegis.protocol.push import PushSubscription
from aegis.push.endpoint import read_endpoint

CLIENT, NOTICE = "client/", "notice/"
"""The beginnings of the ids of rows."""


@attrs.frozen(kw_only=True)
class PushClient:
    """A subscribed browser. ``woken`` is the last message to the person that it was notified of."""

    tag: ClassVar[str] = "client"

    id: str
    endpoint: str = attrs.field(repr=False)
    p256dh: str = attrs.field(repr=False)
    auth: str = attrs.field(repr=False)
    label: str = ""
    requests: bool = True
    ends: bool = False
    hides: bool = False
    created: str = ""
    page: str | None = None
    woken: str = ""
    problem: str = ""

    def shown(self) -> PushSubscription:
        """Return the subscription as clients see it."""
        return PushSubscription(
            id=self.id.removeprefix(CLIENT),
            service=read_endpoint(self.endpoint).host,
            label=self.label,
            requests=self.requests,
            ends=self.ends,
            hides=self.hides,
            created_at=self.created,
            page=self.page,
            problem=self.problem,
        )


@attrs.frozen(kw_only=True)
class PushedRequest:
    """A request of which the browsers ``to`` (ids of rows) show a notification."""

    tag: ClassVar[str] = "request"

    id: str
    to: tuple[str, ...] = ()

    def sent(self, client: str) -> PushedRequest:
        """Return the row once a browser was notified."""
        return self if client in self.to else attrs.evolve(self, to=(*self.to, client))

    def withdrawn(self, client: str) -> PushedRequest:
        """Return the row once a browser shows it no more."""
        return attrs.evolve(self, to=tuple(each for each in self.to if each != client))


PushRow = PushClient | PushedRequest


def client_id(endpoint: str) -> str:
    """Return the id of the row of the browser at this address."""
    return CLIENT + hashlib.sha256(endpoint.encode()).hexdigest()[:12]

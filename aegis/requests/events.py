"""The events of requests, and the actions that follow from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from aegis.errors import AegisError
from aegis.journal.ledger import Append
from aegis.protocol.agent_events import RequestAnswer
from aegis.protocol.requests import (
    Answerer,
    AnswerRequest,
    OpenRequest,
    RequestOpened,
    RequestReply,
    Scope,
    WithdrawnRequests,
    WithdrawRequests,
)
from aegis.requests.records import Record

# Events. A ``caller`` is a number under which the actor keeps a reply.


@attrs.frozen(kw_only=True)
class Opening:
    """An owner opens a request; ``id`` is the id that it gets if it is new."""

    request: OpenRequest
    id: str
    caller: int


@attrs.frozen(kw_only=True)
class Answering:
    """A client answers; ``by`` is None for the operator."""

    request: AnswerRequest
    by: Answerer | None
    caller: int


@attrs.frozen(kw_only=True)
class Delivered:
    """The owner replied to an answer, or ended before it could."""

    id: str
    applied: bool
    reason: str = ""


@attrs.frozen(kw_only=True)
class Withdrawing:
    """An owner withdraws requests."""

    request: WithdrawRequests
    caller: int


@attrs.frozen(kw_only=True)
class Renaming:
    """A session has another handle."""

    session: str
    handle: str


@attrs.frozen(kw_only=True)
class OwnerDown:
    """The actor of this owner crashed or stopped."""

    owner: str


@attrs.frozen(kw_only=True)
class Recovering:
    """The ledger was read: ``records`` are the stored requests, in the order of their opening."""

    records: Sequence[Record]


@attrs.frozen(kw_only=True)
class Synced:
    """The line of this number is durable."""

    number: int


@attrs.frozen(kw_only=True)
class Refused:
    """The disk refused: no line without ``Synced`` is in the ledger."""

    sentence: str


Event = (
    Opening
    | Answering
    | Delivered
    | Withdrawing
    | Renaming
    | OwnerDown
    | Recovering
    | Synced
    | Refused
)


# Actions.


@attrs.frozen(kw_only=True)
class Apply:
    """Send the answer to the owner; ``Delivered`` follows."""

    id: str
    owner: str
    key: str
    answer: RequestAnswer
    scope: Scope
    by: str


@attrs.frozen(kw_only=True)
class Return:
    """Answer the caller."""

    caller: int
    value: RequestOpened | RequestReply | WithdrawnRequests


@attrs.frozen(kw_only=True)
class Fail:
    """Fail the caller's request."""

    caller: int
    error: AegisError


@attrs.frozen(kw_only=True)
class Changed:
    """A request that is shown has changed."""

    id: str


@attrs.frozen(kw_only=True)
class Watch:
    """Send ``OwnerDown`` when the actor of this owner crashes or stops."""

    owner: str


Action = Append | Apply | Return | Fail | Changed | Watch

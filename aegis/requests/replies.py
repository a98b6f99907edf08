"""The replies to owners and answerers. Pure."""

from __future__ import annotations

from typing import assert_never

from aegis.errors import InvalidRequest
from aegis.names import shorten
from aegis.protocol.agent_events import ElicitationAnswer, PermissionAnswer, QuestionAnswer
from aegis.protocol.requests import RequestOpened, RequestReply
from aegis.requests.records import SHOWN_AS, Record


def opened(record: Record) -> RequestOpened:
    """Return the reply to the owner of an opened request."""
    return RequestOpened(id=record.id, digest=record.digest, state=SHOWN_AS[record.phase])


def unknown(request_id: str) -> RequestReply:
    """Return the reply to an answer to no known request."""
    return RequestReply(
        id=request_id,
        outcome="unknown",
        text=f"there is no request {request_id}; aegis_request_list lists them",
        by=None,
        at=None,
    )


def acted(record: Record) -> RequestReply:
    """Return the reply to the answer that won and has acted."""
    return RequestReply(
        id=record.id,
        outcome="applied",
        text=f"request {record.id} of {record.handle!r} was answered: {answer_text(record)}",
        by=record.by,
        at=record.answered,
    )


def settled(record: Record) -> RequestReply:
    """Return the reply to an answer to a request that is no longer open."""
    if record.phase == "withdrawn":
        return RequestReply(
            id=record.id,
            outcome="withdrawn",
            text=f"request {record.id} of {record.handle!r} was withdrawn: {record.withdrawn}",
            by=None,
            at=None,
        )
    return RequestReply(
        id=record.id,
        outcome="already_answered",
        text=f"request {record.id} of {record.handle!r} was answered by {record.by} at "
        f"{record.answered}: {answer_text(record)}",
        by=record.by,
        at=record.answered,
    )


def answer_text(record: Record) -> str:
    """Return the answer of a request in a few words."""
    match record.answer:
        case PermissionAnswer(kind=kind, interrupt=interrupt):
            return f"{kind.replace('_', ' ')}{' and end the turn' if interrupt else ''}"
        case QuestionAnswer(answers=answers):
            return "declined" if answers is None else "answered"
        case ElicitationAnswer(action=action):
            return action
        case None:
            return "not answered"
    assert_never(record.answer)


def check_digest(record: Record, digest: str) -> None:
    """Raise ``InvalidRequest`` if an answer was given to something else than this request."""
    if digest != record.digest:
        raise InvalidRequest(
            f"digest {shorten(digest, 12)!r} is not that of request {record.id}, a {record.kind} "
            f"of {record.handle!r} for tool {record.tool!r}: look at it again with "
            "aegis_request_list, and answer with its digest"
        )

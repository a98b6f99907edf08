"""The right to see and to answer a request. Pure."""

from __future__ import annotations

from aegis.errors import Forbidden
from aegis.protocol.naming import name_key
from aegis.protocol.requests import Answerer, AnswerRequest
from aegis.requests.records import Record


def check_right(record: Record, request: AnswerRequest, by: Answerer | None) -> None:
    """Raise ``Forbidden`` unless ``by`` (None: the operator) may give this answer."""
    if by is None:
        return
    if is_own(record, by):
        raise Forbidden(
            f"request {record.id} is your own, {by.handle!r}: a person answers it; wait for that"
        )
    if record.session is not None and record.session in by.ancestors:
        raise Forbidden(
            f"request {record.id} is of {record.handle!r}, which spawned you, {by.handle!r}: "
            "a person answers it"
        )
    if not by.answers_requests:
        raise Forbidden(
            f"{by.handle!r} may not answer requests: a person does, or an agent whose profile has "
            "answers_requests: true"
        )
    if record.needs_person and request.answer == "allow":
        raise Forbidden(f"request {record.id} can only be allowed by a person")


def may_see(record: Record, by: Answerer | None) -> bool:
    """Return whether ``by`` (None: the operator) may see the request."""
    if by is None or is_own(record, by):
        return True
    return by.answers_requests and record.session not in by.ancestors


def is_own(record: Record, by: Answerer) -> bool:
    """Return whether the request is the answerer's own."""
    if record.session is not None and record.session == by.session:
        return True
    return name_key(record.handle) == name_key(by.handle)

"""The lines of the ledger of requests, and the state that they result in. Pure.

    {"kind": "opened", "record": {…}}
    {"kind": "answered", "id": …, "answer": {…}, "scope": …, "by": …, "at": …, "life": …}
    {"kind": "applied", "id": …, "at": …}
    {"kind": "withdrawn", "ids": […], "reason": …}
    {"kind": "renamed", "session": …, "handle": …}

Lines of other kinds, of a later version, are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.protocol.agent_events import RequestAnswer
from aegis.protocol.requests import Scope
from aegis.requests.kept import KeptRequests
from aegis.requests.records import Record

Line = dict[str, object]


@attrs.frozen(kw_only=True)
class _Answered:
    id: str
    answer: RequestAnswer
    scope: Scope
    by: str
    at: str
    life: str | None = None


def opened_line(record: Record) -> Line:
    """Return the line of a new request."""
    return {"kind": "opened", "record": unstructure(attrs.evolve(record, phase="open"))}


def answered_line(record: Record) -> Line:
    """Return the line of an answer, which ``record`` has."""
    assert record.answer is not None
    return {
        "kind": "answered",
        "id": record.id,
        "answer": unstructure(record.answer),
        "scope": record.scope,
        "by": record.by,
        "at": record.answered,
        "life": record.life,
    }


def applied_line(record: Record) -> Line:
    """Return the line that the answer of ``record`` has acted."""
    return {"kind": "applied", "id": record.id, "at": record.applied}


def withdrawn_line(ids: list[str], reason: str) -> Line:
    """Return the line that these requests are withdrawn."""
    return {"kind": "withdrawn", "ids": ids, "reason": reason}


def renamed_line(session: str, handle: str) -> Line:
    """Return the line that a session has another handle."""
    return {"kind": "renamed", "session": session, "handle": handle}


class Fold:
    """The requests that the lines so far result in."""

    def __init__(self) -> None:
        self.records = KeptRequests()
        self.skipped = 0
        """The number of lines that could not be understood."""

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        try:
            self._apply(line)
        except CodecError:
            self.skipped += 1

    def _apply(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "opened", "record": record}:
                self.records.put(structure(Record, record))
            case {"kind": "answered", **fields}:
                found = structure(_Answered, fields)
                # A line of an earlier version has no life.
                life = {} if found.life is None else {"life": found.life}
                self._change(
                    found.id,
                    **life,
                    phase="answered",
                    answer=found.answer,
                    scope=found.scope,
                    by=found.by,
                    answered=found.at,
                )
            case {"kind": "applied", "id": str(request_id), "at": str(moment)}:
                self._change(request_id, phase="applied", applied=moment)
            case {"kind": "withdrawn", "ids": list(ids), "reason": str(reason)}:
                for each in ids:
                    self._change(each, phase="withdrawn", withdrawn=reason)
            case {"kind": "renamed", "session": str(session), "handle": str(handle)}:
                for each in self.records.of_session(session):
                    self._change(each.id, handle=handle)

    def _change(self, request_id: object, **changes: Any) -> None:
        record = self.records.get(request_id) if isinstance(request_id, str) else None
        if record is not None:
            self.records.put(attrs.evolve(record, **changes))

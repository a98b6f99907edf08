"""``Record``: one request as a row of the ledger, its steps, its digest, and how it is shown. Pure.

A step is a function from a request to the request after it. All but the answer are facts: they are
applied again to what a refusing disk has left, so each looks at the request that it gets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from actors.codec import unstructure
from aegis.path_text import is_utf8
from aegis.protocol.agent_events import RequestAnswer, RequestKind, ToolKind
from aegis.protocol.naming import name_key
from aegis.protocol.requests import (
    Choice,
    OpenRequest,
    RequestInfo,
    RequestState,
    Scope,
    WithdrawRequests,
)
from aegis.shown_text import escape_document, escape_line, escape_text, shortened

MAX_WHOLE_BYTES = 64 * 1024
"""The size of an input, with tool and options, as JSON; a larger one can only be denied."""

MAX_DEPTH = 64
"""The depth of nesting of an input that can be allowed."""

MAX_OPTIONS = 64
MAX_TOOL_CHARS = 200
MAX_TITLE_CHARS = 1_000
MAX_REASON_CHARS = 4_000
MAX_WITHDRAWN_CHARS = 1_000
MAX_EXCERPT_CHARS = 4_000

ROW_CHARS = 1_000
"""The size of a request without its texts."""

KIND = "requests"
"""The kind of the archived rows."""

Phase = Literal["open", "answered", "applied", "withdrawn"]
"""The life of a request. It is ``answered`` while its answer is sent to the owner."""

Holder = tuple[str | None, str | None, str | None]
"""A session, a workflow or an asker; two are None."""


def holder_of(request: OpenRequest | WithdrawRequests | Record) -> Holder:
    """Return what a request belongs to; one by ``AskHuman`` outlives the turns of its session."""
    if request.asker is not None:
        return None, None, name_key(request.asker)
    return request.session, request.workflow, None


@attrs.frozen(kw_only=True)
class Record:
    """One request. ``life`` is the life of the daemon in which it was opened, or else answered.

    Texts of the agent are stored escaped, except ``input``; it is None if it is not whole.
    ``withdrawn`` is a reason, ``withdrawn_at`` its moment.
    """

    id: str
    life: str
    owner: str
    key: str
    handle: str
    session: str | None
    turn: str | None
    workflow: str | None
    kind: RequestKind
    tool: str
    tool_kind: ToolKind
    title: str
    reason: str
    input: dict[str, Any] | None = attrs.field(repr=False)
    excerpt: str = attrs.field(repr=False)
    input_bytes: int
    digest: str
    options: list[Choice]
    needs_person: bool
    default_to_no: bool
    no_session_scope: bool
    created: str
    takes_edit: bool = False
    phase: Phase = "open"
    answer: RequestAnswer | None = None
    scope: Scope | None = None
    by: str | None = None
    answered: str | None = None
    applied: str | None = None
    withdrawn: str | None = None
    withdrawn_at: str | None = None
    asker: str | None = None

    @property
    def state(self) -> RequestState:
        """Its state as clients see it."""
        return "answered" if self.phase == "applied" else self.phase

    @property
    def ends_with_owner(self) -> bool:
        """Whether it is withdrawn when its owner stops: a request of a session's process."""
        return self.session is not None and self.asker is None

    @property
    def is_live(self) -> bool:
        """Whether it can still be answered, or its answer has not been applied yet."""
        return self.phase not in ("applied", "withdrawn")

    @property
    def size(self) -> int:
        """About the number of characters that it takes in memory."""
        texts = (self.title, self.reason, self.excerpt, self.key)
        options = sum(len(each.id) + len(each.name) for each in self.options)
        size = 0 if self.input is None else self.input_bytes
        return ROW_CHARS + size + options + sum(map(len, texts))

    @property
    def ended(self) -> str:
        """The moment when it was closed; of one that an older version withdrew, an earlier one."""
        return self.applied or self.withdrawn_at or self.answered or self.created

    @property
    def holder(self) -> Holder:
        """The session, the workflow or the asker that it belongs to."""
        return holder_of(self)

    def info(self) -> RequestInfo:
        """Return it as every face shows it."""
        answer = None if self.answer is None else escape_document(unstructure(self.answer))
        return RequestInfo(
            **{name: getattr(self, name) for name in _SHOWN_UNCHANGED},
            input=escape_document(self.input),
            options=[attrs.evolve(each, id=escape_line(each.id)) for each in self.options],
            answer=answer,
        )


_SHOWN_UNCHANGED = (
    *("id", "digest", "handle", "session", "turn", "workflow", "kind", "tool", "tool_kind"),
    *("title", "reason", "excerpt", "input_bytes", "needs_person", "default_to_no"),
    *(
        "no_session_scope",
        "takes_edit",
        "created",
        "state",
        "scope",
        "by",
        "answered",
        "applied",
        "withdrawn",
    ),
)


def record_of(request: OpenRequest, *, request_id: str, life: str, now: str) -> Record:
    """Return the record of a new request."""
    text = canonical(request)
    whole = text is not None and len(text) <= MAX_WHOLE_BYTES and _is_whole(request)
    shown = _lenient(request.input)
    options = [
        Choice(id=each.id, name=escape_line(each.name), kind=each.kind) for each in request.options
    ]
    return Record(
        id=request_id,
        life=life,
        owner=request.owner,
        key=request.key,
        handle=request.handle,
        session=request.session,
        turn=request.turn,
        workflow=request.workflow,
        asker=request.asker,
        kind=request.kind,
        tool=shortened(escape_line(request.tool[:MAX_TOOL_CHARS]), MAX_TOOL_CHARS),
        tool_kind=request.tool_kind,
        title=shortened(escape_text(request.title[:MAX_TITLE_CHARS]), MAX_TITLE_CHARS),
        reason=shortened(escape_text(request.reason[:MAX_REASON_CHARS]), MAX_REASON_CHARS),
        input=request.input if whole else None,
        excerpt="" if whole else shortened(escape_text(shown[:MAX_EXCERPT_CHARS]), 4000),
        input_bytes=len(shown),
        digest=digest_of(text if text is not None else shown),
        options=options if whole else [],
        needs_person=request.needs_person,
        default_to_no=request.default_to_no,
        no_session_scope=request.no_session_scope,
        takes_edit=request.takes_edit,
        created=now,
    )


# The steps of a request.


def with_answer(
    record: Record, answer: RequestAnswer, *, scope: Scope, by: str, life: str, now: str
) -> Record:
    """A person or an agent has answered it."""
    return attrs.evolve(
        record, phase="answered", answer=answer, scope=scope, by=by, answered=now, life=life
    )


def without_answer(record: Record) -> Record:
    """Return it as it is shown until its answer is durable."""
    return attrs.evolve(record, phase="open", answer=None, scope=None, by=None, answered=None)


def applied(record: Record, now: str) -> Record:
    """Its owner has acted on the answer."""
    return attrs.evolve(record, phase="applied", applied=now)


def withdrawn(record: Record, reason: str, now: str) -> Record:
    """Nobody waits for its answer any more."""
    if not record.is_live:
        return record
    reason = shortened(escape_line(reason), MAX_WITHDRAWN_CHARS)
    return attrs.evolve(record, phase="withdrawn", withdrawn=reason, withdrawn_at=now)


def renamed(record: Record, handle: str) -> Record:
    """Its session has another handle."""
    return attrs.evolve(record, handle=handle)


def lost_with_daemon(record: Record, life: str) -> str:
    """Return why a request is withdrawn in the life ``life`` of the daemon; empty if it is not."""
    if record.life == life:
        return ""
    # The answer to a question by ``AskHuman`` is sent again: a message with the same id.
    if record.phase == "answered" and record.asker is None:
        return "the daemon was restarted before the answer was applied"
    return "the daemon was restarted" if record.phase == "open" and record.ends_with_owner else ""


def lines_of_today(
    line: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return a line that a version before tables has written as lines of today's form."""
    changes: dict[str, Any]
    match line:
        case {"kind": "opened", "record": {"id": str(request_id), **record}}:
            return [{"id": request_id, "set": record}]
        case {"kind": "answered", "id": id_, "answer": answer, "scope": scope, "by": by, "at": now}:
            ids = [id_]
            changes = {"answer": answer, "scope": scope, "by": by, "answered": now}
            changes |= {"phase": "answered"}
            if line.get("life") is not None:  # it was added later than the rest
                changes["life"] = line["life"]
        case {"kind": "applied", "id": id_, "at": str(now)}:
            ids, changes = [id_], {"phase": "applied", "applied": now}
        case {"kind": "withdrawn", "ids": list(ids), "reason": str(reason)}:
            changes = {"phase": "withdrawn", "withdrawn": reason}
        case {"kind": "renamed", "session": str(session), "handle": str(handle)}:
            ids = [key for key, row in rows.items() if row.get("session") == session]
            changes = {"handle": handle}
        case _:
            return []
    return [{"id": each, "set": changes} for each in ids if each in rows]


# What stays known of a request that is archived.


def entries_of(record: Record) -> dict[str, dict[str, Any]]:
    """Return what stays known of a closed request, by name: of the key only if it is answered."""
    outcome = {"end": record.state, "by": record.by, "at": record.answered}
    entries: dict[str, dict[str, Any]] = {id_name(record.id): outcome}
    if record.asker is None and record.phase == "applied":
        known = {"id": record.id, "digest": record.digest}
        entries[key_name(record)] = known
    return entries


def id_name(request_id: str) -> str:
    """Return the name under which an archived request is known."""
    return f"request {request_id}"


def key_name(request: OpenRequest | Record) -> str:
    """Return the name under which the key of a session or workflow is known."""
    return f"key {json.dumps([request.session, request.workflow, request.key])}"


# What an agent asks, and its digest.


def canonical(request: OpenRequest) -> str | None:
    """Return the raw input with tool, kind and options as one JSON text; None if it is no JSON."""
    document = {
        "kind": request.kind,
        "tool": request.tool,
        "tool_kind": request.tool_kind,
        "input": request.input,
        "options": [[each.id, each.name, each.kind] for each in request.options],
    }
    return _json(document)


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _json(document: object) -> str | None:
    try:
        return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _lenient(document: object) -> str:
    """Return a text of any input, for an excerpt."""
    try:
        return json.dumps(document, skipkeys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        return "(an input that is nested too deeply)"


def _is_whole(request: OpenRequest) -> bool:
    """Return whether the input can be shown, stored and sent as it is."""
    texts = [request.tool, *(text for each in request.options for text in (each.id, each.name))]
    if len(request.tool) > MAX_TOOL_CHARS or len(request.options) > MAX_OPTIONS:
        return False
    if not all(map(is_utf8, texts)):
        return False
    ahead: list[tuple[Any, int]] = [(request.input, 1)]
    while ahead:
        value, depth = ahead.pop()
        if isinstance(value, str) and not is_utf8(value):
            return False
        if isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                return False
            # JSON would turn a key that is no text into one: what is shown would not be the input.
            if isinstance(value, dict):
                if not all(isinstance(each, str) and is_utf8(each) for each in value):
                    return False
                value = list(value.values())
            ahead.extend((each, depth + 1) for each in value)
    return True

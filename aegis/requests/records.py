"""``Record``: one request, as it is stored; its digest, and how it is shown. Pure."""

from __future__ import annotations

import hashlib
import json
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
MAX_EXCERPT_CHARS = 4_000

Phase = Literal["opening", "open", "answering", "answered", "applied", "withdrawn"]
"""The life of a request. In ``opening`` and ``answering`` a line is not synced yet."""

SHOWN_AS: dict[Phase, RequestState] = {
    "opening": "open",
    "open": "open",
    "answering": "open",
    "answered": "answered",
    "applied": "answered",
    "withdrawn": "withdrawn",
}


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
    phase: Phase = "opening"
    answer: RequestAnswer | None = None
    scope: Scope | None = None
    by: str | None = None
    answered: str | None = None
    applied: str | None = None
    withdrawn: str | None = None
    asker: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has no durable answer yet."""
        return SHOWN_AS[self.phase] == "open"

    @property
    def ends_with_owner(self) -> bool:
        """Whether it is withdrawn when its owner stops: a request of a session's process."""
        return self.session is not None and self.asker is None

    @property
    def is_live(self) -> bool:
        """Whether it can still be answered, or its answer has not been applied yet."""
        return self.phase not in ("applied", "withdrawn")

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
            state=SHOWN_AS[self.phase],
            answer=answer if SHOWN_AS[self.phase] != "open" else None,
            scope=self.scope if SHOWN_AS[self.phase] != "open" else None,
            by=self.by if SHOWN_AS[self.phase] != "open" else None,
            answered=self.answered if SHOWN_AS[self.phase] != "open" else None,
        )


_SHOWN_UNCHANGED = (
    *("id", "digest", "handle", "session", "turn", "workflow", "kind", "tool", "tool_kind"),
    *("title", "reason", "excerpt", "input_bytes", "needs_person", "default_to_no"),
    *("no_session_scope", "created", "applied", "withdrawn"),
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
        created=now,
    )


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

"""Requests to people: the commands to list and answer them, and the messages of their owners.

A *request* is a question of an agent or a workflow that a person decides. Its *owner* is the actor
that opened it and acts on the answer: a session or a workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from actors.messages import Request
from aegis.protocol.agent_events import (
    OptionKind,
    RequestAnswer,
    RequestKind,
    RequestOption,
    ToolKind,
)
from aegis.protocol.command import (
    MAX_TIMEOUT_S,
    Command,
    at_most_chars,
    between,
    described,
    matching,
)
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE, name_key

RequestState = Literal["open", "answered", "withdrawn"]
Scope = Literal["once", "session"]
Value = str | bool | int | float | list[str]
"""The answer to one question, or the value of one field of a form."""

Decision = Literal["allow", "deny", "cancel"]
Outcome = Literal["applied", "already_answered", "withdrawn", "unknown"]

ID_PATTERN = r"[0-9a-f]{12}"
ID_RULE = "an id from aegis_request_list: 12 digits 0-9 and a-f"
ID_CHARS = 12
BEGINNING_PATTERN = r"[0-9a-f]{4,12}"
BEGINNING_RULE = "an id from aegis_request_list, or its first 4 digits 0-9 and a-f or more"
DIGEST_PATTERN = r"[0-9a-f]{64}"
DIGEST_RULE = "the digest that aegis_request_list showed with this request"

MAX_MESSAGE_CHARS = 8_192
MAX_QUESTION_CHARS = 4_096
MAX_CHOICES = 20
MAX_CHOICE_CHARS = 500
ASK_HUMAN = "ask_human"
"""The tool that a question to a person names, of a session, a client or a workflow."""
MAX_VALUES_CHARS = 65_536


@attrs.frozen(kw_only=True)
class Choice:
    """One option of a permission, as the agent named it."""

    id: str
    name: str
    kind: OptionKind


@attrs.frozen(kw_only=True)
class RequestInfo:
    """A request. Its texts are escaped: a character that would be invisible is ``<U+202E>``.

    ``input`` is the whole input, null if it is too large or cannot be shown: then ``excerpt`` is
    its beginning, and the request can only be denied. ``input_bytes`` is its size as JSON.
    ``turn`` or ``workflow`` names what waits. ``needs_person``: no session may allow it, and no
    single key. ``default_to_no``: preselect the refusal. ``no_session_scope``: once only.
    ``takes_edit``: another text may be approved in place of the plan in its input.

    ``by`` answered it ``answered`` (a time) with ``answer``, which acted at ``applied``.
    ``withdrawn`` is the reason why it can no longer be answered.
    """

    id: str
    digest: str
    handle: str
    session: str | None
    turn: str | None
    workflow: str | None
    kind: RequestKind
    tool: str
    tool_kind: ToolKind
    title: str
    reason: str
    input: dict[str, Any] | None
    excerpt: str
    input_bytes: int
    options: list[Choice]
    created: str
    state: RequestState
    answer: dict[str, Any] | None
    scope: Scope | None
    by: str | None
    answered: str | None
    applied: str | None
    withdrawn: str | None
    needs_person: bool = False
    default_to_no: bool = False
    no_session_scope: bool = False
    takes_edit: bool = False

    @property
    def plan(self) -> str:
        """The text of the plan that the request is to approve; empty: it is for something else."""
        return plan_text(self.tool_kind, self.input)


PLAN = "plan"
"""The value of an answer, and the field of an input, that hold the text of a plan."""


def is_plan(kind: str, tool_kind: str, needs_person: bool) -> bool:
    """Return whether a request with these fields is the approval of a plan."""
    return kind == "permission" and tool_kind == "plan" and needs_person


def plan_text(tool_kind: str, document: Mapping[str, Any] | None) -> str:
    """Return the text of the plan in the input of a request; empty: it has none."""
    text = (document or {}).get(PLAN) if tool_kind == "plan" else None
    return text if isinstance(text, str) else ""


def options_to_name(request: RequestInfo, kind: OptionKind) -> list[Choice]:
    """Return the options of a kind if there are several: an answer must name one of them."""
    alike = {each.id: each for each in request.options if each.kind == kind}
    return [*alike.values()] if len(alike) > 1 else []


def session_words(request: RequestInfo) -> str:
    """Return what the only option that allows for the session covers; empty if it is not named."""
    named = [each.name or each.id for each in request.options if each.kind == "allow_session"]
    return named[0] if len(named) == 1 else ""


@attrs.frozen(kw_only=True)
class RequestList:
    """``requests``, the oldest first; ``more``: others were left out because of a limit."""

    requests: list[RequestInfo]
    more: bool = False


@attrs.frozen(kw_only=True)
class RequestReply:
    """The fate of an answer.

    ``applied``: it acted. ``already_answered``: another answer was first, ``by`` whom and when
    (``at``). ``withdrawn``: nobody waits for an answer any more. ``unknown``: there is no such
    request. ``text`` says it in one sentence.
    """

    id: str
    outcome: Outcome
    text: str
    by: str | None
    at: str | None


@attrs.frozen(kw_only=True)
class ListRequests(Command[RequestList]):
    """List what agents and workflows ask a person: permissions, questions, forms, logins.

    An agent sees its own requests, and those that it may answer.
    """

    state: Literal["open", "closed", "all"] = attrs.field(
        default="open",
        metadata=described("closed: answered or withdrawn."),
    )
    handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described("Only requests of this handle.", pattern=f"^{NAME_PATTERN}$"),
    )
    id: str | None = attrs.field(
        default=None,
        validator=matching(BEGINNING_PATTERN, BEGINNING_RULE),
        metadata=described(
            "Only this one, or those that begin so, in any state.",
            pattern=f"^{BEGINNING_PATTERN}$",
        ),
    )
    limit: int = attrs.field(
        default=50,
        validator=between(1, 500, "requests"),
        metadata=described("Maximum number of requests.", minimum=1, maximum=500),
    )


@attrs.frozen(kw_only=True)
class AnswerRequest(Command[RequestReply]):
    """Answer a request. The first answer wins; a later one gets who answered, and when.

    `digest` names what you were shown: pass it as aegis_request_list returned it.
    """

    id: str = attrs.field(
        validator=matching(ID_PATTERN, ID_RULE),
        metadata=described("The request's id.", pattern=f"^{ID_PATTERN}$"),
    )
    digest: str = attrs.field(
        validator=matching(DIGEST_PATTERN, DIGEST_RULE),
        metadata=described("The request's digest.", pattern=f"^{DIGEST_PATTERN}$"),
    )
    answer: Decision = attrs.field(metadata=described("cancel: refuse and end the turn."))
    scope: Scope = attrs.field(
        default="once",
        metadata=described("session: for its rest; permissions only."),
    )
    option: str = attrs.field(
        default="",
        validator=at_most_chars(MAX_MESSAGE_CHARS),
        metadata=described("The id of an option, where several have the same effect."),
    )
    message: str = attrs.field(
        default="",
        validator=at_most_chars(MAX_MESSAGE_CHARS),
        metadata=described("To the agent, with a refused permission."),
    )
    values: dict[str, Value] = attrs.field(
        factory=dict,
        metadata=described(
            "With allow: each question and its label or labels, or each field and its value, or "
            "`plan` and its edited text."
        ),
    )


@attrs.frozen(kw_only=True)
class PersonAnswer(AnswerRequest):
    """An answer of a person, from a face of their own: only such a one approves a plan."""


@attrs.frozen(kw_only=True)
class HumanAnswer:
    """A question to the person. ``answer`` is null while it is open, and if they declined."""

    request_id: str
    state: RequestState
    answer: str | None


def _check_question(_: Any, attribute: attrs.Attribute[Any], text: str) -> None:
    if not (text.strip() and len(text) <= MAX_QUESTION_CHARS):
        raise ValueError(f"{attribute.name} must have 1 to {MAX_QUESTION_CHARS} characters")


def _check_choices(_: Any, attribute: attrs.Attribute[Any], texts: list[str] | None) -> None:
    if texts is None:
        return
    if len(texts) > MAX_CHOICES or len({*texts}) < len(texts):
        raise ValueError(f"{attribute.name} must hold at most {MAX_CHOICES} different texts")
    if not all(text.strip() and len(text) <= MAX_CHOICE_CHARS for text in texts):
        raise ValueError(f"{attribute.name} must each have 1 to {MAX_CHOICE_CHARS} characters")


@attrs.frozen(kw_only=True)
class AskHuman(Command[HumanAnswer]):
    """Ask the person a question and wait for the answer.

    If it is still open after `wait_s`, its answer comes as a message, and you need not wait.
    """

    question: str = attrs.field(
        validator=_check_question, metadata=described("The question, with what it is about.")
    )
    options: list[str] | None = attrs.field(
        default=None,
        validator=_check_choices,
        metadata=described("Answers to choose from; any other text is possible too."),
    )
    wait_s: float = attrs.field(
        default=50.0,
        validator=between(0, MAX_TIMEOUT_S, "seconds"),
        metadata=described("Seconds to wait.", minimum=0, maximum=MAX_TIMEOUT_S),
    )


# Messages between the desk and the owners of requests.


@attrs.frozen(kw_only=True)
class OpenedRequest:
    """The request is durable and shown. ``state`` is not open if it was opened before."""

    id: str
    digest: str
    state: RequestState


@attrs.frozen(kw_only=True)
class OpenRequest(Request[OpenedRequest]):
    """Open a request: durable once answered.

    ``owner`` gets ``ApplyAnswer``: the path of an actor, or ``group:name`` of the registry. Either
    ``session`` (its immutable id, with ``turn``) or ``workflow`` is set. ``key`` is unique within
    the session or workflow: opening the same key again returns the same request, unless that was
    withdrawn. The other fields are those of ``agent_events.RequestOpened``; they may hold anything
    that an agent sends.

    The requests of a session are withdrawn when its owner crashes or stops, and at a restart of the
    daemon. Those of a workflow stay open. So does one with an ``asker``, the address of a session
    or another handle that asked by ``AskHuman``: of a session it has the id, of others neither.
    Raises ``StorageError`` if the disk refuses, and
    ``Unavailable`` if too many are open.
    """

    owner: str
    handle: str
    key: str
    kind: RequestKind
    session: str | None = None
    turn: str | None = None
    workflow: str | None = None
    asker: str | None = None
    tool: str = ""
    tool_kind: ToolKind = "other"
    title: str = ""
    reason: str = ""
    input: dict[str, Any] = attrs.field(factory=dict, repr=False)
    options: list[RequestOption] = attrs.field(factory=list)
    needs_person: bool = False
    default_to_no: bool = False
    no_session_scope: bool = False
    takes_edit: bool = False


@attrs.frozen(kw_only=True)
class AnswerReceived:
    """The owner's reply to ``ApplyAnswer``: it acted, or ``reason`` says why it did not."""

    applied: bool
    reason: str = ""


@attrs.frozen(kw_only=True)
class ApplyAnswer(Request[AnswerReceived]):
    """Act on the answer to request ``id``, which was opened with ``key``. Sent to its owner.

    The answer is durable. The owner replies once it has acted (a session: its driver wrote the
    frame). After a crash of the desk it gets the message again: it must not act twice, and replies
    as it did the first time.
    """

    id: str
    key: str
    answer: RequestAnswer
    scope: Scope
    by: str


@attrs.frozen(kw_only=True)
class WithdrawnRequests:
    """The ids of the requests that were withdrawn."""

    ids: list[str]


@attrs.frozen(kw_only=True)
class WithdrawRequests(Request[WithdrawnRequests]):
    """Withdraw the unanswered requests of a session, workflow or asker.

    ``keys``, ``ids`` and ``turn`` narrow them: a request fits if each that is given names it. From
    the handling of this message on no answer is sent; the reply comes when it is durable.
    """

    reason: str
    session: str | None = None
    workflow: str | None = None
    asker: str | None = None
    turn: str | None = None
    keys: list[str] | None = None
    ids: list[str] | None = None


@attrs.frozen(kw_only=True)
class WithdrawAsked:
    """Withdraw the open questions of these askers: their sessions are closed."""

    askers: list[str]
    reason: str


@attrs.frozen(kw_only=True)
class RenameRequests:
    """The session is now called ``handle``."""

    session: str
    handle: str


@attrs.frozen(kw_only=True)
class Answerer:
    """A caller of the desk, by its handle.

    ``session`` is its immutable id, None for a handle that is no session; ``ancestors`` are the ids
    of the sessions that spawned it, directly or not. ``answers_requests`` is its profile's.
    """

    handle: str
    session: str | None = None
    ancestors: list[str] = attrs.field(factory=list)
    answers_requests: bool = False

    def owns(self, session: str | None, handle: str) -> bool:
        """Return whether a request of this session or handle is its own."""
        if session is not None and session == self.session:
            return True
        return name_key(handle) == name_key(self.handle)

    def may_see(self, session: str | None, handle: str) -> bool:
        """Return whether it may see a request of this session or handle."""
        is_above = session in self.ancestors
        return self.owns(session, handle) or (self.answers_requests and not is_above)


@attrs.frozen(kw_only=True)
class FindAnswerer(Request[Answerer]):
    """Return what is known of the session with this handle.

    Sent by the desk to the service ``sessions``, whenever a session lists or answers requests.
    """

    handle: str


# Messages between the desk and streams.


@attrs.frozen(kw_only=True)
class RequestPlace:
    """A reader's position: the number of the last change, in one incarnation of the desk."""

    incarnation: str
    change: int


@attrs.frozen(kw_only=True)
class RequestNews:
    """``changed`` requests, in the order of their last changes.

    ``open`` are the ids of all open ones, in an answer to a request without a place, or whose
    place is too old: then ``changed`` are the open requests.
    """

    changed: list[RequestInfo]
    place: RequestPlace
    open: list[str] | None = None


@attrs.frozen(kw_only=True)
class FollowRequests(Request[RequestNews]):
    """Return the requests that changed after ``place``, once there are any; without one, at once.

    ``from_handle`` sees what it may list; None sees all.
    """

    from_handle: str | None = None
    place: RequestPlace | None = None

"""``OpenRequests``: the requests of an agent that wait for a person, and the policy before them.

A permission to use ``aegis_call`` is one to use the tool that the call names: policy, people and
scopes see that tool and its arguments. The agent knows only ``aegis_call``, so its own memory of an
answer for the session would allow every tool. Such an answer is kept here, and the agent gets one
for this call. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from aegis.agents.drivers.harness import OWN_PREFIX
from aegis.agents.sessions import steps
from aegis.errors import InvalidRequest
from aegis.protocol import agent_events as ev
from aegis.protocol.requests import is_plan
from aegis.protocol.table import BY_TOOL
from aegis.protocol.tool_sets import CALL_TOOL, called

MAX_OPEN = 64
"""Open requests of one session; a further one is denied at once."""

NOBODY = "nobody answered"
"""The reason of a request that has expired. It is no denial: no person has decided."""

Policy = Callable[[ev.RequestOpened], tuple[ev.RequestAnswer, str] | None]
"""Answers a request by the profile, with the reason; None: a person is asked."""


class OpenRequests:
    """The open requests of one agent's process, by the agent's ids."""

    def __init__(
        self, policy: Policy, note_allowed: Callable[[ev.RequestOpened, bool], None]
    ) -> None:
        self.policy = policy
        self._note_allowed = note_allowed
        self._open: dict[str, ev.RequestOpened] = {}
        self._due: dict[str, float] = {}  # only of requests that expire
        self._by_call: set[str] = set()
        self._of_session: dict[str, ev.OptionKind] = {}

    def __len__(self) -> int:
        return len(self._open)

    def named(self, request: ev.RequestOpened) -> ev.RequestOpened:
        """Return the request with the tool that it is for, if it is for ``aegis_call``."""
        if request.kind != "permission" or request.tool != OWN_PREFIX + CALL_TOOL.tool:
            return request
        self._by_call = {each for each in self._by_call if each in self._open} | {request.id}
        return inner_request(request)

    def decide(self, request: ev.RequestOpened) -> tuple[ev.RequestAnswer, str] | None:
        """Open the request, or return its answer and the reason; None: a person is asked.

        An open id is not opened again: the agent repeats itself.
        """
        decided = self.policy(request)
        if decided is not None:
            self._note(request, decided[0])
            return decided
        kept = self._of_session.get(request.tool) if request.id in self._by_call else None
        if kept is not None and not request.needs_person:
            name = request.tool.removeprefix(OWN_PREFIX)
            why = f"a person answered calls of {name} for this session"
            self._note(request, ev.PermissionAnswer(kind=kept))
            return ev.PermissionAnswer(kind=kept, message="" if kept == "allow_once" else why), why
        if len(self._open) >= MAX_OPEN and request.id not in self._open:
            why = f"{MAX_OPEN} requests are open already"
            return refusal(request, why), why
        self._open.setdefault(request.id, request)
        return None

    def _note(self, request: ev.RequestOpened, answer: ev.RequestAnswer) -> None:
        """Note a permission that is given, before the agent knows it."""
        if isinstance(answer, ev.PermissionAnswer) and answer.kind.startswith("allow"):
            self._note_allowed(request, answer.kind == "allow_session")

    def is_open(self, request: str) -> bool:
        """Whether an answer to this request can still act."""
        return request in self._open

    def limit(
        self, request: ev.RequestOpened, within_s: float | None, now: float
    ) -> list[steps.Output]:
        """Limit the wait for the answer to an open request; return the timer."""
        if within_s is None or request.kind == "login":  # a login holds no turn up
            return []
        self._due[request.id] = now + within_s
        return self._next_expiry(now)

    def due(self, now: float) -> list[str]:
        """Return the open requests that expire at ``now``."""
        return [each for each, due in self._due.items() if due <= now and each in self._open]

    def expire(self, now: float) -> list[steps.Output]:
        """Refuse and withdraw the requests that are due: their agent is not held up for ever."""
        outputs: list[steps.Output] = []
        for request in self.due(now):
            answer = refusal(self._open.pop(request), NOBODY)
            outputs.append(steps.AnswerAgent(request=request, answer=answer, is_ours=True))
            outputs.append(_withdrawn([request], NOBODY))
        return [*outputs, *self._next_expiry(now)]

    def _next_expiry(self, now: float) -> list[steps.Output]:
        self._due = {each: due for each, due in self._due.items() if each in self._open}
        if not self._due:
            return []
        return [steps.SetTimer(timer="answer", after_s=max(0.0, min(self._due.values()) - now))]

    def answered(self, request: str, answer: ev.RequestAnswer) -> list[steps.Output]:
        """Return the output for an answer: it acts, unless the request was withdrawn meanwhile."""
        event = self._open.pop(request, None)
        if event is None:
            return [_withdrawn([request], "the agent no longer waits for the answer")]
        self._note(event, answer)
        reason, approves = "", False
        if isinstance(answer, ev.PermissionAnswer):
            is_of_plan = is_plan(event.kind, event.tool_kind, event.needs_person)
            approves = is_of_plan and answer.kind.startswith("allow")
            reason = "" if event.takes_reason else answer.message
            if request in self._by_call:
                answer = self._for_this_call(event, answer)
        return [
            steps.AnswerAgent(request=request, answer=answer, reason=reason, approves_plan=approves)
        ]

    def not_shown(self, request: str) -> list[steps.Output]:
        """Return the output for a request that no person will see."""
        event = self._open.pop(request, None)
        if event is None:
            return [_withdrawn([request], "the agent no longer waits for the answer")]
        answer = refusal(event, "too many requests are open, or this one cannot be shown")
        return [steps.AnswerAgent(request=request, answer=answer, is_ours=True)]

    def _for_this_call(
        self, event: ev.RequestOpened, answer: ev.PermissionAnswer
    ) -> ev.PermissionAnswer:
        """Return the answer for one call; keep one for the session."""
        once: ev.OptionKind | None = _ONCE.get(answer.kind)
        if once is None:
            return answer
        self._of_session[event.tool] = once
        option = next((each.id for each in event.options if each.kind == once), "")
        return attrs.evolve(answer, kind=once, option=option)

    def withdraw(self, request: str, reason: str) -> list[steps.Output]:
        """Return the output for a request that the agent withdrew."""
        return [] if self._open.pop(request, None) is None else [_withdrawn([request], reason)]

    def withdraw_all(self, reason: str) -> list[steps.Output]:
        """Return the output for the end of all open requests."""
        requests = [*self._open]
        self._open.clear()
        self._by_call.clear()  # the next process may use the ids for other requests
        return [_withdrawn(requests, reason)] if requests else []


_ONCE: dict[ev.OptionKind, ev.OptionKind] = {"allow_session": "allow_once", "deny_session": "deny"}


def inner_request(request: ev.RequestOpened) -> ev.RequestOpened:
    """Return a permission for ``aegis_call`` as one for the tool that the call names.

    If the agent does not show which, it stays as it is, and can be answered only once.
    """
    once = [each for each in request.options if each.kind not in _ONCE]
    alone = attrs.evolve(request, options=once, no_session_scope=True)
    try:
        tool, arguments = called(request.input)
    except InvalidRequest:
        return alone
    if tool not in BY_TOOL:
        return alone
    inner = attrs.evolve(request, tool=OWN_PREFIX + tool, title=tool, input=arguments)
    if request.options and all(each.kind != "allow_once" for each in once):
        return attrs.evolve(inner, options=once, no_session_scope=True)
    lasting = {each.kind: each for each in request.options if each.kind in _ONCE}
    named = [attrs.evolve(each, name=_LASTING[each.kind].format(tool)) for each in lasting.values()]
    return attrs.evolve(inner, options=[*once, *named])


_LASTING: dict[ev.OptionKind, str] = {
    "allow_session": "Allow {} for this session",
    "deny_session": "Deny {} for this session",
}


def refusal(request: ev.RequestOpened, why: str) -> ev.RequestAnswer:
    """Return the answer that refuses a request, with a sentence for the agent if it takes one."""
    match request.kind:
        case "permission":
            return ev.PermissionAnswer(kind="deny", message=why)
        case "question":
            return ev.QuestionAnswer(answers=None)
        case "elicitation" | "login":
            return ev.ElicitationAnswer(action="cancel")


def _withdrawn(requests: Iterable[str], reason: str) -> steps.WithdrawAtDesk:
    return steps.WithdrawAtDesk(requests=tuple(requests), reason=reason)

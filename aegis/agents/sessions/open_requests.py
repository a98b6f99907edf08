"""``OpenRequests``: the requests of an agent that wait for a person, and the policy before them.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aegis.agents.sessions import steps
from aegis.protocol import agent_events as ev

MAX_OPEN = 64
"""Open requests of one session; a further one is denied at once."""

NOBODY = "nobody answered"
"""The reason of a request that has expired. It is no denial: no person has decided."""

Policy = Callable[[ev.RequestOpened], tuple[ev.RequestAnswer, str] | None]
"""Answers a request by the profile, with the reason; None: a person is asked."""


class OpenRequests:
    """The open requests of one agent's process, by the agent's ids."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._open: dict[str, ev.RequestOpened] = {}
        self._due: dict[str, float] = {}  # only of requests that expire

    @property
    def oldest(self) -> ev.RequestOpened | None:
        """The request that has waited longest."""
        return next(iter(self._open.values()), None)

    def __len__(self) -> int:
        return len(self._open)

    def decide(self, request: ev.RequestOpened) -> tuple[ev.RequestAnswer, str] | None:
        """Open the request, or return its answer and the reason; None: a person is asked.

        An open id is not opened again: the agent repeats itself.
        """
        decided = self.policy(request)
        if decided is not None:
            return decided
        if len(self._open) >= MAX_OPEN and request.id not in self._open:
            why = f"{MAX_OPEN} requests are open already"
            return refusal(request, why), why
        self._open.setdefault(request.id, request)
        return None

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
        return [steps.Wake(timer="answer", after_s=max(0.0, min(self._due.values()) - now))]

    def take(self, step: steps.Answered | steps.NotShown) -> list[steps.Output]:
        """Return the output for an answer, or for a request that no person will see.

        It acts, unless the request was withdrawn meanwhile.
        """
        event = self._open.pop(step.request, None)
        if event is None:
            return [_withdrawn([step.request], "the agent no longer waits for the answer")]
        if isinstance(step, steps.Answered):
            answer = step.answer
            reason = ""
            if isinstance(answer, ev.PermissionAnswer) and not event.takes_reason:
                reason = answer.message
            return [steps.AnswerAgent(request=step.request, answer=answer, reason=reason)]
        answer = refusal(event, "too many requests are open, or this one cannot be shown")
        return [steps.AnswerAgent(request=step.request, answer=answer, is_ours=True)]

    def withdraw(self, request: str, reason: str) -> list[steps.Output]:
        """Return the output for a request that the agent withdrew."""
        return [] if self._open.pop(request, None) is None else [_withdrawn([request], reason)]

    def withdraw_all(self, reason: str) -> list[steps.Output]:
        """Return the output for the end of all open requests."""
        requests = [*self._open]
        self._open.clear()
        return [_withdrawn(requests, reason)] if requests else []


def refusal(request: ev.RequestOpened, why: str) -> ev.RequestAnswer:
    """Return the answer that refuses a request, with a sentence for the agent if it takes one."""
    match request.kind:
        case "permission":
            return ev.PermissionAnswer(kind="deny", message=why)
        case "question":
            return ev.QuestionAnswer(answers=None)
        case "elicitation" | "login":
            return ev.ElicitationAnswer(action="cancel")


def _withdrawn(requests: Iterable[str], reason: str) -> steps.WithdrawRequests:
    return steps.WithdrawRequests(requests=tuple(requests), reason=reason)

"""The metrics of a session: the agent's own accounting, over turns, processes and kills. Pure.

Times are in seconds of one clock and are passed in. The same events give the same metrics, so they
can be restored from a transcript.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import attrs

from aegis.protocol.agent_events import AgentEvent, Result, StateChanged, SystemInit, Usage

MAX_TOKENS = 2**53 - 1
MAX_USD = 1e12
"""The largest figures of an agent that count: a sum of them is always a number in JSON."""

WARNING_SHARE = 0.8
"""The share of a budget at which a warning is due."""

Budget = Literal["warning", "reached"]


@attrs.frozen(kw_only=True)
class Metrics:
    """The figures of a session so far; None: the agent did not report it.

    ``input_tokens`` include the cached ones. ``context_tokens`` is the size of the last request's
    prompt, never a sum; ``context_limit`` is the model's limit. ``turns_s`` is the time spent in
    turns, ``last_turn_s`` that of the last one.
    """

    turns: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    context_tokens: int | None = None
    context_limit: int | None = None
    turns_s: float = 0.0
    last_turn_s: float | None = None

    @property
    def cached_percent(self) -> float | None:
        """The share of the input that came from the cache; None if unknown."""
        return _percent(self.cached_tokens, self.input_tokens)

    @property
    def context_percent(self) -> float | None:
        """The share of the model's context that the last request used; None if unknown."""
        return _percent(self.context_tokens, self.context_limit)


class Meter:
    """Collects the metrics of one session."""

    def __init__(self) -> None:
        self._totals = Metrics()
        # The metrics that were shown last, and what they were made of: they are read much more
        # often than they change.
        self._basis: tuple[object, ...] = ()
        self._shown = self._totals
        # The requests of the current turn, and the last of them: its figures may still grow. A
        # process that is killed reports no others.
        self._requests, self._request = Usage(), Usage()
        self._began: float | None = None
        self._conversation = ""
        # The process's cost as it was last reported, and the part of it that is in the totals. The
        # difference is the cost of the current turn: a process that is killed reports no other.
        self._reported_usd: float | None = None
        self._counted_usd = 0.0

    @property
    def cost_usd(self) -> float | None:
        """The cost so far, with that of the current turn as far as it was reported."""
        cost_usd = self._totals.cost_usd
        if self._reported_usd is not None:
            cost_usd = _added(cost_usd, self._open_usd)
        return cost_usd

    @property
    def metrics(self) -> Metrics:
        """The metrics so far, with those of the current turn as far as they were reported."""
        basis = (self._totals, self.cost_usd, self._requests, self._request)
        if self._basis != basis:
            self._basis = basis
            shown = attrs.evolve(self._totals, cost_usd=self.cost_usd)
            self._shown = _with(_with(shown, self._requests), self._request)
        return self._shown

    def fields(self) -> dict[str, Any]:
        """Return the meter as an object of JSON values."""
        return {
            "totals": attrs.asdict(self._totals),
            "began": self._began,
            "conversation": self._conversation,
            "reported_usd": self._reported_usd,
            "counted_usd": self._counted_usd,
            **({"requests": opened} if (opened := self._opened()) else {}),
        }

    def _opened(self) -> list[dict[str, Any]]:
        """Return the requests of the current turn as JSON values, none if there was none."""
        opened = [self._requests, self._request]
        known = [attrs.asdict(each, filter=lambda _, value: bool(value)) for each in opened]
        return known if any(known) else []

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Meter:
        """Return the meter of which ``fields`` made an object. Raises ``KeyError``, ``TypeError``.

        It continues as the other would.
        """
        meter = cls()
        meter._totals = Metrics(**fields["totals"])
        meter._began = fields["began"]
        meter._conversation = fields["conversation"]
        meter._reported_usd = fields["reported_usd"]
        meter._counted_usd = fields["counted_usd"]
        if "requests" in fields:
            meter._requests, meter._request = (Usage(**each) for each in fields["requests"])
        return meter

    def begin_turn(self, now: float) -> None:
        """Note the begin of a turn; a turn that already runs continues."""
        if self._began is None:
            self._began = now

    def take(self, event: AgentEvent, now: float) -> None:
        """Take the next event of the agent."""
        match event:
            case Usage():
                self._take_usage(event)
            case Result():
                self._totals = attrs.evolve(self._totals, turns=self._totals.turns + 1)
                self.end_turn(now)
            case StateChanged(state="running"):
                self.begin_turn(now)
            case SystemInit(conversation=conversation) if conversation:
                self._take_conversation(conversation)
            case _:
                pass

    def end_turn(self, now: float) -> None:
        """Note the end of a turn, with or without a result of the agent. Idempotent."""
        if self._began is None:
            return
        lasted_s = max(0.0, now - self._began)
        self._began = None
        self._totals = attrs.evolve(
            self._totals, turns_s=self._totals.turns_s + lasted_s, last_turn_s=lasted_s
        )

    def end_process(self, now: float) -> None:
        """Note the end of the agent's process, by itself or by a kill. Idempotent."""
        self._settle(self._open_usd)
        self._totals = _with(_with(self._totals, self._requests), self._request)
        self._requests = self._request = Usage()
        self.end_turn(now)

    @property
    def _open_usd(self) -> float:
        reported = self._reported_usd
        return 0.0 if reported is None else max(0.0, reported - self._counted_usd)

    def _take_usage(self, usage: Usage) -> None:
        self._totals = attrs.evolve(
            self._totals,
            context_tokens=_latest(self._totals.context_tokens, usage.context_tokens),
            context_limit=_latest(self._totals.context_limit, usage.context_limit),
        )
        if usage.request:
            self._take_request(usage)
        elif usage.input_tokens is not None or usage.output_tokens is not None:
            self._requests = self._request = Usage()  # all of them are in those of the turn
            self._totals = _with(self._totals, usage)
        process, turn = _amount(usage.process_cost_usd), _amount(usage.turn_cost_usd)
        if process is not None:
            if process < self._counted_usd:
                self._settle(self._open_usd)
                self._counted_usd = 0.0  # the agent counts from zero: a new process, or /clear
            self._reported_usd = process
        if turn is not None:
            self._settle(turn)

    def _take_request(self, usage: Usage) -> None:
        if usage.request != self._request.request:
            self._requests, self._request = _with(self._requests, self._request), Usage()
        self._request = Usage(
            request=usage.request,
            input_tokens=_latest(self._request.input_tokens, usage.input_tokens),
            cached_tokens=_latest(self._request.cached_tokens, usage.cached_tokens),
            output_tokens=_latest(self._request.output_tokens, usage.output_tokens),
        )

    def _settle(self, usd: float) -> None:
        """Add a cost to the totals; what the process reported so far is covered by it."""
        if usd or self._reported_usd is not None:
            cost = _added(self._totals.cost_usd, usd)
            self._totals = attrs.evolve(self._totals, cost_usd=cost)
        if self._reported_usd is not None:
            self._counted_usd = self._reported_usd

    def _take_conversation(self, conversation: str) -> None:
        if self._conversation and conversation != self._conversation:
            self._totals = attrs.evolve(self._totals, context_tokens=None)
        self._conversation = conversation


def budget_crossed(
    before: float | None, after: float | None, budget: float | None
) -> Budget | None:
    """Return the mark of a budget that a cost passed between two moments; None if it passed none.

    The warning is due at 80 % of the budget, and the session stops at 100 %.
    """
    if budget is None or after is None:
        return None
    past = before or 0.0
    if past < budget <= after:
        return "reached"
    if past < budget * WARNING_SHARE <= after < budget:
        return "warning"
    return None


Counted = TypeVar("Counted", Metrics, Usage)


def _with(total: Counted, more: Usage) -> Counted:
    """Return a total with the tokens of a request or a turn added."""
    return attrs.evolve(
        total,
        input_tokens=_sum(total.input_tokens, more.input_tokens),
        cached_tokens=_sum(total.cached_tokens, more.cached_tokens),
        output_tokens=_sum(total.output_tokens, more.output_tokens),
    )


def _sum(total: int | None, more: int | None) -> int | None:
    """Return the sum of a total and a count; a count that is no count is left out."""
    count = _latest(None, more)
    return total if count is None else (total or 0) + count


def _latest(before: int | None, now: int | None) -> int | None:
    return now if type(now) is int and 0 <= now <= MAX_TOKENS else before


def _amount(usd: float | None) -> float | None:
    """Return a cost as reported; None if it is no cost."""
    if usd is None or type(usd) not in (int, float) or not 0 <= usd <= MAX_USD:
        return None
    return usd


def _added(total: float | None, more: float) -> float:
    return (total or 0.0) + more


def _percent(part: int | None, whole: int | None) -> float | None:
    if part is None or not whole:
        return None
    return min(100.0, 100.0 * part / whole)

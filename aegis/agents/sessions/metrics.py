"""The metrics of a session: the agent's own accounting, over turns, processes and kills. Pure.

Times are in seconds of one clock and are passed in. The same events give the same metrics, so they
can be restored from a transcript.
"""

from __future__ import annotations

from typing import Any, Literal

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
        # The totals that were shown last, and the metrics made of them: they are read much more
        # often than they change.
        self._basis = self._shown = self._totals = Metrics()
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
        """The metrics so far, with the cost of the current turn as far as it was reported."""
        cost_usd = self.cost_usd
        if self._basis is not self._totals or self._shown.cost_usd != cost_usd:
            self._basis, self._shown = self._totals, attrs.evolve(self._totals, cost_usd=cost_usd)
        return self._shown

    def fields(self) -> dict[str, Any]:
        """Return the meter as an object of JSON values."""
        return {
            "totals": attrs.asdict(self._totals),
            "began": self._began,
            "conversation": self._conversation,
            "reported_usd": self._reported_usd,
            "counted_usd": self._counted_usd,
        }

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
        self.end_turn(now)

    @property
    def _open_usd(self) -> float:
        reported = self._reported_usd
        return 0.0 if reported is None else max(0.0, reported - self._counted_usd)

    def _take_usage(self, usage: Usage) -> None:
        totals = self._totals
        self._totals = attrs.evolve(
            totals,
            input_tokens=_sum(totals.input_tokens, usage.input_tokens),
            cached_tokens=_sum(totals.cached_tokens, usage.cached_tokens),
            output_tokens=_sum(totals.output_tokens, usage.output_tokens),
            context_tokens=_latest(totals.context_tokens, usage.context_tokens),
            context_limit=_latest(totals.context_limit, usage.context_limit),
        )
        process, turn = _amount(usage.process_cost_usd), _amount(usage.turn_cost_usd)
        if process is not None:
            if process < self._counted_usd:
                self._settle(self._open_usd)
                self._counted_usd = 0.0  # the agent counts from zero: a new process, or /clear
            self._reported_usd = process
        if turn is not None:
            self._settle(turn)

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


def budget_left(cost: float | None, budget: float) -> float:
    """Return the rest of a budget in US dollars, at least 0."""
    return max(0.0, budget - (cost or 0.0))


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

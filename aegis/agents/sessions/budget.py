"""``SessionBudget``: the limits on the cost of one session, its own and that of its tree. Pure."""

from __future__ import annotations

from aegis.agents.sessions.metrics import Meter, budget_crossed
from aegis.agents.sessions.settings import Settings
from aegis.agents.sessions.steps import Notify, Output, SetTimer
from aegis.protocol.agent_events import AgentEvent

LOOK_AGAIN_S = 300.0
"""Seconds after which a session looks again whether its tree may work."""


class SessionBudget:
    """Holds turns back; ``reason`` says why, and is empty while turns may open."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.reason = ""

    def measure(self, meter: Meter, event: AgentEvent, now: float) -> list[Output]:
        """Have ``meter`` take an event; return the notification of a mark that the cost passed."""
        before = meter.cost_usd
        meter.take(event, now)
        after = meter.cost_usd
        if after == before:
            return []
        self.settings.note_cost(max(0.0, (after or 0.0) - (before or 0.0)), now)
        budget = self.settings.budget_usd
        mark = budget_crossed(before, after, budget)
        if mark is None or budget is None:
            return []
        next_one = (
            "no further turn opens" if mark == "reached" else "at 100 % no further turn opens"
        )
        session, name = self.settings.session, self.settings.name()
        return [
            Notify(
                id=f"session:{session}/budget:{budget:g}/{mark}",
                handle=self.settings.supervisor,
                body=f"the agent {name!r} cost {after:.2f} of its {budget:.2f} USD; {next_one}: "
                f"{REMEDY}",
            )
        ]

    def holds(self, cost: float | None, now: float) -> list[Output] | None:
        """Return the outputs while no turn may open; None if one may."""
        budget = self.settings.budget_usd
        if budget is not None and (cost or 0.0) >= budget:
            self.reason = f"{cost or 0.0:.2f} of {budget:.2f} USD are spent: {REMEDY}"
            return []
        self.reason = self.settings.refuse_work(now) or ""
        return [SetTimer(timer="limit", after_s=LOOK_AGAIN_S)] if self.reason else None


REMEDY = "close it, or raise its budget with agent set --budget"

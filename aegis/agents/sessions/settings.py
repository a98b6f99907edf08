"""``Settings``: the parts of a session's machine that never change. Pure."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from aegis.agents.sessions.open_requests import Policy
from aegis.agents.sessions.steps import LogIn


@attrs.frozen(kw_only=True)
class Settings:
    """``session`` is the id. ``max_runtime_s`` limits one turn; None: no limit.

    ``budget_usd`` is the cost at which no further turn opens. ``note_cost`` counts a cost for the
    session's tree at a moment; ``refuse_work`` returns why the tree may not begin a turn at a
    moment, None if it may. ``supervisor`` is the handle that is warned of the budget. ``login`` is
    the order by which a person logs in to the agent.
    """

    session: str
    policy: Policy
    max_runtime_s: float | None = None
    budget_usd: float | None = None
    supervisor: str = "human"
    note_cost: Callable[[float, float], None] = lambda usd, now: None
    refuse_work: Callable[[float], str | None] = lambda now: None
    login: LogIn | None = None

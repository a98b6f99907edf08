"""``Settings``: the parts of a session's machine that only a person changes. Pure."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from aegis.agents.drivers.commands import Mentions
from aegis.agents.sessions.edited_files import EditedFiles
from aegis.agents.sessions.open_requests import Policy
from aegis.agents.sessions.steps import LogIn
from aegis.protocol.agent_events import RequestOpened

START_AGAIN_S = 2.0
"""Seconds between two tries to start the agent."""

STORE_AGAIN_S = 1.0
"""Seconds after which entries that the disk refused are written again."""

INTERRUPT_S = 15.0
"""Seconds that an agent has to end a turn that exceeded its time; then its process is ended."""

LIMIT_S = 300.0
"""Seconds after which a limited agent is tried again if it does not say when the limit ends."""


@attrs.frozen(kw_only=True)
class Settings:
    """``session`` is the id; ``name`` returns its current handle.

    ``max_runtime_s`` limits one turn, ``answer_within_s`` the wait for the answer to a request;
    None: no limit. ``budget_usd`` is the cost at which no further turn opens. ``note_cost`` counts
    a cost for the session's tree at a moment; ``refuse_work`` returns why the tree may not begin a
    turn at a moment, None if it may. ``supervisor`` is the handle that is warned of the budget.
    ``login`` is the order by which a person logs in to the agent. ``reopened`` counts how often a
    person opened the session again after a close; ``forked_from`` is the session whose conversation
    it copied.
    ``note_allowed`` takes a permission that was given, and whether it is for the session.
    ``limits_itself``: the agent's program was started with the budget as a limit of its own, so a
    change needs another process, as one of the ``effort`` or ``thinking`` does.
    ``edited`` has the files that all sessions have changed.
    ``mentions``: what the agent expands in a text.
    ``permission`` and ``model`` are shown only: the driver and the policy have theirs.
    """

    session: str
    policy: Policy
    name: Callable[[], str]
    max_runtime_s: float | None = None
    answer_within_s: float | None = None
    budget_usd: float | None = None
    limits_itself: bool = False
    supervisor: str = "human"
    note_cost: Callable[[float, float], None] = lambda usd, now: None
    refuse_work: Callable[[float], str | None] = lambda now: None
    note_allowed: Callable[[RequestOpened, bool], None] = lambda request, lasts: None
    login: LogIn | None = None
    reopened: int = 0
    forked_from: str | None = None
    mentions: Mentions = ""
    permission: str = ""
    model: str = ""
    effort: str = ""
    edited: EditedFiles = attrs.field(factory=EditedFiles)
    thinking: str = ""

"""``Settings``: the parts of a session that only a person changes, and their changes while it runs.

``SessionBudget`` holds turns back that would cost too much.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import attrs

from actors import ActorError, Ref, Reply
from actors.messages import Request
from aegis.agents import messages as msg
from aegis.agents.drivers.commands import Mentions
from aegis.agents.drivers.harness import Permission
from aegis.agents.sessions.edited_files import EditedFiles
from aegis.agents.sessions.metrics import Meter, budget_crossed
from aegis.agents.sessions.open_requests import Policy
from aegis.agents.sessions.steps import LogIn, Notify, Output, SetTimer
from aegis.protocol.agent_events import AgentEvent, RequestOpened

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
    ``edited`` has the files that all sessions have changed. ``rewinds``: the agent can set its
    files back.
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
    rewinds: bool = False


LOOK_AGAIN_S = 300.0
"""Seconds after which a session looks again whether its tree may work, and a usage limit has ended:
a timer does not count the time for which the machine slept."""


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
                f"{self._remedy()}",
            )
        ]

    def holds(self, cost: float | None, now: float) -> list[Output] | None:
        """Return the outputs while no turn may open; None if one may."""
        budget = self.settings.budget_usd
        if budget is not None and (cost or 0.0) >= budget:
            self.reason = f"{cost or 0.0:.2f} of {budget:.2f} USD are spent: {self._remedy()}"
            return []
        self.reason = self.settings.refuse_work(now) or ""
        return [SetTimer(timer="look", after_s=LOOK_AGAIN_S)] if self.reason else None

    def _remedy(self) -> str:
        name = self.settings.name()
        return f"close it, or raise its budget with agent set {name} --budget USD"


CHECK_S = 5.0
"""Seconds that the driver of an agent has to check a change; it has what it needs."""

CHANGE_S = 30.0
"""Seconds that an agent has to answer a change of its model or permission."""


@attrs.frozen
class ResumeAgent:
    """Start the agent without waiting for a message; ``login``: by this method of its own."""

    login: str = ""


@attrs.frozen(kw_only=True)
class ChangeSettings(Request[str | None]):
    """Replace the settings of a session, and the agent's model and permission where given.

    The reply is None, or one sentence that says why the agent did not take them.
    """

    settings: Settings
    model: str | None = None
    permission: Permission | None = None
    effort: str | None = None
    thinking: str | None = None


@attrs.frozen(kw_only=True)
class PlanApproved:
    """A person has approved the plan of a session, and its agent has the answer.

    ``with_edits``: edits of files are approved too. Sent to the directory.
    """

    session: str
    with_edits: bool


async def refusal_of_agent(change: ChangeSettings, driver: Ref[Any]) -> str | None:
    """Return why a running agent cannot be started with the changed settings; None if it can."""
    effort, thinking = change.effort, change.thinking
    if change.model is not None:  # another model may not have what is set already
        effort = effort or change.settings.effort or None
        thinking = thinking or change.settings.thinking or None
    if effort is None and thinking is None:
        return None
    check = msg.CheckSettings(effort=effort, thinking=thinking, model=change.model)
    try:
        refusal: str | None = await driver.ask(check, timeout=CHECK_S)
    except ActorError:
        return None  # it has ended: the next start checks it
    return refusal


async def change_agent(
    change: ChangeSettings, driver: Ref[Any] | None, reply: Reply[str | None], model: str
) -> None:
    """Have a running agent take the change, all or nothing; without one the next start has it.

    ``model`` is the agent's own before the change; ``""``: it is not known.
    """
    refusal: str | None = None
    if driver is not None:
        # If the agent has ended, or does not answer, its next start has the change.
        with contextlib.suppress(ActorError):
            refusal = await _order(change, driver, model)
    reply.send(refusal)


async def _order(change: ChangeSettings, driver: Ref[Any], model: str) -> str | None:
    refusal: str | None = None
    if change.model is not None:
        refusal = await driver.ask(msg.SetModel(change.model), timeout=CHANGE_S)
    if change.permission is not None and refusal is None:
        refusal = await driver.ask(msg.SetPermission(change.permission), timeout=CHANGE_S)
        if refusal is not None and change.model is not None and model:
            await driver.ask(msg.SetModel(model), timeout=CHANGE_S)
    return refusal

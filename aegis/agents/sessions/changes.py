"""Orders of the directory to a session, ``ResumeAgent`` and ``ChangeSettings``, and back."""

from __future__ import annotations

from typing import Any

import attrs

from actors import ActorError, Ref, Reply
from actors.messages import Request
from aegis.agents import messages as msg
from aegis.agents.drivers.harness import Permission
from aegis.agents.sessions.settings import Settings

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
    change: ChangeSettings, driver: Ref[Any] | None, reply: Reply[str | None]
) -> None:
    """Have a running agent take the change; without one the next start has it."""
    orders: list[msg.SetPermission | msg.SetModel] = []
    if change.permission is not None:
        orders.append(msg.SetPermission(change.permission))
    if change.model is not None:
        orders.append(msg.SetModel(change.model))
    try:
        for order in orders if driver is not None else []:
            assert driver is not None
            refusal: str | None = await driver.ask(order, timeout=CHANGE_S)
            if refusal is not None:
                reply.send(refusal)
                return
    except ActorError:
        pass  # the agent has ended, or does not answer: its next start has the change
    reply.send(None)

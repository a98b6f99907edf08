"""``AgentLogin``: the request to log in to an agent, while its session has no process. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.agents.messages import DriverFailed
from aegis.agents.sessions import steps
from aegis.protocol import agent_events as ev

LOGIN = "login"
"""The id of the request, which no agent gives."""

METHOD = "method"
"""The field of the answer that names a login method."""


class AgentLogin:
    """The login that an agent needs: ``order`` runs its command in a shared terminal.

    Without a command, the person chooses one of the methods that need no terminal, if the agent
    has several, or logs in by hand; and then answers.
    """

    def __init__(self, order: steps.LogIn | None) -> None:
        self._order = order or steps.LogIn(command="", terminal="")
        self._reason = ""
        self._methods: dict[str, str] = {}
        self.is_open = False
        """Whether the request waits for its answer."""

    def note(self, failed: DriverFailed) -> None:
        """Note why the agent cannot be used."""
        self._reason = failed.reason if failed.kind == "login" else ""
        self._methods = {each.id: each.name for each in failed.logins if each.arguments is None}

    def follow(self, phase: steps.SessionPhase) -> list[steps.Output]:
        """Return the output for a new phase: the request, or the end of the request."""
        if phase is not steps.SessionPhase.ERROR:
            return self._withdraw()
        if not self._reason:
            return []
        reason, self._reason, self.is_open = self._reason, "", True
        command, terminal = self._order.command, self._order.terminal
        event = ev.RequestOpened(
            id=LOGIN,
            kind="login",
            title=f"log in: {command or 'by hand'}",
            reason=reason,
            input={"command": command, "terminal": terminal} if command else self._choice(),
            needs_person=True,
        )
        return [steps.OpenAtDesk(event=event, turn=None)]

    def _choice(self) -> dict[str, Any]:
        """Return the form in which a person names the method; empty if there is none."""
        if not self._methods:
            return {}
        names = "; ".join(f"{id_}: {name}" for id_, name in self._methods.items())
        field = {"type": "string", "enum": [*self._methods], "description": names}
        return {"schema": {"type": "object", "properties": {METHOD: field}}}

    def waits_for(self, request: str) -> bool:
        """Whether an answer to this request would act."""
        return self.is_open and request == LOGIN

    def take(self, answer: ev.RequestAnswer) -> list[steps.Output]:
        """Return the output for the answer; a refusal leaves the session as it is."""
        was_open, self.is_open = self.is_open, False
        is_accepted = isinstance(answer, ev.ElicitationAnswer) and answer.action == "accept"
        if not was_open or not is_accepted:
            return []
        content = answer.content if isinstance(answer, ev.ElicitationAnswer) else None
        method = (content or {}).get(METHOD)
        if isinstance(method, str) and method in self._methods:
            return [attrs.evolve(self._order, method=method)]
        return [self._order]

    def _withdraw(self) -> list[steps.Output]:
        was_open, self.is_open = self.is_open, False
        reason = "the session is started again, or was closed"
        return [steps.WithdrawAtDesk(requests=(LOGIN,), reason=reason)] if was_open else []

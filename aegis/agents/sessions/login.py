"""``AgentLogin``: the request to log in to an agent, while its session has no process.

``run_login`` runs a login command in a shared terminal, where people can answer its questions.
"""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import structlog
import trio

from actors import ActorError, Ref, System, describe
from aegis.agents.messages import DriverFailed
from aegis.agents.sessions import steps
from aegis.agents.sessions.mail import MailContext
from aegis.agents.sessions.steps import LogIn
from aegis.errors import AegisError, AlreadyExists, Unavailable
from aegis.protocol import agent_events as ev
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.naming import name_key
from aegis.protocol.output import WaitTerminal
from aegis.protocol.terminals import CommandRecord, RunCommand, SpawnTerminal

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
        if phase is steps.SessionPhase.DORMANT:
            self._reason = ""  # it is tried again, and may then fail for another reason
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


log = structlog.get_logger("aegis.agents")

LOOK_S = 1.0
"""Seconds between two looks at a command that waits for input."""

START_S = 60.0
"""Seconds that the terminal and the start of the command may take."""


async def run_login(owner: MailContext, order: LogIn, cwd: str, after: object) -> None:
    """Run the login of a session, if there is a command, and then send ``after``."""
    try:
        if order.command:
            await log_in(owner.system, order, cwd)
    except (AegisError, ActorError) as error:
        log.warning("login not run", terminal=order.terminal, why=describe(error))
    await owner.ref.send(after)


async def log_in(system: System, order: LogIn, cwd: str) -> None:
    """Run the command and wait for its end. Raises ``AegisError``, ``ActorError``.

    The terminal is started if it is not open; an earlier login may have used it.
    """
    terminal = order.terminal
    owner = _find(system, "service", "terminals")
    with contextlib.suppress(AlreadyExists):
        await owner.ask(SpawnTerminal(name=terminal, cwd=cwd), timeout=START_S)
    front = _find(system, "terminal", name_key(terminal))
    run = RunCommand(name=terminal, cmd=order.command, timeout=START_S, until="started")
    record: CommandRecord | None = await front.ask(run, timeout=2 * START_S)
    assert record is not None
    wait = WaitTerminal(name=terminal, seq=record.seq, timeout=MAX_TIMEOUT_S)
    while record is None or record.end is None:
        # It ends early while the command waits for the input of a person.
        outcome = await front.ask(wait, timeout=2 * MAX_TIMEOUT_S)
        record = outcome.record
        if record is None or record.end is None:
            await trio.sleep(LOOK_S)


def _find(system: System, kind: str, name: str) -> Ref[Any]:
    found = system.registry.find(kind, name)
    if found is None:
        raise Unavailable("the terminal for the login is not available; try again")
    return found

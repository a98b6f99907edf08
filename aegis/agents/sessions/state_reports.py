"""``StateReports``: the reports of a session's changes of state."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.status import STALLED_S, Reported, SessionIdentity, agent_info, reported
from aegis.agents.sessions.steps import SessionPhase
from aegis.protocol.agents import AgentInfo, Blocked


@attrs.frozen
class CheckStall:
    """A working agent may have stalled: a message of a timer to its session."""


@attrs.frozen
class AskedChanged:
    """The open questions of the session to the person have changed: from its directory."""


@attrs.frozen
class SessionClosed:
    """The session with this id is closed and ends: for its directory."""

    id: str


class StateReports:
    """Calls ``report`` with each change of the session ``identity``.

    ``after`` sends a message to the session's actor after some seconds.
    """

    def __init__(
        self,
        identity: SessionIdentity,
        report: Callable[[AgentInfo], None],
        after: Callable[[float, object], object],
    ) -> None:
        self._identity = identity
        self._report = report
        self._after = after
        self._reported: Reported | None = None
        self._is_timed = False

    def look(self, session: SessionMachine, blocked_by: Blocked | None, now: float) -> None:
        """Report the state if it has changed."""
        state = reported(self._identity, session, blocked_by, now)
        if state != self._reported:
            self._reported = state
            self._report(agent_info(self._identity, session, blocked_by, now))
        if session.phase is SessionPhase.WORKING and not self._is_timed:
            quiet_s = max(0.0, now - session.activity.progressed_at)
            self._is_timed = True
            self._after(STALLED_S - quiet_s % STALLED_S, CheckStall())

    def look_again(self) -> None:
        """Note that the timer has run out; ``look`` follows."""
        self._is_timed = False

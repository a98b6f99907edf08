"""The state of a session as clients see it, and ``StateReports``, which reports its changes."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from aegis.agents.sessions.metrics import Metrics
from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.steps import SessionPhase
from aegis.clock import moment_text
from aegis.protocol.agent_states import STALLED_S as STALLED_S
from aegis.protocol.agents import (
    AgentInfo,
    AgentState,
    AgentTakeover,
    AgentTerminal,
    AgentUsage,
    Blocked,
)
from aegis.protocol.naming import TAKEOVER_PREFIX, is_name
from aegis.protocol.requests import ASK_HUMAN

Reported = tuple[object, ...]
"""The parts of a session's state whose change is reported."""


@attrs.frozen(kw_only=True)
class SessionIdentity:
    """The parts of a session that its machine does not know.

    ``address`` is the first handle. ``name_of`` returns the current handle of a session for its
    address, and ``address_of`` the address for any of its handles. ``asked`` returns its oldest
    open question to the person, by ``aegis_ask_human``.
    """

    id: str
    address: str
    name_of: Callable[[str], str] = attrs.field(default=str, eq=False)
    address_of: Callable[[str], str] = attrs.field(default=str, eq=False)
    asked: Callable[[], Blocked | None] = attrs.field(default=lambda: None, eq=False)
    profile: str
    provider: str
    cwd: str
    spawned_by: str

    @property
    def handle(self) -> str:
        """The current handle."""
        return self.name_of(self.address)


def agent_info(
    identity: SessionIdentity, session: SessionMachine, blocked_by: Blocked | None, now: float
) -> AgentInfo:
    """Return the state of ``session`` at the moment ``now``, in seconds since 1970.

    ``blocked_by`` is the oldest open request of its agent.
    """
    limited_until = session.limited_until
    is_limited = limited_until is not None and now < limited_until
    blocked_by = _blocked(identity, session, blocked_by)
    settings = session.budget.settings
    return AgentInfo(
        id=identity.id,
        handle=identity.handle,
        profile=identity.profile,
        provider=identity.provider,
        state=_state(session.phase, is_blocked=blocked_by is not None, is_limited=is_limited),
        since=moment_text(session.since),
        reason=session.reason,
        cwd=identity.cwd,
        spawned_by=identity.spawned_by,
        model=session.model,
        turn=session.turns,
        waiting=session.waiting,
        quiet_s=_quiet_s(session, now),
        tools=[each[:200] for each in session.activity.tools.values()][:16],
        terminals=[
            AgentTerminal(id=id_, command=command[:200])
            for id_, command in session.activity.terminals.items()
        ],
        blocked=blocked_by,
        limited_until=moment_text(limited_until) if is_limited and limited_until else None,
        conversation=session.conversation,
        usage=usage_of(session.metrics),
        permission=settings.permission,
        effort=settings.effort,
        thinking=settings.thinking,
        budget_usd=settings.budget_usd,
        plan=session.plan,
        taken_over=None
        if session.takeover is None
        else AgentTakeover(
            terminal=takeover_terminal(identity), since=moment_text(session.takeover.at)
        ),
        mode=session.activity.mode,
        conflicts=session.conflicts,
    )


def takeover_terminal(identity: SessionIdentity) -> str:
    """Return the name of the terminal in which a person continues a session's conversation."""
    name = f"{TAKEOVER_PREFIX}{identity.address}"
    return name if is_name(name) else f"{TAKEOVER_PREFIX}{identity.id[:32]}"


def held_by_person(identity: SessionIdentity) -> str:
    """Return who has the conversation of a session that is taken over, and what ends that."""
    return (
        f"a person has taken it over, in terminal {takeover_terminal(identity)}; "
        f"agent handback {identity.handle} ends that"
    )


def _blocked(
    identity: SessionIdentity, session: SessionMachine, request: Blocked | None
) -> Blocked | None:
    """Return what the session waits for: a request of its agent, a limit, or its own question."""
    if request is not None:
        return request
    if session.phase in _AT_REST:
        return _held(session) or identity.asked()
    # A turn that has asked may work on: it waits if nothing but the question runs.
    tools = session.activity.tools.values()
    if session.phase is SessionPhase.WORKING and tools and all(ASK_HUMAN in each for each in tools):
        asked = identity.asked()
        return None if asked is None else attrs.evolve(asked, in_turn=True)
    return None


def _held(session: SessionMachine) -> Blocked | None:
    """Return the limit that keeps waiting messages from becoming a turn."""
    if not (session.budget.reason and session.waiting):
        return None
    return Blocked(
        kind="limit",
        request_id="",
        title=session.budget.reason,
        since=moment_text(session.since),
        in_turn=False,
    )


_AT_REST = (SessionPhase.IDLE, SessionPhase.DORMANT)


def usage_of(metrics: Metrics) -> AgentUsage:
    """Return metrics as clients see them."""
    return AgentUsage(
        turns=metrics.turns,
        input_tokens=metrics.input_tokens,
        cached_tokens=metrics.cached_tokens,
        cached_percent=_rounded(metrics.cached_percent, 1),
        output_tokens=metrics.output_tokens,
        cost_usd=_rounded(metrics.cost_usd, 6),
        context_tokens=metrics.context_tokens,
        context_limit=metrics.context_limit,
        context_percent=_rounded(metrics.context_percent, 1),
        turns_s=round(metrics.turns_s, 3),
        last_turn_s=_rounded(metrics.last_turn_s, 3),
    )


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)


def reported(
    identity: SessionIdentity, session: SessionMachine, blocked_by: Blocked | None, now: float
) -> Reported:
    """Return the parts of the state whose change is reported; cheap, for it is made often."""
    limited_until = session.limited_until
    return (
        identity.handle,
        session.phase,
        session.since,
        session.reason,
        session.model,
        session.activity.mode,
        session.turns,
        session.waiting,
        tuple(session.activity.tools.values()),
        tuple(session.activity.terminals),
        _blocked(identity, session, blocked_by),
        limited_until if limited_until is not None and now < limited_until else None,
        session.conversation,
        session.takeover is None,
        session.metrics,
        session.budget.settings,
        session.budget.reason,
        tuple(session.plan),
        [(each.path, *each.handles) for each in session.conflicts],
        _quiet_s(session, now) >= STALLED_S,
    )


def _state(phase: SessionPhase, *, is_blocked: bool, is_limited: bool) -> AgentState:
    match phase:
        case (
            SessionPhase.IDLE | SessionPhase.WORKING | SessionPhase.DORMANT | SessionPhase.ERROR
        ) if is_blocked:
            return "blocked"
        case SessionPhase.IDLE | SessionPhase.DORMANT if is_limited:
            return "limited"
        case SessionPhase.DORMANT:
            return "dormant"
        case SessionPhase.STARTING:
            return "starting"
        case SessionPhase.IDLE:
            return "idle"
        case SessionPhase.WORKING | SessionPhase.STOPPING | SessionPhase.TAKEN_OVER:
            return "working"
        case SessionPhase.ERROR:
            return "error"
        case SessionPhase.CLOSED:
            return "closed"


def _quiet_s(session: SessionMachine, now: float) -> float:
    """Return the seconds without progress of a turn in which no tool runs."""
    is_silent = (
        session.phase is SessionPhase.WORKING
        and not session.activity.tools
        and not len(session.requests)
    )
    return round(max(0.0, now - session.activity.progressed_at), 1) if is_silent else 0.0


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

"""How a wait for a driven session ends. Pure."""

from __future__ import annotations

from functools import partial

from aegis.agents.sessions.past import EndedTurn
from aegis.agents.sessions.rules import SessionMachine
from aegis.errors import NotFound
from aegis.protocol.agents import AgentInfo, AgentOutcome, WaitAgent, WaitOutcome

_OUTCOMES: dict[str, WaitOutcome] = {"completed": "done", "limited": "limit"}
"""The outcomes of waits by those of turns; a turn with any other has failed."""


def outcome_of(wait: WaitAgent, session: SessionMachine, info: AgentInfo) -> AgentOutcome | None:
    """Return how ``wait`` ends now; None if it is not over.

    Raises ``NotFound`` for a turn that ended so long ago that its end is not kept.
    """
    ends = partial(AgentOutcome, handle=info.handle)
    is_for_turn = wait.message is not None or wait.turn is not None
    if is_for_turn:
        found = _ended_turn(wait, session)
        if found is not None:
            return _of_turn(info.handle, found)
    if info.state == "closed":
        return ends(outcome="closed", reason=info.reason)
    if is_for_turn and not _is_here(wait, session):
        return None  # the inbox has it, and the session does not know of it yet
    if (blocked := info.blocked) is not None:
        if blocked.kind == "limit":
            return ends(outcome="limit", reason=blocked.title, blocked=blocked)
        if not blocked.request_id:
            return None  # nobody can answer it yet
        if blocked.in_turn or not is_for_turn:
            return ends(outcome="blocked", reason=blocked.title, blocked=blocked)
    if info.state == "error":
        return ends(outcome="failed", reason=info.reason)
    if wait.blocked or wait.text:
        return None
    if info.state == "limited":
        until = f"a usage limit of the agent holds until {info.limited_until}"
        return ends(outcome="limit", reason=until)
    is_at_rest = info.state in ("idle", "dormant") and session.current is None
    if is_for_turn or not is_at_rest or session.waiting:
        return None
    return _of_turn(info.handle, session.ended[-1]) if session.ended else ends(outcome="done")


def _ended_turn(wait: WaitAgent, session: SessionMachine) -> EndedTurn | None:
    for turn in reversed(session.ended):
        if turn.number == wait.turn or wait.message in turn.messages:
            return turn
    if wait.turn is not None:
        has_begun = wait.turn <= session.turns
    else:
        place = session.place_of(wait.message or "")
        has_begun = place is not None and place.is_landed
    if has_begun and not _is_current(wait, session):
        raise NotFound(
            "that turn ended before the newest ones, whose ends are kept: its end is in the "
            "transcript, read it with aegis_session_read"
        )
    return None


def _is_current(wait: WaitAgent, session: SessionMachine) -> bool:
    current = session.current
    if current is None:
        return False
    return current.number == wait.turn or wait.message in [each for each, _ in current.messages]


def _is_here(wait: WaitAgent, session: SessionMachine) -> bool:
    """Return whether the session has what a turn is awaited of."""
    if wait.message is not None:
        return session.place_of(wait.message) is not None
    return session.current is not None or bool(session.waiting)


def _of_turn(handle: str, turn: EndedTurn) -> AgentOutcome:
    return AgentOutcome(
        handle=handle,
        outcome=_OUTCOMES.get(turn.outcome, "failed"),
        reason="" if turn.outcome == "completed" else turn.reason or f"it was {turn.outcome}",
        turn=turn.number,
        text=turn.text,
    )

"""``AgentWaits``: the calls that wait for one agent, driven or in a terminal, and how they end.

``Places`` answers where a message is that comes from the inbox.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import trio

from actors import Reply
from aegis.agents.sessions.past import EndedTurn, OpenTurn
from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.status import SessionIdentity
from aegis.errors import AegisError, Busy, NotFound
from aegis.names import shorten
from aegis.protocol.agent_events import AssistantText
from aegis.protocol.agents import AgentInfo, AgentOutcome, WaitAgent, WaitOutcome
from aegis.protocol.inboxes import FindMessage, Place

MAX_WAITS = 256
"""Calls that may wait for one agent."""

Outcome = Callable[[WaitAgent], AgentOutcome | None]
"""Returns how a wait ends now, or None; raises ``AegisError`` for one that cannot be answered."""


class SaidText:
    """Whether an agent's messages contain ``text``, which may come in pieces. Pure.

    ``said`` is the current message, as far as it has come.
    """

    def __init__(self, text: str, said: str) -> None:
        self.is_found = text in said
        self._text = text
        self._message: str | None = None
        self._tail = self._end_of(said)

    def take(self, piece: AssistantText) -> None:
        """Take the next piece of a message."""
        if self._message is not None and piece.message != self._message:
            self._tail = ""
        self._message = piece.message
        text = self._tail + piece.text
        self.is_found |= self._text in text
        self._tail = self._end_of(text)

    def _end_of(self, text: str) -> str:
        length = len(self._text) - 1
        return text[-length:] if length else ""


@attrs.define(eq=False)
class _AgentWait:
    request: WaitAgent
    reply: Reply[AgentOutcome]
    search: SaidText | None
    limit: trio.CancelScope = attrs.field(factory=trio.CancelScope)


class AgentWaits:
    """The waits for the agent ``identity``; their times run in tasks of ``start_soon``.

    ``outcome`` returns how a wait ends; a text that was said ends it as ``done``. ``state`` says
    why the agent does not work, for waits whose time is over; empty: it works.
    """

    def __init__(
        self,
        identity: SessionIdentity,
        start_soon: Callable[..., object],
        outcome: Outcome,
        state: Callable[[], str] = str,
    ) -> None:
        self._identity = identity
        self._start_soon = start_soon
        self._outcome = outcome
        self._state = state
        self._waits: list[_AgentWait] = []

    def take(self, request: WaitAgent, reply: Reply[AgentOutcome], said: str = "") -> None:
        """Answer now, or once the wait has ended; ``said`` is the current message so far.

        Raises ``Busy``.
        """
        if len(self._waits) >= MAX_WAITS:
            raise Busy(f"{MAX_WAITS} calls wait for this agent already; end one first")
        search = SaidText(request.text, said) if request.text else None
        wait = _AgentWait(request, reply, search)
        if not self._is_over(wait):
            self._waits.append(wait)
            self._start_soon(self._time_out, wait)

    def hear(self, piece: AssistantText) -> None:
        """Note what the agent has said."""
        for wait in self._waits:
            if wait.search is not None:
                wait.search.take(piece)

    def has_turn(self, turn: OpenTurn) -> bool:
        """Return whether a call waits for the end of this turn, or of a message in it."""
        messages = [id_ for id_, _ in turn.messages]
        waits = (each.request for each in self._waits)
        return any(each.turn == turn.number or each.message in messages for each in waits)

    def refuse(self, message: str) -> None:
        """Fail the waits for a message that is unknown."""
        for wait in [each for each in self._waits if each.request.message == message]:
            self._waits.remove(wait)
            wait.limit.cancel()
            wait.reply.fail(
                NotFound(
                    f"{self._identity.handle!r} never got a message {shorten(message)!r}: the id "
                    "is in its receipt; or wait without a message, until the agent is at rest"
                )
            )

    def look(self) -> None:
        """Look at each wait again: something about the agent has changed."""
        self._waits = [each for each in self._waits if not self._is_over(each)]

    async def _time_out(self, wait: _AgentWait) -> None:
        wait.reply.on_abandon(wait.limit.cancel)
        wait.limit.deadline = trio.current_time() + wait.request.timeout
        with wait.limit:
            await trio.sleep_forever()
        if wait in self._waits:
            self._waits.remove(wait)
            wait.reply.send(self._ends("timeout", self._state()))

    def _is_over(self, wait: _AgentWait) -> bool:
        """Answer a wait that has ended."""
        try:
            if wait.search is not None and wait.search.is_found:
                outcome: AgentOutcome | None = self._ends("done")
            else:
                outcome = self._outcome(wait.request)
        except AegisError as error:
            wait.reply.fail(error)
        else:
            if outcome is None:
                return False
            wait.reply.send(outcome)
        wait.limit.cancel()
        return True

    def _ends(self, outcome: WaitOutcome, reason: str = "") -> AgentOutcome:
        return AgentOutcome(handle=self._identity.handle, outcome=outcome, reason=reason)


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
    if wait.text and _has_just_said(wait.text, session):
        return ends(outcome="done")
    if info.state == "closed":
        return ends(outcome="closed", reason=info.reason)
    if is_for_turn and not _is_here(wait, session):
        return None  # the inbox has it, and the session does not know of it yet
    if (blocked := info.blocked) is not None:
        if blocked.kind == "limit":
            return ends(outcome="limit", reason=blocked.title, blocked=blocked)
        if not blocked.request_id:
            return None  # nobody can answer it yet
        # No turn begins before a person has logged in.
        if blocked.in_turn or not is_for_turn or blocked.kind == "auth":
            return ends(outcome="blocked", reason=blocked.title, blocked=blocked)
    if info.state == "error":
        return ends(outcome="failed", reason=info.reason)
    if wait.blocked or wait.text:
        return None
    if info.state == "limited":
        until = f"a usage limit of the agent holds until {info.limited_until}"
        return ends(outcome="limit", reason=until)
    if is_for_turn or not is_at_rest(session, info):
        return None
    return _of_turn(info.handle, session.ended[-1]) if session.ended else ends(outcome="done")


def is_at_rest(session: SessionMachine, info: AgentInfo) -> bool:
    """Return whether a session has no turn, and no message that will begin one."""
    has_turn = session.current is not None or bool(session.waiting)
    return info.state in ("idle", "dormant") and not has_turn


def _has_just_said(text: str, session: SessionMachine) -> bool:
    """Return whether the last message of the last turn has ``text``, and no other turn follows."""
    if session.current is not None or session.waiting or not session.ended:
        return False
    return text in session.ended[-1].text


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


MAX_WAITERS = 256
"""Waiters of one session; a further one gets no place, and reports the inbox's."""


class Places:
    """The waiters of one session."""

    def __init__(self) -> None:
        self._waiters: list[tuple[FindMessage, Reply[Place | None]]] = []

    def take(
        self, request: FindMessage, reply: Reply[Place | None], session: SessionMachine
    ) -> None:
        """Answer now, or once the message has arrived."""
        place = _place(request, session)
        if place is None and len(self._waiters) < MAX_WAITERS:
            self._waiters.append((request, reply))
        else:
            reply.send(place)

    def look(self, session: SessionMachine) -> None:
        """Answer the waiters whose message has arrived; forget those that have gone."""
        waiters, self._waiters = self._waiters, []
        for request, reply in waiters:
            place = _place(request, session)
            if place is not None:
                reply.send(place)
            elif not reply.is_settled:
                self._waiters.append((request, reply))


def _place(request: FindMessage, session: SessionMachine) -> Place | None:
    place = session.place_of(request.message)
    if place is None or (place.is_landed and not request.command):
        return place
    return attrs.evolve(place, notice=session.notice_of(request.command))

"""``AgentWaits``: the calls that wait for one agent, driven or in a terminal."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from actors import Reply
from aegis.agents.sessions.past import OpenTurn
from aegis.agents.sessions.status import SessionIdentity
from aegis.errors import AegisError, Busy
from aegis.protocol.agent_events import AssistantText
from aegis.protocol.agents import AgentOutcome, WaitAgent, WaitOutcome

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

    ``outcome`` returns how a wait ends; a text that was said ends it as ``done``.
    """

    def __init__(
        self, identity: SessionIdentity, start_soon: Callable[..., object], outcome: Outcome
    ) -> None:
        self._identity = identity
        self._start_soon = start_soon
        self._outcome = outcome
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
            wait.reply.send(self._ends("timeout"))

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

    def _ends(self, outcome: WaitOutcome) -> AgentOutcome:
        return AgentOutcome(handle=self._identity.handle, outcome=outcome)

"""``AgentSessions``: delivers messages to agent sessions, and follows their transcripts."""

from __future__ import annotations

import math

import attrs
import trio

from actors import ActorError
from aegis.errors import AegisError
from aegis.protocol.agents import AgentInfo, CloseAgent, ShowAgent
from aegis.protocol.feeds import FollowSession, SessionNews, SessionPlace
from aegis.protocol.inboxes import Deliver, FindMessage, Place, Receipt, WithdrawMessage
from aegis.turns.services import AGAIN_S, Services
from aegis.turns.watch import TurnOutcome, TurnWatch, takes_no_turns

SHOW_S = 10.0
DELIVER_S = 30.0
CLOSE_S = 60.0
FOLLOW_S = 3_600.0
PLACE_S = 10.0
"""Seconds that one call of a service may take before it is repeated."""

SYNC_S = 10.0
"""Seconds in which an entry that a session has written is durable, and shown."""


@attrs.frozen
class AgentSessions:
    """The agent sessions of a daemon. Each call waits through restarts of the services."""

    services: Services

    async def show(self, handle: str) -> AgentInfo:
        """Return the state of a session. Raises ``NotFound``."""
        return await self.services.answer("agents", ShowAgent(handle=handle), SHOW_S)

    async def close(self, handle: str) -> None:
        """Close a session, if it is open. Raises ``NotFound``."""
        await self.services.answer("agents", CloseAgent(handle=handle), CLOSE_S)

    async def deliver(self, message: Deliver) -> Receipt:
        """Put a message into an inbox, durably; an inbox drops an id that it has."""
        return await self.services.answer("inboxes", message, DELIVER_S)

    async def newest(self, handle: str) -> int:
        """Return the number of the newest entry of a transcript. Raises ``NotFound``."""
        news = await self._follow(handle, None)
        return news.newest

    async def news(
        self, handle: str, place: SessionPlace, until: float = math.inf
    ) -> SessionNews | None:
        """Return the next entries of a transcript; None if there are none before ``until``.

        ``until`` is a moment of Trio's clock. Raises ``NotFound``.
        """
        with trio.move_on_at(until):
            return await self._follow(handle, place)
        return None

    async def withdraw(self, handle: str, message: str, by: str) -> None:
        """Have a session not work on a message any more: its turn ends, or is never sent.

        Nothing happens if the session is closed. Raises ``NotFound``.
        """
        while True:
            info = await self.show(handle)
            session = self.services.system.registry.find("session", info.id)
            if info.state == "closed" or session is None:
                return
            try:
                await session.ask(WithdrawMessage(message=message, by=by), timeout=PLACE_S)
            except ActorError:
                await trio.sleep(AGAIN_S)
            else:
                return

    async def outcome(self, message: Deliver, *, since: int = 0) -> TurnOutcome:
        """Deliver a message to a session, unless it has it, and return the outcome of its turn.

        The message may have been delivered before, by an earlier life of the caller or the daemon:
        its id decides. ``since`` is the number of an entry of the transcript that is older than the
        message: those up to it are not read.

        Only a turn of its own gives a message an outcome of its own: the sender must be one of
        those whose messages are never merged with others (a queue, a workflow or a group).
        """
        handle, watch = message.handle, TurnWatch(message.id)
        try:
            place = await self._read(handle, SessionPlace(seq=since), watch)
            if watch.turn is None:
                info = await self.show(handle)
                if info.program is not None:
                    return _lost(takes_no_turns(info))
                if info.state != "closed":
                    await self.deliver(message)
            return await self._outcome(handle, place, watch)
        except AegisError as error:  # there is no such session, or it was purged
            return _lost(str(error))

    async def _outcome(self, handle: str, place: SessionPlace, watch: TurnWatch) -> TurnOutcome:
        is_over = False
        while True:
            found = watch.outcome(is_over=is_over)
            if found is None:
                found = await self._without_turn(handle, place, watch)
            if found is not None:
                return found
            news = await self._follow(handle, place)
            place, is_over = news.place, news.is_over
            watch.take(news.entries, missed=news.missed)

    async def _read(self, handle: str, place: SessionPlace, watch: TurnWatch) -> SessionPlace:
        """Take the entries after ``place`` that there are now; return the place after them."""
        newest = await self.newest(handle)
        while place.seq < newest:
            news = await self._follow(handle, place)
            watch.take(news.entries, missed=news.missed)
            place = news.place
        return place

    async def _without_turn(
        self, handle: str, place: SessionPlace, watch: TurnWatch
    ) -> TurnOutcome | None:
        """Return the outcome of a message that no further entry will be about."""
        if watch.turn is not None and not watch.has_gap:
            return None
        info = await self.show(handle)
        if info.state != "error" and not watch.has_gap:
            return None
        # Its arrival may have started the session again: the state is that after it.
        at = await self._place(info, watch.message)
        info = await self.show(handle)
        if place.seq < await self.newest(handle):
            return None
        found = watch.without_turn(info, at)
        if found is not None and watch.has_gap and watch.turn is not None:
            # The session may have ended the turn, and the entry of the end is not durable yet.
            news = await self.news(handle, place, trio.current_time() + SYNC_S)
            return found if news is None else None
        return found

    async def _place(self, info: AgentInfo, message: str) -> Place | None:
        """Return the place of a message in its session; None if the session cannot say."""
        session = self.services.system.registry.find("session", info.id)
        if session is None:
            return None
        try:
            place: Place | None = await session.ask(FindMessage(message=message), timeout=PLACE_S)
        except ActorError:
            return None
        return place

    async def _follow(self, handle: str, place: SessionPlace | None) -> SessionNews:
        return await self.services.answer(
            "agents", FollowSession(handle=handle, place=place), FOLLOW_S
        )


def _lost(reason: str) -> TurnOutcome:
    return TurnOutcome(end="lost", reason=reason)

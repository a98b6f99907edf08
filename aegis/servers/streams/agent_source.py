"""The streams of agent sessions: the changes of their states, and the entries of one transcript.

They buffer nothing: news are requested when the client has credit, and each request has its place.
"""

from __future__ import annotations

from typing import TypeVar

import trio

from actors import ActorCrashed, ActorStopped, MailboxFull, Request, System
from aegis.errors import Unavailable
from aegis.protocol.agent_streams import (
    AgentItem,
    AgentsItem,
    EntriesItem,
    SessionStart,
    StreamSession,
)
from aegis.protocol.feeds import FollowAgents, FollowSession, SessionPlace
from aegis.servers.streams.outlet import StreamOut
from aegis.servers.streams.pace import FramePace

AGENTS_S = 0.05
"""The interval, in seconds, between news of sessions: more changes of one become its newest."""

AGAIN_S = 0.05
"""Seconds before a retry where a session has just ended, or its mailbox is full."""

STOPPING = "the daemon is starting or stopping; try again"

T = TypeVar("T")


async def follow_agents(system: System, handle: str | None, out: StreamOut) -> str:
    """Send all open sessions to ``out``, then each change, until cancelled."""
    news = await _ask(system, FollowAgents(from_handle=handle))
    await out.opened(None)
    while True:
        await out.room()
        if news.is_all:
            await out.item(AgentsItem(agents=news.agents))
        else:
            for agent in news.agents:
                await out.room()
                await out.item(AgentItem(agent=agent))
        sent_at = trio.current_time()
        await out.room()
        await trio.sleep_until(sent_at + AGENTS_S)
        news = await _ask(system, FollowAgents(from_handle=handle, place=news.place))


async def follow_session(system: System, command: StreamSession, out: StreamOut) -> str:
    """Send the entries of a transcript to ``out`` until the session is closed; return a sentence.

    Raises ``AegisError`` or ``AskError``.
    """
    handle, by = command.handle, command.from_handle
    first = FollowSession(
        handle=handle, from_handle=by, since=command.since, last_n=command.last_n or 0
    )
    news = await _ask(system, first)
    place: SessionPlace = news.place
    await out.opened(SessionStart(since=place.seq, newest=news.newest))
    pace = FramePace()
    while not news.is_over:
        await out.room()
        news = await _ask(system, FollowSession(handle=handle, from_handle=by, place=place))
        place = news.place
        if news.missed:
            await out.gap(news.missed)
            await out.room()
        if news.entries:
            await out.item(EntriesItem(entries=news.entries))
        pace = pace.after(trio.current_time())
        await trio.sleep_until(pace.next_at)
    return f"session {handle!r} is closed"


async def _ask(system: System, request: Request[T]) -> T:
    """Ask the directory of sessions without a time limit, and again across crashes and ends."""
    while True:
        directory = system.registry.find("service", "sessions")
        if directory is None:
            raise Unavailable(STOPPING)
        try:
            answer: T = await directory.send_request(request).wait()
        except ActorCrashed:
            continue
        except (ActorStopped, MailboxFull):  # of the session: the directory will answer next
            await trio.sleep(AGAIN_S)
        else:
            return answer

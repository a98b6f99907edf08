"""The streams of agent sessions: the changes of their states, and the entries of one transcript.

They buffer nothing: news are requested when the client has credit, and each request has its place.
"""

from __future__ import annotations

from typing import TypeVar

import attrs
import trio

from actors import ActorCrashed, ActorStopped, MailboxFull, Request, System
from aegis.errors import NotFound, Unavailable
from aegis.protocol.agent_commands import AgentOutput, ReadAgentOutput
from aegis.protocol.agent_streams import (
    AgentItem,
    AgentsItem,
    CommandOutputItem,
    EntriesItem,
    SessionStart,
    StreamAgentCommand,
    StreamAgents,
    StreamSession,
)
from aegis.protocol.feeds import (
    AgentCommandNews,
    FollowAgentCommand,
    FollowAgents,
    FollowSession,
    SessionPlace,
)
from aegis.servers.streams.outlet import StreamOut
from aegis.servers.streams.pace import FramePace

AGENTS_S = 0.05
"""The interval, in seconds, between news of sessions: more changes of one become its newest."""

COMMAND_S = 0.05
"""The interval, in seconds, between two pieces of a command's output."""

PIECE_CHARS = 64 * 1024
"""The longest text of one item."""

STORED_S = 3.0
"""Seconds in which the output of a command is stored after its release."""

AGAIN_S = 0.05
"""Seconds before a retry where a session has just ended, or its mailbox is full."""

STOPPING = "the daemon is starting or stopping; try again"

T = TypeVar("T")


async def follow_of_agents(
    system: System, command: StreamAgents | StreamSession | StreamAgentCommand, out: StreamOut
) -> str:
    """Serve one of the streams of agents; return the sentence that ends it.

    Raises ``AegisError`` or ``AskError``.
    """
    match command:
        case StreamAgents(from_handle=handle):
            return await follow_agents(system, handle, out)
        case StreamSession():
            return await follow_session(system, command, out)
        case StreamAgentCommand():
            return await follow_command(system, command, out)


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
        now = trio.current_time()
        pace = pace.after(now)
        # A sleep until a time in the past takes as long as three requests.
        if pace.next_at > now:
            await trio.sleep_until(pace.next_at)
    return f"session {handle!r} is closed"


async def follow_command(system: System, command: StreamAgentCommand, out: StreamOut) -> str:
    """Send the output of an agent's command to ``out`` until it is released; return a sentence.

    Raises ``AegisError`` or ``AskError``.
    """
    cursor, seen, is_open = 0, None, False
    while True:
        request = FollowAgentCommand(
            handle=command.handle,
            command=command.command,
            from_handle=command.from_handle,
            cursor=cursor,
            seen=seen,
        )
        try:
            news: AgentCommandNews = await _ask(system, request)
        except NotFound:
            rest = await _released(system, command, cursor, was_open=is_open)
            break
        if not is_open:
            is_open = True
            await out.opened(None)
        cursor, seen = news.cursor, attrs.evolve(news, text="")
        await _send_output(out, news, request.cursor)
        await trio.sleep(COMMAND_S)
    if not is_open:
        await out.opened(None)
    # An agent often releases a command at its end: a reader that lags behind has not seen that.
    if rest.output or seen is None or not seen.has_ended:
        await _send_output(out, rest, cursor)
    return f"command {command.command!r} of {command.handle!r} was released"


async def _released(
    system: System, command: StreamAgentCommand, cursor: int, *, was_open: bool
) -> AgentOutput:
    """Return the rest of a released command, which is stored just after its release.

    Raises ``AegisError`` or ``AskError``.
    """
    read = ReadAgentOutput(
        handle=command.handle,
        command=command.command,
        from_handle=command.from_handle,
        cursor=cursor,
    )
    until = trio.current_time() + (STORED_S if was_open else 0.0)
    while True:
        try:
            return await _ask(system, read)
        except NotFound:
            if trio.current_time() >= until:
                raise
        await trio.sleep(AGAIN_S)


async def _send_output(out: StreamOut, news: AgentCommandNews | AgentOutput, cursor: int) -> None:
    """Send the output after ``cursor`` in pieces, with the command's end behind the last one."""
    if news.begin > cursor:
        await out.room()
        await out.gap(news.begin - cursor)
    text = news.text if isinstance(news, AgentCommandNews) else news.output
    while len(text) > PIECE_CHARS:
        await out.room()
        await out.item(CommandOutputItem(text=text[:PIECE_CHARS]))
        text = text[PIECE_CHARS:]
    item = CommandOutputItem(
        text=text,
        line=news.line,
        has_ended=news.has_ended,
        exit_code=news.exit_code,
        signal=news.signal,
    )
    await out.room()
    await out.item(item)


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

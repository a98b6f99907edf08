"""The streams of agent sessions for the blocking client, made of repeated calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol

import attrs

from aegis.client.agent_kinds import AgentsValue, CommandValue, SessionValue, session_event
from aegis.client.errors import CommandFailed
from aegis.client.stream_kinds import Gap
from aegis.protocol.agent_commands import AgentOutput
from aegis.protocol.agent_states import AgentInfo, AgentList
from aegis.protocol.agent_streams import AgentItem, AgentsItem, CommandOutputItem
from aegis.protocol.agents import Transcript

PAUSE_S = 0.5
"""Seconds between two calls while nothing is new."""


class AgentCalls(Protocol):
    """The calls that the streams are made of, as ``Agents`` has them."""

    def list(self) -> AgentList:
        """List the open sessions."""
        ...

    def show(self, handle: str) -> AgentInfo:
        """Return the state of one session."""
        ...

    def read(
        self, handle: str, *, last_n: int | None = None, since: int | None = None
    ) -> Transcript:
        """Return the newest entries of a transcript, or those after the seq ``since``."""
        ...

    def output(self, handle: str, command: str, *, cursor: int = 0) -> AgentOutput:
        """Return the output of a command, after ``cursor``."""
        ...


def entries_of(
    agents: AgentCalls, handle: str, *, since: int | None, last_n: int | None
) -> Iterator[SessionValue]:
    """Yield the entries of a transcript until its session is closed and all of them are read."""
    if since is not None and last_n is not None:
        raise CommandFailed("invalid_request", "give since or last_n, not both")
    is_over = False
    if since is None:
        newest = agents.read(handle, last_n=last_n or 1).result
        since = newest[-1].seq if newest else 0
        yield from map(session_event, newest if last_n else ())
    while True:
        read = agents.read(handle, since=since)
        if read.missed:
            yield Gap(dropped=read.missed, cursor=None, reason="slow")
        yield from map(session_event, read.result)
        if read.result:
            since = read.result[-1].seq
        elif is_over:
            return
        else:
            # One more call: the last entries may have been written between the two.
            is_over = agents.show(handle).state == "closed"
            if not is_over:
                time.sleep(PAUSE_S)


def states_of(agents: AgentCalls) -> Iterator[AgentsValue]:
    """Yield all open sessions, then each whose state has changed."""
    listed = agents.list().result
    yield AgentsItem(agents=listed)
    known = {each.id: each for each in listed}
    while True:
        time.sleep(PAUSE_S)
        found = {each.id: each for each in agents.list().result}
        for gone in known.keys() - found.keys():
            yield AgentItem(agent=_closed(agents, known[gone]))
        for id_, session in found.items():
            if id_ not in known or _lasting(session) != _lasting(known[id_]):
                yield AgentItem(agent=session)
        known = found


def output_of(agents: AgentCalls, handle: str, command: str) -> Iterator[CommandValue]:
    """Yield the output of a command until it is released and all of it is read."""
    cursor, last = 0, None
    while True:
        found = agents.output(handle, command, cursor=cursor)
        if found.begin > cursor:
            yield Gap(dropped=found.begin - cursor, cursor=None, reason="slow")
        cursor = found.cursor
        item = CommandOutputItem(
            text=found.output,
            line=found.line,
            has_ended=found.has_ended,
            exit_code=found.exit_code,
            signal=found.signal,
        )
        if item.text or item != last:
            yield item
        if found.released:
            return
        last = attrs.evolve(item, text="")
        time.sleep(PAUSE_S)


def _lasting(session: AgentInfo) -> AgentInfo:
    """Return the state without the time since the last progress, which always changes."""
    return attrs.evolve(session, quiet_s=0.0)


def _closed(agents: AgentCalls, session: AgentInfo) -> AgentInfo:
    try:
        return agents.show(session.handle)
    except CommandFailed as error:
        if error.code != "not_found":  # of a purged session
            raise
        return attrs.evolve(session, state="closed", usage=None, blocked=None)

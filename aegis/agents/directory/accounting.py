"""The accounting of many sessions: open ones report it, of closed ones it is in the transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from actors import Ref
from aegis.agents.directory.all_sessions import info_of
from aegis.agents.directory.message_rights import root_of
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.sessions.status import usage_of
from aegis.agents.sessions.transcript import TRANSCRIPT
from aegis.agents.sessions.transcript_files import fold, shown_of_closed
from aegis.errors import StorageError
from aegis.journal.flusher import Flusher
from aegis.protocol.agents import AgentUsage, ReadUsage, SessionUsage, UsageList


def counted(request: ReadUsage, roster: Roster) -> list[Member]:
    """Return the sessions that a request asks for. Raises ``NotFound``."""
    if request.handle is None:
        return [each for each in roster.kept if request.closed or not each.is_closed]
    # The cost of a tree does not shrink when a child is closed.
    top = roster.get(request.handle)
    return [
        each
        for each in roster.kept
        if each.id == top.id or top.id in {above.id for above in roster.ancestors(each.id)}
    ]


async def accounting(
    members: Sequence[Member],
    roster: Roster,
    sessions: Mapping[str, Ref[Any]],
    directory: Path,
    flusher: Flusher,
) -> UsageList:
    """Return the accounting of ``members``, the costliest first."""
    found = [
        SessionUsage(
            id=member.id,
            handle=member.handle,
            root=roster.by_id[root_of(roster, member)].handle,
            is_closed=member.is_closed,
            usage=await _usage(member, sessions.get(member.id), directory, flusher),
        )
        for member in members
    ]
    return UsageList(result=sorted(found, key=_rank))


def _rank(each: SessionUsage) -> tuple[float, str]:
    cost = None if each.usage is None else each.usage.cost_usd
    return -(cost or 0.0), each.handle


async def _usage(
    member: Member, session: Ref[Any] | None, directory: Path, flusher: Flusher
) -> AgentUsage | None:
    if session is not None:
        info = await info_of(member, session)
        if info.usage is not None:
            return info.usage
    try:
        return await flusher.look(lambda: _stored(directory / member.id / TRANSCRIPT, flusher))
    except StorageError:
        return None


def _stored(path: Path, flusher: Flusher) -> AgentUsage:
    shown = shown_of_closed(flusher.disk, path)
    return usage_of(fold(flusher.disk, path, shown.end).past.meter.metrics)

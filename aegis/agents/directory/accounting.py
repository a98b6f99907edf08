"""The accounting of many sessions: open ones report it, of closed ones it is in the transcript.

The sums are those of the listed sessions; the size of a context is never summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from actors import Ref
from aegis.agents.directory.all_sessions import info_of
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.sessions.archived import ArchivedTranscript
from aegis.agents.sessions.status import usage_of
from aegis.agents.sessions.transcript import TRANSCRIPT, fold, shown_of_closed
from aegis.errors import StorageError
from aegis.journal.flusher import Flusher
from aegis.protocol.agents import AgentUsage, ReadUsage, SessionUsage, TreeUsage, UsageList


def counted(request: ReadUsage, roster: Roster) -> list[Member]:
    """Return the sessions that a request asks for. Raises ``NotFound``."""
    if request.handle is None:
        return [each for each in roster.kept if request.closed or not each.is_closed]
    # The cost of a tree does not shrink when a child is closed.
    return tree_of(request.handle, roster)


def tree_of(handle: str, roster: Roster) -> list[Member]:
    """Return a session and those that it spawned, directly or not. Raises ``NotFound``."""
    top = roster.get(handle)
    return [
        each
        for each in roster.kept
        if each.id == top.id or top.id in {above.id for above in roster.ancestors(each.id)}
    ]


async def accounting(
    members: Sequence[Member],
    roster: Roster,
    sessions: Mapping[str, Ref[Any]],
    stored_of: Callable[[Member], ArchivedTranscript],
    flusher: Flusher,
) -> UsageList:
    """Return the accounting of ``members``, the costliest first."""
    found = [
        SessionUsage(
            id=member.id,
            handle=member.handle,
            root=[member, *roster.ancestors(member.id)][-1].handle,
            is_closed=member.is_closed,
            usage=await _usage(member, roster, sessions.get(member.id), stored_of(member), flusher),
        )
        for member in members
    ]
    return usage_list(found)


def usage_list(found: Sequence[SessionUsage]) -> UsageList:
    """Return the accounting of sessions with the sums of their trees, the costliest first. Pure."""
    trees: dict[str, list[SessionUsage]] = {}
    for each in found:
        trees.setdefault(each.root, []).append(each)
    return UsageList(
        result=sorted(found, key=lambda each: _rank(each.usage, each.handle)),
        trees=sorted(
            (
                TreeUsage(root=root, sessions=len(listed), usage=summed(listed))
                for root, listed in trees.items()
            ),
            key=lambda each: _rank(each.usage, each.root),
        ),
        total=summed(found),
    )


def summed(sessions: Iterable[SessionUsage]) -> AgentUsage:
    """Return the sums of the figures that are known; None where no session reports one. Pure."""
    known = [each.usage for each in sessions if each.usage is not None]
    given = _sum([each.input_tokens for each in known])
    cached = _sum([each.cached_tokens for each in known])
    costs = [each.cost_usd for each in known if each.cost_usd is not None]
    return AgentUsage(
        turns=sum(each.turns for each in known),
        input_tokens=given,
        cached_tokens=cached,
        cached_percent=None if cached is None or not given else round(100 * cached / given, 1),
        output_tokens=_sum([each.output_tokens for each in known]),
        cost_usd=round(sum(costs), 6) if costs else None,
        turns_s=round(sum(each.turns_s for each in known), 3),
    )


def _sum(figures: Sequence[int | None]) -> int | None:
    known = [each for each in figures if each is not None]
    return sum(known) if known else None


def _rank(usage: AgentUsage | None, name: str) -> tuple[float, str]:
    cost = None if usage is None else usage.cost_usd
    return -(cost or 0.0), name


async def _usage(
    member: Member,
    roster: Roster,
    session: Ref[Any] | None,
    stored: ArchivedTranscript,
    flusher: Flusher,
) -> AgentUsage | None:
    if session is not None:
        info = await info_of(member, roster.cwd(member), session)
        if info.usage is not None:
            return info.usage
    try:
        return await flusher.look(partial(_stored, stored))
    except StorageError:
        return None


def _stored(stored: ArchivedTranscript) -> AgentUsage:
    path = stored.files / TRANSCRIPT
    shown = shown_of_closed(stored.disk, path)
    past = fold(stored.disk, path, shown.end).past if shown.seq else stored.past()
    return usage_of(past.meter.metrics)

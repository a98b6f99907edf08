"""The renaming of a session: one line of the roster, then the new handle is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs

from actors import ActorError, Reply, System
from aegis.agents.directory.handles import check_handle
from aegis.agents.directory.roster import Member
from aegis.agents.directory.roster_table import RosterTable
from aegis.errors import AegisError
from aegis.protocol.agents import AgentInfo, RenameAgent
from aegis.protocol.naming import name_key
from aegis.protocol.requests import RenameRequests


async def rename(
    request: RenameAgent,
    reply: Reply[AgentInfo],
    table: RosterTable,
    inboxes: Path,
    check_reach: Callable[[RenameAgent, Member], None],
) -> Member | None:
    """Rename a session, durably, and return it; fail ``reply`` and return None if it cannot be.

    ``check_reach`` raises ``Forbidden`` if the caller may not. The caller of this function holds
    the lock of new handles. A session can get its own former handles again.
    """
    try:
        member = table.roster.get(request.old_handle)
        check_reach(request, member)
        own = {name_key(each) for each in (member.handle, *member.aliases)}
        taken = attrs.evolve(table.handles_in_use(inboxes), but=own)
        check_handle("aegis_rename", request.new_handle, taken)
        if request.new_handle != member.handle:
            renamed = partial(Member.renamed, handle=request.new_handle)
            await table.change(member.id, renamed)
    except AegisError as error:
        reply.fail(error)
        return None
    return table.roster.by_id[member.id]


def show_renamed(member: Member, system: System) -> None:
    """Have the requests of a session show its new handle."""
    desk = system.registry.find("service", "requests")
    if desk is not None:
        with contextlib.suppress(ActorError):
            desk.tell(RenameRequests(session=member.id, handle=member.handle))

"""Work on several sessions of a root: start their agents, close and show them, clean up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import trio

from actors import ActorError, Ref, Registry
from aegis.agents.directory.programs import Programs, SessionUrls
from aegis.agents.directory.replies import closed_info
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.drivers.cookie import DriverCookies
from aegis.agents.sessions.archived import ArchivedTranscript
from aegis.agents.sessions.command_outputs import delete_unfinished
from aegis.agents.sessions.settings import ResumeAgent
from aegis.errors import AegisError, StorageError
from aegis.journal.flusher import Flusher
from aegis.journal.packed_ledger import packed_parts
from aegis.journal.purging import delete, delete_left_over, take_name
from aegis.processes.reaper import end_processes
from aegis.protocol.agents import AgentInfo, CloseAgent, ShowAgent
from aegis.protocol.inboxes import ReleaseInbox
from aegis.protocol.requests import WithdrawAsked

log = structlog.get_logger("aegis.agents")

SHOW_S = 2.0
"""Seconds that a session has to report its state for a list."""

PAUSE_S = 1.0
"""Seconds between two starts: an agent's program takes that much of a processor to start."""


async def resume_all(sessions: Sequence[Ref[Any]]) -> None:
    """Have the agents of these sessions started, one after the other."""
    for session in sessions:
        try:
            session.tell(ResumeAgent())
        except ActorError:
            continue  # it is being restarted: its agent starts with its next message
        await trio.sleep(PAUSE_S)


async def close_all(sessions: Sequence[tuple[Member, Ref[Any]]]) -> None:
    """Close these sessions, at the same time. Raises ``ActorError`` if one could not be closed."""
    failed: list[ActorError] = []

    async def close(member: Member, session: Ref[Any]) -> None:
        try:
            await session.ask(CloseAgent(handle=member.handle))
        except ActorError as error:
            failed.append(error)

    async with trio.open_nursery() as nursery:
        for member, session in sessions:
            nursery.start_soon(close, member, session)
    if failed:
        raise failed[0]


async def release(address: str, keys: SessionUrls, registry: Registry) -> None:
    """Void the URL of a closed session, and let its inbox stop."""
    with contextlib.suppress(AegisError):
        await keys.revoke(address)
    inboxes = registry.find("service", "inboxes")
    if inboxes is not None:
        with contextlib.suppress(ActorError):  # it is being restarted, or has much to do
            inboxes.tell(ReleaseInbox(handle=address))
    withdraw_asked([address], registry)


def withdraw_asked(addresses: list[str], registry: Registry) -> None:
    """Have the questions of closed sessions to a person withdrawn."""
    desk = registry.find("service", "requests")
    if desk is not None and addresses:
        with contextlib.suppress(ActorError):  # the next start withdraws them
            desk.tell(WithdrawAsked(askers=addresses, reason="its session was closed"))


async def delete_left(
    roster: Roster,
    directory: Path,
    flusher: Flusher,
    stored_of: Callable[[Member], ArchivedTranscript],
) -> None:
    """Delete what a kill has left of sessions: of their purge, of a file that was being stored."""
    purged = [stored_of(each) for each in roster.by_id.values() if each.is_purged]
    for each in purged:
        with contextlib.suppress(OSError):  # tried again by the next start
            await flusher.call(partial(_delete_directory, each))
    if purged:
        with contextlib.suppress(OSError, StorageError):
            await flusher.call(partial(_delete_archived, purged))
    kept = [directory / each.id for each in roster.kept]
    await flusher.call(partial(delete_unfinished, flusher.disk, kept))
    await flusher.call(partial(delete_left_over, flusher.disk, directory))


def delete_files(stored: ArchivedTranscript) -> None:
    """Delete the directory of a purged session, and what is in the archive. Blocking.

    Raises ``OSError``, ``StorageError``.
    """
    _delete_directory(stored)
    stored.packed.delete()


def _delete_directory(stored: ArchivedTranscript) -> None:
    doomed = take_name(stored.disk, stored.files)
    if doomed is not None:
        delete(stored.disk, doomed)


def _delete_archived(purged: Sequence[ArchivedTranscript]) -> None:
    archived = {each.ledger for each in packed_parts(purged[0].disk, purged[0].directory)}
    for each in purged:
        if each.files.name in archived:
            each.packed.delete()


async def info_of(member: Member, cwd: str, session: Ref[Any] | None) -> AgentInfo:
    """Return the state of a session in ``cwd``, whose actor may not answer."""
    if session is not None:
        with contextlib.suppress(ActorError):
            info: AgentInfo = await session.ask(ShowAgent(handle=member.handle), timeout=SHOW_S)
            return info
    return closed_info(member, cwd)


async def end_leftovers(programs: Programs) -> None:
    """End the processes of agents of an earlier daemon: its guards may have been killed with it."""
    for left in await end_processes([], DriverCookies(root=programs.root), scan=programs.scan):
        log.warning("process of an earlier agent not ended", process=str(left))

"""Transcripts and streams of sessions, as far as the directory answers for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from actors import ActorStopped, Ref, Reply, System
from aegis.agents.directory.board import Sees
from aegis.agents.directory.programs import TERMINALS
from aegis.agents.directory.replies import NO_ACTOR
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.sessions.archived import ArchivedTranscript
from aegis.agents.sessions.followers import follow_closed
from aegis.agents.sessions.transcript import TRANSCRIPT, read_closed
from aegis.errors import AegisError, NotFound, Unavailable
from aegis.journal.flusher import Flusher
from aegis.protocol.agents import ReadSession, Transcript
from aegis.protocol.feeds import FollowAgentCommand, FollowSession, SessionNews
from aegis.protocol.history import TranscriptPlace

T = TypeVar("T")


def visible_to(caller: Member | None, roster: Roster) -> Sees:
    """Return whether ``caller`` may see a session: its own and those that it spawned.

    None is a person or another client, who sees all.
    """

    def sees(id_: str) -> bool:
        if caller is None or caller.id == id_:
            return True
        return any(each.id == caller.id for each in roster.ancestors(id_))

    return sees


def transcripts_of(
    roster: Roster, directory: Path, name: str | None, sees: Sees
) -> list[TranscriptPlace]:
    """Return the transcripts that a caller ``sees``; with a name, that of its session alone."""
    named = None if name is None else roster.find(name)
    members = roster.kept if name is None else [named] if named is not None else []
    return [
        TranscriptPlace(handle=each.handle, path=str(directory / each.id / TRANSCRIPT))
        for each in members
        if each.cmd is None and not each.is_purged and sees(each.id)
    ]


async def answer_ended(
    member: Member,
    stored: ArchivedTranscript,
    flusher: Flusher,
    request: ReadSession | FollowSession,
    reply: Reply[Any],
) -> None:
    """Answer for a session that has no actor, from its directory or the archive."""
    path = stored.files / TRANSCRIPT
    found: Transcript | SessionNews
    try:
        if isinstance(request, ReadSession):
            in_place = partial(read_closed, path, flusher, request)
            found = await _of_ended(
                member, stored, flusher, in_place, partial(stored.read, request)
            )
        else:
            follow = partial(follow_closed, path, flusher, request)
            archived = partial(stored.follow, request)
            found = await _of_ended(member, stored, flusher, follow, archived)
    except AegisError as error:
        reply.fail(error)
        return
    if isinstance(found, SessionNews) and found.is_over and not member.is_closed:
        reply.fail(Unavailable(NO_ACTOR))  # a stream that asks must not start it again
    else:
        reply.send(found)


def ref_of_command(
    system: System, subtree: str, member: Member, request: FollowAgentCommand
) -> Ref[Any]:
    """Return the address of an open command, an ACP terminal. Raises ``NotFound``.

    ``subtree`` is the path of the session's supervisor.
    """
    command = request.command
    try:
        return system.ref(f"{subtree}/{TERMINALS}/{command}")
    except ActorStopped:
        raise NotFound(
            f"agent {member.address!r} has no open command {command!r}; if it was released, its "
            f"transcript has the end of its output: aegis-actors agent read {member.address}"
        ) from None


async def _of_ended(
    member: Member,
    stored: ArchivedTranscript,
    flusher: Flusher,
    in_place: Callable[[], Awaitable[T]],
    archived: Callable[[], T],
) -> T:
    """Return what is read from the directory of a session, or from the archive.

    Raises ``AegisError``.
    """
    if not member.is_closed or member.cmd is not None:
        return await in_place()  # a terminal agent has none anywhere
    if await flusher.look(stored.is_in_place):
        found = await in_place()
        if await flusher.look(stored.is_in_place):
            return found
    return await flusher.look(archived)  # it may have just been moved

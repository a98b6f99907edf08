"""The actors of one session, as a subtree of supervision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from actors import AutoShutdown, ChildSpec, MailboxSpec, Restart, SupervisorSpec
from aegis.agents.directory.programs import TERMINALS, Programs
from aegis.agents.directory.replies import settings_of
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.interactive.agent import TerminalAgent
from aegis.agents.interactive.takeover import PersonsTerminal
from aegis.agents.sessions.session import AgentSession
from aegis.agents.sessions.status import SessionIdentity
from aegis.journal.flusher import Flusher
from aegis.protocol.agents import AgentInfo

MAILBOX = MailboxSpec(capacity=4_096)


def session_subtree(
    member: Member,
    roster: Roster,
    programs: Programs,
    *,
    directory: Path,
    above: str,
    flusher: Flusher,
    on_change: Callable[[AgentInfo], None],
    is_new: bool = False,
) -> SupervisorSpec:
    """Return the subtree of a session; its supervisor is a child of ``above``, a path.

    ``directory`` is the session's own. The subtree ends with the session; one that gave up is
    started again by the next command. The session's actor is at ``above/ID/session``. ``is_new``:
    the session has just been opened. Raises ``NotFound`` if its profile is no longer configured.
    """
    cwd = roster.cwd(member)
    identity = SessionIdentity(
        id=member.id,
        address=member.address,
        name_of=programs.names.shown,
        address_of=programs.names.address_of,
        asked=partial(programs.asked.of, member.id),
        profile=member.profile,
        provider=member.provider,
        cwd=cwd,
        spawned_by=member.spawned_by,
    )
    if member.cmd is not None:
        programs.rights.note_program(member.address, programs.keys_of_program(member))
        session = ChildSpec.of(
            "session",
            TerminalAgent,
            identity=identity,
            cmd=member.cmd,
            terminal=member.address,
            directory=directory,
            lifecycle=programs.configuration.lifecycle,
            on_change=on_change,
            is_installed=programs.is_installed,
            is_new=is_new,
        )
        return _ending_with(session, member)
    profile = programs.profile_of(member)
    programs.rights.open(member.id, member.address, profile)
    session = ChildSpec.of(
        "session",
        AgentSession,
        identity=identity,
        directory=directory,
        settings=settings_of(member, profile, programs, roster),
        make_driver=programs.driver_of(member, cwd, directory, flusher),
        make_tui=partial(programs.tui_of, member, cwd, directory),
        open_tui=PersonsTerminal,
        processes=f"{above}/{member.id}/processes",
        flusher=flusher,
        on_change=on_change,
        transcript_bytes=programs.configuration.limits.transcript_bytes,
    )
    # Stopped in reverse: a driver releases the terminals of its agent.
    below = (
        SupervisorSpec(name=TERMINALS, dynamic=True),
        SupervisorSpec(name="processes", dynamic=True),
    )
    return _ending_with(session, member, below)


def _ending_with(
    session: ChildSpec, member: Member, below: tuple[SupervisorSpec, ...] = ()
) -> SupervisorSpec:
    lasting = session.with_options(restart=Restart.TRANSIENT, significant=True, mailbox=MAILBOX)
    return SupervisorSpec(
        name=member.id,
        children=(*below, lasting),
        auto_shutdown=AutoShutdown.ANY_SIGNIFICANT,
        restart=Restart.TEMPORARY,
    )

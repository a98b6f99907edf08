"""The actors of one session, as a subtree of supervision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from actors import AutoShutdown, ChildSpec, MailboxSpec, Restart, SupervisorSpec
from aegis.agents.directory.programs import TERMINALS, Programs
from aegis.agents.directory.roster import Member
from aegis.agents.sessions.session import AgentSession
from aegis.agents.sessions.settings import Settings
from aegis.agents.sessions.status import Identity
from aegis.journal.flusher import Flusher
from aegis.protocol.agents import AgentInfo

MAILBOX = MailboxSpec(capacity=4_096)


def session_subtree(
    member: Member,
    *,
    directory: Path,
    above: str,
    settings: Settings,
    programs: Programs,
    flusher: Flusher,
    on_change: Callable[[AgentInfo], None],
) -> SupervisorSpec:
    """Return the subtree of a session; its supervisor is a child of ``above``, a path.

    ``directory`` is the session's own. The subtree ends with the session; one that gave up is
    started again by the next command. The session's actor is at ``above/ID/session``.
    """
    session = ChildSpec.of(
        "session",
        AgentSession,
        identity=Identity(
            id=member.id,
            address=member.address,
            name_of=programs.names.shown,
            profile=member.profile,
            provider=member.provider,
            cwd=member.cwd,
            spawned_by=member.spawned_by,
        ),
        directory=directory,
        settings=settings,
        make_driver=programs.driver_of(member, directory),
        processes=f"{above}/{member.id}/processes",
        flusher=flusher,
        on_change=on_change,
        transcript_bytes=programs.configuration.limits.transcript_bytes,
    ).with_options(restart=Restart.TRANSIENT, significant=True, mailbox=MAILBOX)
    return SupervisorSpec(
        name=member.id,
        # Stopped in reverse: a driver releases the terminals of its agent.
        children=(
            SupervisorSpec(name=TERMINALS, dynamic=True),
            SupervisorSpec(name="processes", dynamic=True),
            session,
        ),
        auto_shutdown=AutoShutdown.ANY_SIGNIFICANT,
        restart=Restart.TEMPORARY,
    )

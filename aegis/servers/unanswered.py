"""The error sentence for a call whose actor did not answer: what happened, and what to do.

The log names the actor and the reason. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.errors import (
    ActorStopped,
    AskDeadline,
    AskError,
    MailboxFull,
    NodeDied,
    Unreachable,
)
from aegis.errors import Unavailable
from aegis.names import shorten
from aegis.protocol.entry import Entry, Owner
from aegis.protocol.nodes import unreachable


def unanswered(
    error: AskError, entry: Entry, arguments: Mapping[str, object], connection: str
) -> Unavailable:
    """Return the error for the caller of ``entry`` with ``arguments``.

    ``connection`` is the path of the caller's own actor, which passes calls on: a call that failed
    in it was passed on to no other actor.
    """
    # A late answer is that of the owner, to which the connection has passed the call on.
    if error.path == connection and not isinstance(error, AskDeadline):
        return Unavailable(
            "this connection had an internal error before your call was passed on; nothing was "
            "done: call again"
        )
    subject = _subject(entry, arguments)
    match error:
        case ActorStopped():
            return Unavailable(_stopped(subject, entry))
        case MailboxFull():
            return Unavailable(
                f"{subject} has too many calls queued; yours was rejected: try again later"
            )
        case NodeDied():
            lost = subject if entry.owner is Owner.TERMINAL else "the shell"
            return Unavailable(_lost(lost, entry))
        case Unreachable():
            happened = _unreachable(error.path, subject, arguments)
        case AskDeadline():
            happened = f"{subject} did not answer in time: the daemon is overloaded"
        case _:
            happened = f"{subject} had an internal error while it handled this call"
    return Unavailable(f"{happened}; {entry.remedy}")


def _subject(entry: Entry, arguments: Mapping[str, object]) -> str:
    if entry.owner is Owner.TERMINAL:
        return f"{entry.owner.subject} {shorten(str(arguments.get('name')))!r}"
    return entry.owner.subject


def _lost(subject: str, entry: Entry) -> str:
    return (
        f"{subject} lost its worker while it handled this call, and is being started again; "
        f"{entry.remedy_if_worker_died or entry.remedy}"
    )


def _unreachable(path: str, subject: str, arguments: Mapping[str, object]) -> str:
    node = node_of(path)
    if node is not None and "name" in arguments:
        return unreachable(shorten(str(arguments["name"])), node)
    where = "its node" if node is None else f"node {node!r}"
    return f"{subject} did not answer: {where} is unreachable"


def node_of(path: str) -> str | None:
    """Return the joined host that the actor at ``path`` is on; None if it is on none."""
    root, _, below = path.partition("/nodes/")
    return below.partition("/")[0] or None if root == "root" else None


def _stopped(subject: str, entry: Entry) -> str:
    if entry.owner is Owner.TERMINAL:
        return (
            f"{subject} was closed or has failed before it answered this call; see its state with "
            "aegis_term_list and its records with aegis_term_read"
        )
    return f"{subject} ended before it answered this call; {entry.remedy}"

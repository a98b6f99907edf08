"""What a caller is told when the actor that had its call gave no answer: what happened, what became
of the call, what to do. Which actor it was, and why, is in the log.

Pure.
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
from aegis.protocol.nodes import unreachable
from aegis.protocol.table import Entry

CALL_AGAIN = "nothing is lost: call again"
AGAIN_DOES_NO_HARM = "it may have been carried out; calling again does no harm"
LOOK_AND_CALL_AGAIN = "aegis_term_list tells what became of it; then call again if need be"
LOOK_AT_SESSIONS = "it may be done already: session_list shows who has a session"
LOOK_AT_WORKSPACES = "workspace_list tells what became of it; then call again if need be"

REMEDIES = {
    "term_spawn": LOOK_AND_CALL_AGAIN,
    "term_list": CALL_AGAIN,
    "term_run": "if your command was typed it goes on: look for its record with aegis_term_read "
    "before you run it again",
    "term_broadcast": "where your command was typed it goes on: look for its records with "
    "aegis_term_read before you run it again",
    "term_keys": "the keys may have been typed: look with aegis_term_read before you send them "
    "again",
    "term_signal": "the signal may have been sent: look with aegis_term_list before you send it "
    "again",
    "term_resize": AGAIN_DOES_NO_HARM,
    "term_read": CALL_AGAIN,
    "term_screen": CALL_AGAIN,
    "term_output": CALL_AGAIN,
    "term_wait": CALL_AGAIN,
    "term_subscribe": AGAIN_DOES_NO_HARM,
    "term_unsubscribe": AGAIN_DOES_NO_HARM,
    "term_close": LOOK_AND_CALL_AGAIN,
    "workspace_create": LOOK_AT_WORKSPACES,
    "workspace_list": CALL_AGAIN,
    "workspace_delete": LOOK_AT_WORKSPACES,
    "workspace_exec": "your command was ended if it ran: look at what it may have done before you "
    "run it again",
    "shell_open": LOOK_AT_WORKSPACES,
    "shell_read": CALL_AGAIN,
    "shell_write": "it may have been typed: look with shell_read before you send it again",
    "shell_signal": "the signal may have been sent: look with shell_read before you send it again",
    "shell_close": LOOK_AT_WORKSPACES,
    "inbox_read": CALL_AGAIN,
    "inbox_wait": CALL_AGAIN,
    "handoff": "your message may have been delivered: sent again, it may be there twice",
    "status": CALL_AGAIN,
    "tree": CALL_AGAIN,
    "node_forget": AGAIN_DOES_NO_HARM,
    "session_new": AGAIN_DOES_NO_HARM,
    "session_list": CALL_AGAIN,
    "session_revoke": LOOK_AT_SESSIONS,
    "token_rotate": "the old key may be void already: call again, which voids the new one as well",
    "down": AGAIN_DOES_NO_HARM,
}
"""What became of a call, and what to do, by the name of its command."""

WITH_ITS_WORKER = {
    "term_run": "if your command was typed it was killed: look for its record with "
    "aegis_term_read before you run it again",
    "term_broadcast": "where your command was typed it was killed: look for its records with "
    "aegis_term_read before you run it again",
    "term_keys": "the keys may have been typed, and what they began was killed: look with "
    "aegis_term_read before you send them again",
    "term_signal": "what it was meant for was killed",
    "shell_write": "it may have been typed, and what it began was killed: look with shell_read "
    "before you send it again",
    "shell_signal": "what it was meant for was killed",
}
"""The same where a worker has died, for commands of which that is something else."""

_SUBJECTS = {
    "terminals": "the directory of terminals",
    "inboxes": "the inbox",
    "workspaces": "the directory of workspaces",
    "daemon": "the daemon",
}


def unanswered(
    error: AskError, entry: Entry, arguments: Mapping[str, object], connection: str
) -> Unavailable:
    """How ``error`` reads to whoever called ``entry`` with ``arguments``.

    ``connection`` is the path of the caller's own actor, which hands calls on: one that it has
    itself reached nobody else.
    """
    if error.path == connection:
        return Unavailable(
            "this connection had an internal error before your call reached anybody; nothing was "
            "done: call again"
        )
    subject = _subject(entry, arguments)
    match error:
        case ActorStopped():
            return Unavailable(_stopped(subject, entry))
        case MailboxFull():
            return Unavailable(
                f"{subject} has too many calls waiting already; yours was not taken: try again "
                "later"
            )
        case NodeDied():
            return Unavailable(_lost(subject if entry.owner == "terminal" else "the shell", entry))
        case Unreachable():
            happened = _cut_off(error.path, subject, arguments)
        case AskDeadline():
            happened = f"{subject} gave no answer in time: the daemon is overloaded"
        case _:
            happened = f"{subject} had an internal error while it handled this call"
    return Unavailable(f"{happened}; {REMEDIES[entry.name]}")


def _subject(entry: Entry, arguments: Mapping[str, object]) -> str:
    if entry.owner == "terminal":
        return f"terminal {shorten(str(arguments.get('name')))!r}"
    return _SUBJECTS[entry.owner]


def _lost(subject: str, entry: Entry) -> str:
    """What is told of a worker that died."""
    return (
        f"{subject} lost its worker while it handled this call, and is being started again; "
        f"{WITH_ITS_WORKER.get(entry.name, REMEDIES[entry.name])}"
    )


def _cut_off(path: str, subject: str, arguments: Mapping[str, object]) -> str:
    """What is told of an actor on a host whose connection is cut."""
    node = node_of(path)
    if node is not None and "name" in arguments:
        return unreachable(shorten(str(arguments["name"])), node)
    where = "its node" if node is None else f"node {node!r}"
    return f"{subject} gave no answer: {where} is unreachable"


def node_of(path: str) -> str | None:
    """The host that the actor at ``path`` is on, if it is on one that joined."""
    root, _, below = path.partition("/nodes/")
    return below.partition("/")[0] or None if root == "root" else None


def _stopped(subject: str, entry: Entry) -> str:
    if entry.owner == "terminal":
        return (
            f"{subject} was closed, or has failed, before it answered this call; aegis_term_list "
            "shows how it stands, aegis_term_read what it recorded"
        )
    return f"{subject} has ended before it answered this call; {REMEDIES[entry.name]}"

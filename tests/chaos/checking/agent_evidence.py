"""The evidence about agent sessions: requests of clients, and what the agents' programs did. Pure.

Programs log by themselves, independent of any daemon. Moments are those of ``observations``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from tests.chaos.checking.observations import Message, Span

Entry = Mapping[str, Any]
"""A line of a transcript."""

WORK = re.compile(r"@work[.][0-9]+[.][a-z]+@")
"""The token of an order, unique, as part of the message."""


def is_worker(session: Entry) -> bool:
    """Return whether a session was opened for a task or by a workflow, which closes it."""
    return str(session.get("spawned_by", "")).startswith(("queue:", "workflow:"))


OrderKind = Literal["interrupt", "restart", "close", "resume", "purge", "takeover", "handback"]


# Requests of clients.


@attrs.frozen(kw_only=True)
class Spawned:
    """A spawn under a chosen handle. ``done`` as in ``Change``; ``id`` is that of the session.

    ``fork_of`` is the handle of the session whose conversation was to be copied.
    """

    handle: str
    span: Span
    done: bool | None
    id: str | None = None
    prompt: str | None = None
    fork_of: str | None = None


@attrs.frozen(kw_only=True)
class Work:
    """A message to a session. ``receipt`` is its id; None without an answer."""

    to: str
    sender: str
    token: str
    span: Span
    receipt: str | None


@attrs.frozen(kw_only=True)
class Ordered:
    """An order to a session by a client; ``done`` as in ``Change``.

    ``prompt`` is the message of a resume.
    """

    kind: OrderKind
    handle: str
    span: Span
    done: bool | None
    prompt: str | None = None


@attrs.frozen(kw_only=True)
class Replied:
    """An answer to a request, and its outcome; None without a reply, ``refused`` for an error."""

    id: str
    answer: str
    is_shown: bool
    span: Span
    outcome: str | None


# What the programs did.


@attrs.frozen(kw_only=True)
class Process:
    """One process of an agent's program.

    ``resumes`` is the conversation that it was to resume, ``conversation`` the one that it had,
    empty if it refused. ``is_fork``: it was to copy the conversation ``resumes`` and have the copy.
    ``is_primed``: it got the last texts of a lost conversation. ``beside`` names processes of the
    same session that lived when it began. ``is_person``: a person's, in a terminal.
    """

    number: int
    session: str
    begun: int
    resumes: str | None
    conversation: str = ""
    is_ready: bool = False
    is_primed: bool = False
    is_fork: bool = False
    is_person: bool = False
    beside: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Began:
    """The first use of a conversation, which is the session's from then on.

    ``by_person``: in a terminal, where the daemon learns of it at the end.
    """

    process: int
    session: str
    conversation: str
    by_person: bool
    moment: int


@attrs.frozen(kw_only=True)
class Said:
    """A text of a take-over; ``source`` is its id in the program's files."""

    session: str
    process: int
    source: str
    text: str


@attrs.frozen(kw_only=True)
class UserFrame:
    """A user frame that was written to a process; ``tokens`` are those of its messages."""

    process: int
    session: str
    uuid: str
    tokens: tuple[str, ...]
    moment: int


@attrs.frozen(kw_only=True)
class Reported:
    """The end of a turn as the program reported it; it answers ``uuid``, or none of ours."""

    process: int
    session: str
    uuid: str
    outcome: Literal["ok", "failed", "cancelled"]
    moment: int


@attrs.frozen(kw_only=True)
class Question:
    """A request of the program; ``token`` is unique, and part of its input."""

    process: int
    session: str
    key: str
    token: str
    moment: int


@attrs.frozen(kw_only=True)
class Effect:
    """An answer that was written to a process."""

    process: int
    key: str
    token: str
    is_allowed: bool
    moment: int


@attrs.frozen(kw_only=True)
class AgentEvidence:
    """Everything about agents.

    ``sessions`` is the final list, closed ones too, ``transcripts`` by id of the session, ``files``
    the ids of sessions that have files. ``inboxes`` are all messages by handle, of sessions and of
    people. ``requests`` is the final list, and ``waits`` has the tokens of questions that live
    processes still waited for.
    ``stuck`` names sessions that did not come to rest in the undisturbed last life, and why.
    ``reads_late``: programs logged frames when they had read them. So an answer may have been lost
    with its process, and the moment of its effect is too late.
    """

    spawned: tuple[Spawned, ...] = ()
    work: tuple[Work, ...] = ()
    ordered: tuple[Ordered, ...] = ()
    replied: tuple[Replied, ...] = ()
    processes: tuple[Process, ...] = ()
    frames: tuple[UserFrame, ...] = ()
    reported: tuple[Reported, ...] = ()
    questions: tuple[Question, ...] = ()
    effects: tuple[Effect, ...] = ()
    begun: tuple[Began, ...] = ()
    said: tuple[Said, ...] = ()
    sessions: tuple[Entry, ...] = ()
    transcripts: Mapping[str, tuple[Entry, ...]] = attrs.field(factory=dict)
    files: tuple[str, ...] = ()
    inboxes: Mapping[str, tuple[Message, ...]] = attrs.field(factory=dict)
    requests: tuple[Entry, ...] = ()
    waits: frozenset[str] = frozenset()
    stuck: tuple[str, ...] = ()
    reads_late: bool = False

    def entries(self, session: str, *kinds: str) -> list[Entry]:
        """Return the entries of these kinds in the transcript of a session."""
        return [each for each in self.transcripts.get(session, ()) if each.get("kind") in kinds]

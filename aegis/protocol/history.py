"""The history: what has ended, found by kind, name, time, word and exit code."""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.protocol.command import Command, at_most_chars, between, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.requests import Answerer

HistoryKind = Literal["command", "task", "request", "run", "message", "transcript"]

MAX_TEXT_CHARS = 1_000
MAX_TIME_CHARS = 40
MAX_WORD_CHARS = 200
MORE_PATTERN = r"[0-9A-HJKMNP-TV-Z]{26}"
MORE_RULE = "the more of the page before"


@attrs.frozen(kw_only=True)
class HistoryEntry:
    """An ended command, task, request or workflow run, a message, or a text of a transcript.

    ``name`` is that of the terminal, queue or workflow, or the handle that asked, of the inbox, or
    of the session. ``at`` is the time of the end, or of the message, UTC, ISO 8601. ``id`` is the
    seq of the record, or the id of the task, request, run or message, ``text`` the beginning of the
    command, the payload, the question, the arguments or the message, and of a transcript the part
    with the word. ``by`` is the writer, the sender or the answerer. ``outcome`` is ``completed``,
    ``failed`` or ``cancelled`` for a task or run, the answer or ``withdrawn`` for a request,
    ``read`` or ``unread`` for a message, and the reason of the end for a command, whose exit code
    is ``exit``. For a text it is ``message``, ``text``, ``tool``, ``result`` or ``failed``, or the
    outcome of a turn that was not completed. ``archived``: it is in the archive only. ``began`` is
    the time when the command, the newest attempt of the task, the request or the run began; null of
    one that never began, and of what is a moment: a message and a text.
    """

    kind: HistoryKind
    at: str
    name: str
    id: str
    text: str
    by: str
    outcome: str
    exit: int | None = None
    archived: bool = False
    began: str | None = None


@attrs.frozen(kw_only=True)
class HistoryPage:
    """The entries found, the newest first.

    With ``more``, the same search continues behind the last entry. A page may have few entries, or
    none, and ``more`` all the same: the search has read for a while and found no others yet.
    ``problems`` are the reasons why a ledger or a part of the archive was left out.
    """

    result: list[HistoryEntry]
    more: str | None = None
    problems: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class SearchHistory(Command[HistoryPage]):
    """Find ended commands of all terminals, tasks, requests, runs; messages; texts of transcripts.

    The archive is searched as well, newest first. Use aegis_term_read for the output of a command,
    aegis_task_status and aegis_workflow_status for results, aegis_request_list for a request,
    aegis_session_read for a transcript. An agent finds the requests and transcripts that it may
    read, and the messages to it. Messages and transcripts are searched only if that is the kind.
    """

    kind: HistoryKind | None = attrs.field(
        default=None,
        metadata=described("Only this kind: command, task, request, run, message or transcript."),
    )
    name: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "Only this terminal, queue, handle or workflow.", pattern=f"^{NAME_PATTERN}$"
        ),
    )
    word: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_WORD_CHARS),
        metadata=described(
            "Text in the command, in the first 200 characters of the payload or arguments, in the "
            "question of a request, in the beginning of a message or in a transcript, in any case."
        ),
    )
    exit_code: int | None = attrs.field(
        default=None,
        validator=between(0, 255, "(an exit code)"),
        metadata=described("Only commands with this exit code.", minimum=0, maximum=255),
    )
    since: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_TIME_CHARS),
        metadata=described("Not before this time, ISO 8601."),
    )
    until: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_TIME_CHARS),
        metadata=described("Not after this time, ISO 8601."),
    )
    limit: int = attrs.field(
        default=50,
        validator=between(1, 200, "entries"),
        metadata=described("Maximum number of entries.", minimum=1, maximum=200),
    )
    more: str | None = attrs.field(
        default=None,
        validator=matching(MORE_PATTERN, MORE_RULE),
        metadata=described("Continue the search that gave this.", pattern=f"^{MORE_PATTERN}$"),
    )


@attrs.frozen(kw_only=True)
class EndedEntries:
    """Ended rows that are in tables, the newest first."""

    ids: list[str] = attrs.field(factory=list)
    entries: list[HistoryEntry] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ListEnded(Request[EndedEntries]):
    """List the ids of all ended rows in the tables of a desk, or the rows with these ``ids``.

    Of the latter only those that ``by``, None for a person, may see.
    """

    ids: list[str] | None = None
    by: Answerer | None = None


@attrs.frozen(kw_only=True)
class TranscriptPlace:
    """The transcript of a session, by its present handle."""

    handle: str
    path: str


@attrs.frozen(kw_only=True)
class ListTranscripts(Request[list[TranscriptPlace]]):
    """List the transcripts that ``from_handle`` may read, None for a person.

    With a ``name`` that of the session alone that has or had this handle.
    """

    name: str | None = None
    from_handle: str | None = None

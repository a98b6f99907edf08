"""The history: what has ended, found by kind, name, time, word and exit code."""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.protocol.command import Command, at_most_chars, between, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE

HistoryKind = Literal["command", "task"]

MAX_TEXT_CHARS = 1_000
MAX_TIME_CHARS = 40
MAX_WORD_CHARS = 200
MORE_PATTERN = r"[0-9A-HJKMNP-TV-Z]{26}"
MORE_RULE = "the more of the page before"


@attrs.frozen(kw_only=True)
class HistoryEntry:
    """A command of the terminal ``name``, or a task of the queue ``name``, that has ended.

    ``at`` is the time of its end, UTC, ISO 8601. ``id`` is the seq of its record or the id of the
    task, ``text`` the beginning of the command or of the payload, ``by`` its writer or sender.
    ``outcome`` is ``completed``, ``failed`` or ``cancelled`` for a task, and the reason of the end
    for a command, whose exit code is ``exit``. ``archived``: it is in the archive only.
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


@attrs.frozen(kw_only=True)
class HistoryPage:
    """The entries found, the newest first.

    With ``more``, the same search continues behind the last entry. A page may have few entries, or
    none, and ``more`` all the same: the search has read for a while and found no others yet.
    """

    result: list[HistoryEntry]
    more: str | None = None


@attrs.frozen(kw_only=True)
class SearchHistory(Command[HistoryPage]):
    """Find ended commands of all terminals, closed ones too, and tasks, the newest first.

    The archive is searched as well. Use aegis_term_read for the output of a command, and
    aegis_task_status for the result of a task.
    """

    kind: HistoryKind | None = attrs.field(
        default=None, metadata=described("Only this kind: command or task.")
    )
    name: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described("Only this terminal or queue.", pattern=f"^{NAME_PATTERN}$"),
    )
    word: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_WORD_CHARS),
        metadata=described(
            "Text in the command or in the first 200 characters of the payload, in any case."
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
class EndedTasks:
    """Ended tasks in the tables of queues, the newest first."""

    ids: list[str] = attrs.field(factory=list)
    entries: list[HistoryEntry] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ListEndedTasks(Request[EndedTasks]):
    """List the ids of all ended tasks that are not archived, or the tasks with these ``ids``."""

    ids: list[str] | None = None

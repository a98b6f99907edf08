"""Streams of agent sessions: their arguments and items. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.agent_commands import COMMAND_PATTERN, COMMAND_RULE
from aegis.protocol.agents import HANDLE, AgentInfo, TranscriptEntry
from aegis.protocol.command import Command, between, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.output import MAX_CURSOR


@attrs.frozen(kw_only=True)
class StreamAgents(Command[Any]):
    """Agent sessions: all open ones first, then each whose state has changed.

    A slow client gets the newest state of a session and none between. If changes were missed, all
    sessions are sent again. A session sees itself and the sessions that it spawned.
    """


@attrs.frozen(kw_only=True)
class AgentsItem:
    """All open sessions, in the order of their handles; no other is open."""

    agents: list[AgentInfo]


@attrs.frozen(kw_only=True)
class AgentItem:
    """A session as it is now: new, changed or closed; ``id`` identifies it."""

    agent: AgentInfo


@attrs.frozen(kw_only=True)
class StreamSession(Command[Any]):
    """The transcript of your own session, or of one that you spawned, as it is written.

    An entry is sent when it is written: an event of the agent before it is synced, the beginning
    and the end of a turn after that. A slow client gets every entry, later, from the transcript; a
    gap is sent for entries that are no longer kept, or that the disk has lost. The stream ends with
    ``closed``, after the last entry, when the session is closed.
    """

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    since: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a seq)"),
        metadata=described("Begin after the entry with this seq; default: now.", minimum=0),
    )
    last_n: int | None = attrs.field(
        default=None,
        validator=between(1, 1000, "entries"),
        metadata=described(
            "Begin with the newest entries, 1 to 1000. Not together with since.",
            minimum=1,
            maximum=1000,
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.since is not None and self.last_n is not None:
            raise ValueError("give since or last_n, not both")


@attrs.frozen(kw_only=True)
class StreamAgentCommand(Command[Any]):
    """The output of a command that an agent has its session run, as it is printed.

    It begins with the output that is kept. Text is without escape sequences, and of a line that is
    redrawn only the last state counts; text that is no longer kept is a gap, in bytes. The stream
    ends with ``closed`` when the agent has released the command and its end was sent.
    ``aegis_term_list`` has the ids of open commands. A session may follow its own commands, and
    those of sessions that it spawned.
    """

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    command: str = attrs.field(
        validator=matching(COMMAND_PATTERN, COMMAND_RULE),
        metadata=described("The id of the command."),
    )


@attrs.frozen(kw_only=True)
class CommandOutputItem:
    """The next ``text``, of whole lines, and the last ``line`` so far, which is not finished.

    A later item has a line again, changed or in its text. ``exit_code`` or ``signal`` is set once
    the command ``has_ended``; a process that it left behind may print afterwards.
    """

    text: str
    line: str = ""
    has_ended: bool = False
    exit_code: int | None = None
    signal: str | None = None


@attrs.frozen(kw_only=True)
class SessionStart:
    """The entries after ``since`` follow; ``newest`` is the newest one so far."""

    since: int
    newest: int


@attrs.frozen(kw_only=True)
class EntriesItem:
    """The next entries, oldest first."""

    entries: list[TranscriptEntry]

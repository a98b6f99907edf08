"""Requests of streams to the actors, each answered once there is something new. Pure.

Used inside the daemon only. The actors keep no state per stream: each request has its position.
"""

from __future__ import annotations

import attrs

from actors.messages import Request
from aegis.protocol.agents import AgentInfo, TranscriptEntry
from aegis.protocol.inboxes import Message
from aegis.protocol.streams import Redraw
from aegis.protocol.terminals import Done, State


@attrs.frozen(kw_only=True)
class View:
    """The size of a terminal's window, and its state."""

    cols: int
    rows: int
    state: State


@attrs.frozen(kw_only=True)
class OutputNews:
    """``data`` begins at ``cursor``; ``dropped`` bytes before it are no longer kept.

    ``source`` is the path of the actor to ask for more. ``is_over``: ``data`` ends the output.
    """

    data: bytes
    cursor: int
    dropped: int
    view: View
    alternate: bool
    source: str
    is_over: bool


@attrs.frozen(kw_only=True)
class FollowOutput(Request[OutputNews]):
    """Return the output of terminal ``name`` from ``cursor`` (None: from now) on.

    Answered once there is some or the view differs from ``seen``; at once if ``max_bytes`` is 0.
    ``newest``: if bytes are no longer kept, continue near the end, not with the oldest ones.
    """

    name: str
    cursor: int | None
    max_bytes: int
    seen: View | None = None
    newest: bool = False


@attrs.frozen(kw_only=True)
class DrawScreen(Request[Redraw]):
    """Draw the current screen of terminal ``name``."""

    name: str


@attrs.frozen(kw_only=True)
class KeptBytes:
    """``data`` begins at ``cursor``; empty: nothing is kept from there on.

    ``failure`` is the reason why the terminal ended, unless it was closed. ``is_back``: it was
    restarted in another process, and its front answers.
    """

    data: bytes
    cursor: int
    failure: str | None
    is_back: bool = False


@attrs.frozen(kw_only=True)
class ReadKept(Request[KeptBytes]):
    """Return the kept output of a closed terminal from ``cursor`` on."""

    name: str
    cursor: int
    max_bytes: int


@attrs.frozen(kw_only=True)
class TypeBytes(Request[Done]):
    """Type these bytes on terminal ``name`` under ``from_handle`` (None: ``human``)."""

    name: str
    keys: bytes
    from_handle: str | None


@attrs.frozen(kw_only=True)
class InboxPlace:
    """A reader's position in an inbox.

    ``at`` is the place of a message in its ledger; ``number`` counts the messages of the actor's
    incarnation ``life``.
    """

    at: int
    number: int
    life: int


@attrs.frozen(kw_only=True)
class InboxNews:
    """``messages`` after the requested place, oldest first; ``missed`` of them are gone."""

    messages: list[Message]
    missed: int
    place: InboxPlace


@attrs.frozen(kw_only=True)
class FollowInbox(Request[InboxNews]):
    """Return the unacknowledged messages after ``place``, at most ``limit``, once there are any.

    Without a place it is answered at once without messages, with the place of the message ``after``
    or of the newest one. Acknowledges nothing.
    """

    handle: str
    after: str | None = None
    place: InboxPlace | None = None
    limit: int = 50


@attrs.frozen(kw_only=True)
class SessionPlace:
    """A reader's position in a transcript: after the entry ``seq``.

    ``offset`` is the end of that entry in the file that ``file`` names; None: unknown.
    """

    seq: int
    offset: int | None = None
    file: str = ""


@attrs.frozen(kw_only=True)
class SessionNews:
    """``entries`` after the requested place, oldest first; ``missed`` before them are gone.

    ``newest`` is the newest entry that may be shown. ``is_over``: the session is closed, and these
    are its last entries.
    """

    entries: list[TranscriptEntry]
    place: SessionPlace
    newest: int
    missed: int = 0
    is_over: bool = False


@attrs.frozen(kw_only=True)
class FollowSession(Request[SessionNews]):
    """Return the entries of a transcript after ``place``, once there are any.

    Without a place it is answered at once and without entries, with the place after the entry
    ``since``, or before the newest ``last_n`` entries.
    """

    handle: str
    from_handle: str | None = None
    since: int | None = None
    last_n: int = 0
    place: SessionPlace | None = None


@attrs.frozen(kw_only=True)
class AgentsPlace:
    """A reader's position in the changes of sessions, which ``board`` has counted."""

    board: str
    change: int


@attrs.frozen(kw_only=True)
class AgentsNews:
    """The sessions that have changed after the requested place, in the order of their changes.

    ``is_all``: these are all open sessions.
    """

    agents: list[AgentInfo]
    place: AgentsPlace
    is_all: bool = False


@attrs.frozen(kw_only=True)
class FollowAgents(Request[AgentsNews]):
    """Return the sessions that have changed after ``place``, once there are any.

    Without a place, or if changes after it are not known, all open sessions at once.
    """

    from_handle: str | None = None
    place: AgentsPlace | None = None

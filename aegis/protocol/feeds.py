"""Requests of streams to the actors, each answered once there is something new. Pure.

Used inside the daemon only. The actors keep no state per stream: each request has its position.
"""

from __future__ import annotations

import attrs

from actors.messages import Request
from aegis.protocol.agents import AgentInfo, TranscriptEntry
from aegis.protocol.canvases import CanvasInfo
from aegis.protocol.groups import GroupInfo
from aegis.protocol.inboxes import Message
from aegis.protocol.output_streams import Redraw
from aegis.protocol.queues import QueueInfo
from aegis.protocol.terminals import Done, NeedsInput, State, Typing
from aegis.protocol.workflows import WorkflowInfo


@attrs.frozen(kw_only=True)
class OwnedSize:
    """The owner of a terminal's size: its ``token``, the writer, and the time of the claim."""

    token: str
    writer: str
    since: str


@attrs.frozen(kw_only=True)
class View:
    """The state of a terminal beside its output, as in the items of the stream."""

    cols: int
    rows: int
    state: State
    needs_input: NeedsInput | None = None
    title: str = ""
    bells: int = 0
    typing: Typing | None = None
    size_owner: OwnedSize | None = None


@attrs.frozen(kw_only=True)
class SizeAt:
    """The size of the window from the byte ``cursor`` on."""

    cursor: int
    cols: int
    rows: int


@attrs.frozen(kw_only=True)
class OutputNews:
    """``data`` begins at ``cursor``; ``dropped`` bytes before it are no longer kept.

    ``sizes`` are those of the window at ``cursor`` and, in order, up to the end of ``data``.
    ``source`` is the path of the actor to ask for more. ``is_over``: ``data`` ends the output.
    """

    data: bytes
    cursor: int
    dropped: int
    sizes: tuple[SizeAt, ...]
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
    """Draw the current screen of terminal ``name``, behind ``scrollback`` lines above it."""

    name: str
    scrollback: int = 0


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
class ClaimSize(Request[Done]):
    """Make the stream ``token`` the owner of the size of terminal ``name``, and resize it.

    Refused if another stream owns the size, unless ``take``. ``from_handle`` None: ``human``.
    """

    name: str
    token: str
    cols: int
    rows: int
    take: bool
    from_handle: str | None


@attrs.frozen(kw_only=True)
class ReleaseSize(Request[Done]):
    """End the ownership of the stream ``token``, if it owns the size of terminal ``name``."""

    name: str
    token: str


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
class AgentCommandNews:
    """The output of a command of an agent: ``text`` from the offset ``begin`` up to ``cursor``.

    ``line`` is the last line so far, which is not finished. ``exit_code`` and ``signal`` are set
    once the command has ended.
    """

    begin: int
    cursor: int
    text: str
    line: str = ""
    has_ended: bool = False
    exit_code: int | None = None
    signal: str | None = None


@attrs.frozen(kw_only=True)
class FollowAgentCommand(Request[AgentCommandNews]):
    """Return the output of a command of an agent from ``cursor`` on, once it differs from ``seen``.

    Without ``seen`` it is answered at once. ``command`` is the id of its ACP terminal.
    """

    handle: str
    command: str
    from_handle: str | None = None
    cursor: int = 0
    seen: AgentCommandNews | None = None


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


@attrs.frozen(kw_only=True)
class StatesPlace:
    """A reader's position in the changes of things by name, as ``desk`` has counted them."""

    desk: str
    change: int


@attrs.frozen(kw_only=True)
class QueuesNews:
    """The queues that have changed after the requested place; ``is_all``: these are all."""

    queues: list[QueueInfo]
    place: StatesPlace
    is_all: bool = False


@attrs.frozen(kw_only=True)
class FollowQueues(Request[QueuesNews]):
    """Return the queues that have changed after ``place``, once there are any.

    Without a place, or if changes after it are not known, all queues at once.
    """

    place: StatesPlace | None = None


@attrs.frozen(kw_only=True)
class CanvasesNews:
    """The canvases that have changed after the requested place; ``is_all``: these are all."""

    canvases: list[CanvasInfo]
    place: StatesPlace
    is_all: bool = False


@attrs.frozen(kw_only=True)
class FollowCanvases(Request[CanvasesNews]):
    """Return the canvases that have changed after ``place``, once there are any.

    Without a place, or if changes after it are not known, all canvases at once.
    """

    place: StatesPlace | None = None


@attrs.frozen(kw_only=True)
class WorkflowsNews:
    """The workflows that have changed after the requested place; ``is_all``: all that run."""

    workflows: list[WorkflowInfo]
    place: StatesPlace
    is_all: bool = False


@attrs.frozen(kw_only=True)
class FollowWorkflows(Request[WorkflowsNews]):
    """Return the workflows that have changed after ``place``, once there are any.

    Without a place, or if changes after it are not known, all that run at once.
    """

    place: StatesPlace | None = None


@attrs.frozen(kw_only=True)
class GroupsNews:
    """The groups that have changed after the requested place; ``is_all``: these are all."""

    groups: list[GroupInfo]
    place: StatesPlace
    is_all: bool = False


@attrs.frozen(kw_only=True)
class FollowGroups(Request[GroupsNews]):
    """Return the groups that have changed after ``place``, once there are any.

    Without a place, or if changes after it are not known, all groups at once.
    """

    place: StatesPlace | None = None

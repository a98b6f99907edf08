"""What streams ask the actors that know: each answer waits until there is something to tell. Pure.

Inside the daemon only. Nothing is kept for who does not ask: it says how far it has come.
"""

from __future__ import annotations

import attrs

from actors.messages import Request
from aegis.protocol.inboxes import Message
from aegis.protocol.streams import Redraw
from aegis.protocol.terminals import Done, State


@attrs.frozen(kw_only=True)
class View:
    """What of a terminal is no output: the size of its window, and its state."""

    cols: int
    rows: int
    state: State


@attrs.frozen(kw_only=True)
class OutputNews:
    """``data`` begins at ``cursor``; ``dropped`` bytes before it are no longer kept.

    ``source`` is the path of the actor to ask for more. ``is_over``: nothing will be printed behind
    ``data`` any more.
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
    """Give what was printed on terminal ``name`` from ``cursor`` (None: from now) on.

    Answered once there is some, or the view is another one than ``seen``; at once if ``max_bytes``
    is 0. ``newest``: where bytes are no longer kept go on near the end, not with the oldest.
    """

    name: str
    cursor: int | None
    max_bytes: int
    seen: View | None = None
    newest: bool = False


@attrs.frozen(kw_only=True)
class DrawScreen(Request[Redraw]):
    """Draw the screen of terminal ``name`` as it is now."""

    name: str


@attrs.frozen(kw_only=True)
class KeptBytes:
    """``data`` begins at ``cursor``; empty: nothing is kept from there on.

    ``failure`` says why the terminal is gone, if nobody closed it. ``is_back``: it is not gone; it
    was started again, in another process, and its front is to be asked.
    """

    data: bytes
    cursor: int
    failure: str | None
    is_back: bool = False


@attrs.frozen(kw_only=True)
class ReadKept(Request[KeptBytes]):
    """Give what is kept of a terminal's output from ``cursor`` on, though it is closed."""

    name: str
    cursor: int
    max_bytes: int


@attrs.frozen(kw_only=True)
class TypeBytes(Request[Done]):
    """Type these bytes on terminal ``name``; ``from_handle`` (None: ``human``) is who does."""

    name: str
    keys: bytes
    from_handle: str | None


@attrs.frozen(kw_only=True)
class InboxPlace:
    """How far somebody has read an inbox.

    ``at`` is the place of a message in its ledger; ``number`` counts those of the actor's life
    ``life``.
    """

    at: int
    number: int
    life: int


@attrs.frozen(kw_only=True)
class InboxNews:
    """``messages`` behind the place asked for, oldest first; ``missed`` are gone already."""

    messages: list[Message]
    missed: int
    place: InboxPlace


@attrs.frozen(kw_only=True)
class FollowInbox(Request[InboxNews]):
    """Give the unacknowledged messages behind ``place``, at most ``limit``, once there are any.

    Without a place the answer comes at once, without messages: the place of the message ``after``,
    or of the newest. Acknowledges nothing.
    """

    handle: str
    after: str | None = None
    place: InboxPlace | None = None
    limit: int = 50

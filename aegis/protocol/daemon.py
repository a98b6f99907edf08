"""The daemon itself: its status, its live tree, keys and sessions, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from aegis.protocol.command import Command, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.nodes import NodeStatus


@attrs.frozen(kw_only=True)
class DaemonStatus:
    """The daemon in figures: ``uptime_s`` in seconds, ``rss_bytes`` resident memory.

    ``late_replies`` counts answers that came after their asker's time and were dropped. ``nodes``
    are worker processes and hosts that have joined.
    """

    version: str
    pid: int
    root: str
    url: str
    uptime_s: float
    rss_bytes: int
    open_files: int
    actors: int
    terminals: int
    handles: list[str]
    connections: int
    late_replies: int
    nodes: list[NodeStatus] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class TreeNode:
    """One actor of the live tree.

    ``mailbox`` is how many messages wait, ``restarts`` how many lives came before this one,
    ``uptime_s`` the age of this life in seconds.
    """

    path: str
    name: str
    kind: str
    state: str
    mailbox: int
    restarts: int
    uptime_s: float
    children: list[TreeNode]


class Place(Protocol):
    """A place of the tree as the runtime shows it: an attrs object with the fields of a node."""

    @property
    def children(self) -> Sequence[Place]:
        """What is below it."""


def tree_node(place: Place) -> TreeNode:
    """The runtime's tree as it travels."""
    shown: Any = place
    fields: dict[str, Any] = attrs.asdict(shown, recurse=False)
    fields["children"] = [tree_node(child) for child in place.children]
    return TreeNode(**fields)


@attrs.frozen(kw_only=True)
class Session:
    """How to connect as ``handle``: ``url`` is an MCP URL that is its own key. Keep it secret."""

    handle: str
    url: str


@attrs.frozen(kw_only=True)
class SessionList:
    """The handles that have a session, in alphabetical order."""

    handles: list[str]


@attrs.frozen(kw_only=True)
class Voided:
    """What is void now and cannot be used any more.

    ``token``: whether the operator's token is. ``sessions``: the handles whose secrets are.
    ``connections``: how many clients had shown one of these keys; they have been sent away.
    """

    token: bool
    sessions: list[str]
    connections: int


@attrs.frozen(kw_only=True)
class Stopping:
    """The daemon with this ``pid`` stops; its endpoint file disappears when it is gone."""

    pid: int


@attrs.frozen(kw_only=True)
class GetStatus(Command[DaemonStatus]):
    """Show the daemon's state: address, age, memory, how much it holds."""


@attrs.frozen(kw_only=True)
class GetTree(Command[TreeNode]):
    """Show the live supervision tree: every actor, its state, mailbox, restarts and age."""


def _a_handle(whose: str) -> Any:
    return described(f"{whose} A handle: {NAME_RULE}.", whose, pattern=f"^{NAME_PATTERN}$")


@attrs.frozen(kw_only=True)
class NewSession(Command[Session]):
    """Make the MCP URL of a handle, or give the one it has."""

    handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=_a_handle("Whose session."),
    )


@attrs.frozen(kw_only=True)
class ListSessions(Command[SessionList]):
    """Name the handles that have a session. Their secrets are not told."""


@attrs.frozen(kw_only=True)
class RevokeSession(Command[Voided]):
    """Void a handle's MCP URL for good, and send away whoever uses it.

    The handle keeps its inbox. It can be given a new URL.
    """

    handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=_a_handle("Whose session."),
    )


@attrs.frozen(kw_only=True)
class RotateToken(Command[Voided]):
    """Void keys, put new ones in their place, and send away whoever uses the old ones.

    Without arguments the operator's token, with `session` a handle's secret, with `all_keys` the
    token and every session's secret. The new token is in endpoint.json; `session_new` gives the new
    URL of a handle. What was asked for with an old key has half a second to be answered.
    """

    session: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=_a_handle("Whose secret, instead of the token."),
    )
    all_keys: bool = attrs.field(
        default=False,
        metadata=described("The token and the secrets of all sessions."),
    )


@attrs.frozen(kw_only=True)
class StopDaemon(Command[Stopping]):
    """Stop the daemon in order: no new work, ledgers closed, every process of it ended."""

"""The daemon itself: its status, its live tree, sessions, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from aegis.protocol.command import Command, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE


@attrs.frozen(kw_only=True)
class DaemonStatus:
    """The daemon in figures: ``uptime_s`` in seconds, ``rss_bytes`` resident memory.

    ``late_replies`` counts answers that came after their asker's time and were dropped.
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
class Stopping:
    """The daemon with this ``pid`` stops; its endpoint file disappears when it is gone."""

    pid: int


@attrs.frozen(kw_only=True)
class GetStatus(Command[DaemonStatus]):
    """Show the daemon's state: address, age, memory, how much it holds."""


@attrs.frozen(kw_only=True)
class GetTree(Command[TreeNode]):
    """Show the live supervision tree: every actor, its state, mailbox, restarts and age."""


@attrs.frozen(kw_only=True)
class NewSession(Command[Session]):
    """Make the MCP URL of a handle, or give the one it has."""

    handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(f"Whose session. A handle: {NAME_RULE}.", pattern=f"^{NAME_PATTERN}$"),
    )


@attrs.frozen(kw_only=True)
class StopDaemon(Command[Stopping]):
    """Stop the daemon in order: no new work, ledgers closed, every process of it ended."""

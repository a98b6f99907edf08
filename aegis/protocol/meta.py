"""``aegis_meta``: what a caller has to know of itself, its peers, its tools and its inbox."""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.protocol.command import Command

MAX_PEERS = 100
"""The largest number of sessions, and of other handles, in a reply."""


@attrs.frozen(kw_only=True)
class Peer:
    """An agent session that is not closed."""

    handle: str
    profile: str
    spawned_by: str


@attrs.frozen(kw_only=True)
class Meta:
    """The caller's place in the daemon.

    ``kind``: ``session`` is an agent that the daemon drives, ``client`` another agent or program
    with a handle, ``human`` the operator. Only a session has a ``session`` id, a ``profile``, a
    ``permission`` and a spawner. ``peers`` are agent sessions, ``handles`` the other handles with
    an inbox; ``more``: a limit left some out. ``tools`` are offered at the caller's MCP address,
    ``other_tools`` are not; ``how_to_get`` says how they can be. ``inbox`` says how messages
    arrive.
    """

    handle: str
    kind: Literal["session", "client", "human"]
    session: str | None = None
    profile: str | None = None
    permission: Literal["read", "plan", "ask", "write", "full"] | None = None
    spawned_by: str | None = None
    peers: list[Peer]
    handles: list[str]
    more: bool = False
    tools: list[str]
    other_tools: list[str]
    how_to_get: str
    inbox: str


@attrs.frozen(kw_only=True)
class GetMeta(Command[Meta]):
    """Show who you are, your peers, your tools and what else exists, and how your inbox works."""

"""The daemon itself: status, supervision tree, keys and sessions, and how it is stopped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import attrs

from aegis.protocol.command import Command, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.nodes import NodeStatus


@attrs.frozen(kw_only=True)
class DaemonStatus:
    """The daemon's address and figures. ``uptime_s`` is in seconds, ``rss_bytes`` resident memory.

    ``late_replies`` counts replies that were dropped because their caller's time was up. ``nodes``
    are worker processes and joined hosts. ``left_out`` are the names of the variables of its
    environment that nothing started by it gets, because they describe where it was started.
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
    left_out: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class TreeNode:
    """One actor of the supervision tree.

    ``mailbox`` is the number of queued messages, ``restarts`` the number of earlier incarnations,
    ``uptime_s`` the age of the current one in seconds.
    """

    path: str
    name: str
    kind: str
    state: str
    mailbox: int
    restarts: int
    uptime_s: float
    children: list[TreeNode]


class RuntimeNode(Protocol):
    """A node of the runtime's tree: an attrs object with the fields of a ``TreeNode``."""

    @property
    def children(self) -> Sequence[RuntimeNode]:
        """The nodes directly below."""


def tree_node(place: RuntimeNode) -> TreeNode:
    """Return the runtime's tree as the reply class."""
    shown: Any = place
    fields: dict[str, Any] = attrs.asdict(shown, recurse=False)
    fields["children"] = [tree_node(child) for child in place.children]
    return TreeNode(**fields)


@attrs.frozen(kw_only=True)
class Session:
    """A session of ``handle``. ``url`` is an MCP URL that contains its key: keep it secret.

    ``tools`` are the sets of tools that it offers.
    """

    handle: str
    url: str
    tools: list[str] = attrs.field(factory=lambda: ["work"])


@attrs.frozen(kw_only=True)
class SessionList:
    """The handles that have a session, in alphabetical order."""

    handles: list[str]


@attrs.frozen(kw_only=True)
class Voided:
    """The keys that were revoked.

    ``token``: the operator's token was. ``sessions``: the handles whose secrets were.
    ``connections`` is the number of clients that used one of these keys and were disconnected.
    """

    token: bool
    sessions: list[str]
    connections: int


@attrs.frozen(kw_only=True)
class Stopping:
    """The daemon with this ``pid`` is stopping; it removes its endpoint file at its end."""

    pid: int


@attrs.frozen(kw_only=True)
class DoctorFinding:
    """A ``sentence`` about ``subject``; ``remedy`` says what to do and may be empty."""

    subject: str
    level: Literal["ok", "warning", "problem"]
    sentence: str
    remedy: str


@attrs.frozen(kw_only=True)
class Examination:
    """The findings of an examination of ``root``, in the order of the checks.

    ``left_out`` is the number of findings that a reply has no room for, the least severe first.
    """

    root: str
    findings: list[DoctorFinding]
    left_out: int


@attrs.frozen(kw_only=True)
class Examine(Command[Examination]):
    """Check the machine, the state of the daemon's root, the shells and the agent programs.

    Nothing is changed: a repair needs that no daemon runs, so the command line alone can do it.
    It takes some seconds. A second caller meanwhile gets the findings of the same examination.
    """


@attrs.frozen(kw_only=True)
class GetStatus(Command[DaemonStatus]):
    """Show the daemon's state: address, age, memory, numbers of terminals and connections."""


@attrs.frozen(kw_only=True)
class GetTree(Command[TreeNode]):
    """Show the supervision tree: every actor with its state, mailbox, restarts and age."""


def _a_handle(whose: str) -> Any:
    return described(f"{whose} A handle: {NAME_RULE}.", whose, pattern=f"^{NAME_PATTERN}$")


MAX_TOOLS = 256
"""The largest number of sets and tools that may be chosen for one session."""

TOOL_PATTERN = "[a-z][a-z0-9_]{0,63}"


def _check_tools(_: Any, attribute: attrs.Attribute[Any], names: list[str] | None) -> None:
    if names is None:
        return
    if not 1 <= len(names) <= MAX_TOOLS:
        raise ValueError(f"{attribute.name} must hold 1 to {MAX_TOOLS} names, not {len(names)}")
    for name in names:
        if re.fullmatch(TOOL_PATTERN, name) is None:
            raise ValueError(
                f"{attribute.name} must each be the name of a tool or of a set of tools, "
                f"not {name[:80]!r}"
            )


@attrs.frozen(kw_only=True)
class NewSession(Command[Session]):
    """Create the MCP URL of a handle, or return the existing one."""

    handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=_a_handle("The handle of the session."),
    )
    tools: list[str] | None = attrs.field(
        default=None,
        validator=_check_tools,
        metadata=described(
            f"The tools that it offers: core, work, all, or names, 1 to {MAX_TOOLS}. Default: "
            "unchanged, and work for a new one.",
            minItems=1,
            maxItems=MAX_TOOLS,
            items={"type": "string", "pattern": f"^{TOOL_PATTERN}$"},
        ),
    )


@attrs.frozen(kw_only=True)
class ListSessionHandles(Command[SessionList]):
    """List the handles that have a session, without their secrets."""


@attrs.frozen(kw_only=True)
class RevokeSession(Command[Voided]):
    """Revoke a handle's MCP URL for good and disconnect the clients that use it.

    The handle keeps its inbox, and a new URL can be made for it.
    """

    handle: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=_a_handle("The handle of the session."),
    )


@attrs.frozen(kw_only=True)
class RotateToken(Command[Voided]):
    """Replace keys, and disconnect the clients that use the old ones.

    Without arguments the operator's token, with `session` a handle's secret, with `all_keys` the
    token and every session's secret. The new token is in endpoint.json; aegis_session_new returns
    the new URL of a handle. A request made with an old key before has half a second to be answered.
    """

    session: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=_a_handle("The handle whose secret is replaced, instead of the token."),
    )
    all_keys: bool = attrs.field(
        default=False,
        metadata=described("Replace the token and the secrets of all sessions."),
    )


@attrs.frozen(kw_only=True)
class StopDaemon(Command[Stopping]):
    """Stop the daemon: it takes no new work, closes its ledgers and ends all its processes."""

"""The states of agent sessions and terminal agents, as clients see them."""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.protocol.agent_events import PlanStep

STALLED_S = 120.0
"""Seconds without progress after which a working agent is stalled."""

AgentState = Literal[
    "dormant",
    "starting",
    "idle",
    "working",
    "blocked",
    "limited",
    "error",
    "closed",
    "running",
    "needs_input",
    "stale",
    "exited",
]
"""The state of an agent; the last four are those of a terminal agent.

``stale``: it has needed input for a long time. ``exited``: its program has ended.
"""

BlockedKind = Literal["permission", "question", "elicitation", "auth", "limit"]
"""The kind of a request, with ``auth`` for a login, as terminal agents report it; or ``limit``."""


@attrs.frozen(kw_only=True)
class Blocked:
    """The oldest open request of an agent; ``since`` is UTC, ISO 8601 with ``Z``.

    ``in_turn``: a turn waits for the answer. Otherwise the agent is at rest, and the answer is its
    next message.

    ``limit``: messages wait because a limit on the cost is reached. It has no request: ``title``
    says which limit, and how to continue.
    """

    kind: BlockedKind
    request_id: str
    title: str
    since: str
    in_turn: bool = True


@attrs.frozen(kw_only=True)
class AgentUsage:
    """The agent's own accounting of a session; None: the agent does not report it.

    ``turns`` are those that the agent ended, its own included. ``input_tokens`` include
    ``cached_tokens``; both and ``output_tokens`` are sums, as is ``cost_usd``, over all turns and
    processes. ``context_tokens`` is the size of the last request's prompt, ``context_limit`` the
    model's limit. ``turns_s`` are the seconds in turns, ``last_turn_s`` those of the last one.
    """

    turns: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    cached_percent: float | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    context_tokens: int | None = None
    context_limit: int | None = None
    context_percent: float | None = None
    turns_s: float = 0.0
    last_turn_s: float | None = None


@attrs.frozen(kw_only=True)
class AgentTerminal:
    """A terminal in which an agent has its session run a command, until it releases it."""

    id: str
    command: str


@attrs.frozen(kw_only=True)
class AgentNeed:
    """The input that a terminal agent waits for.

    ``ready``: its next order. ``failed``: its next order, after an error. ``text`` is its question,
    ``tool`` and ``tool_input`` name the tool that it wants to use; each may be empty.
    """

    kind: Literal["permission", "question", "auth", "input", "ready", "failed"]
    text: str
    tool: str
    tool_input: str


@attrs.frozen(kw_only=True)
class AgentProgram:
    """The program of a terminal agent: the command ``command`` on the terminal ``terminal``.

    ``source`` is the evidence for its state, such as ``report``, ``title`` or ``silence``; empty
    without a process. ``launches`` counts its processes since the daemon was started. ``exit_code``
    is that of the last one. ``progress`` is a percentage. ``title`` is what it calls its work.
    """

    terminal: str
    command: str
    source: str
    need: AgentNeed | None
    launches: int
    exit_code: int | None
    progress: int | None
    title: str


@attrs.frozen(kw_only=True)
class EditConflict:
    """A file that the agents ``handles`` have changed too, by its real path."""

    path: str
    handles: list[str]


@attrs.frozen(kw_only=True)
class AgentTakeover:
    """A person continues the conversation in the shared ``terminal``, since ``since`` (UTC)."""

    terminal: str
    since: str


@attrs.frozen(kw_only=True)
class AgentCall:
    """A tool call; ``parent`` is the id of the call whose subagent makes it, ``""``: of none.

    ``background``: it is a background task, and ``parent`` the call that began it.
    """

    id: str
    title: str
    parent: str = ""
    background: bool = False


@attrs.frozen(kw_only=True)
class AgentInfo:
    """The state of an agent session.

    ``id`` never changes, ``handle`` may be renamed; ``spawned_by`` is the handle of the spawner, or
    ``human``. ``reason`` explains an error or an end. ``since`` is the moment of the last change of
    state, ``quiet_s`` the seconds without progress while the agent works and no tool runs.
    ``waiting`` messages wait for the next turn, or are unread by a terminal agent. ``conversation``
    is the agent's own id, with which its own program can continue. ``usage`` is None if the session
    has no actor: it is closed.
    ``permission``, ``effort``, ``thinking`` and ``budget_usd`` are those that hold now, from the
    profile or ``agent set``; a closed session has none. ``terminals`` are those in which it has its
    session run commands.
    ``plan`` is what the agent has noted to do, and ``mode`` its own mode, as far as it reports
    them.
    ``conflicts`` are files that the agent and others have changed since the daemon was started.
    ``taken_over`` is set while a person has the conversation: messages wait for its end.
    ``program`` is set for a terminal agent: it takes no turns, and has no usage or conversation.
    """

    id: str
    handle: str
    profile: str
    provider: str
    state: AgentState
    since: str
    reason: str
    cwd: str
    spawned_by: str
    model: str
    turn: int
    waiting: int
    quiet_s: float
    tools: list[str]
    blocked: Blocked | None
    limited_until: str | None
    conversation: str | None
    usage: AgentUsage | None = None
    permission: str = ""
    budget_usd: float | None = None
    terminals: list[AgentTerminal] = attrs.field(factory=list)
    program: AgentProgram | None = None
    plan: list[PlanStep] = attrs.field(factory=list)
    taken_over: AgentTakeover | None = None
    mode: str = ""
    effort: str = ""
    conflicts: list[EditConflict] = attrs.field(factory=list)
    thinking: str = ""


@attrs.frozen(kw_only=True)
class AgentList:
    """Agent sessions, in the order of their handles."""

    result: list[AgentInfo]


def is_at_rest(info: AgentInfo) -> bool:
    """Return whether no turn of a session runs or is about to: it may wait for a person."""
    waits = info.blocked is not None and not info.blocked.in_turn
    return info.state in ("idle", "dormant") or (info.state == "blocked" and waits)

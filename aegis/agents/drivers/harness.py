"""The seam between a session and an agent program: a protocol machine, its orders and its outputs.

A ``Harness`` is the machine of one protocol for one process. It gets frames and orders in order and
returns its outputs in order; it does no I/O and knows no time. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import attrs

from aegis.agents.drivers.commands import ProjectCommand
from aegis.protocol.agent_events import AgentEvent, PlanStep, RequestAnswer

Frame = dict[str, Any]
"""One JSON object of the agent's protocol."""

OWN_PREFIX = "mcp__aegis__"
"""The beginning of our own tools' names in events and requests."""

Permission = Literal["read", "plan", "ask", "write", "full"]
"""The permission of a profile, from the lowest.

``plan`` asks as ``ask`` does, in the agent's mode for plans.
"""


APPROVE = "Approve the plan"
APPROVE_EDITS = "Approve the plan, and edits of files for this session"
KEEP_PLANNING = "Keep planning"
"""The names of the options of a plan."""


@attrs.frozen(kw_only=True)
class Capabilities:
    """The abilities of an agent, known once it has started.

    ``queues``: user frames that arrive during a turn are kept by the agent. ``reports_cost``: a
    budget can be held. ``can_resume``, ``can_fork``: a conversation can be continued by its id.
    ``takes_images``: a turn can have some.
    """

    can_resume: bool = False
    can_fork: bool = False
    queues: bool = False
    reports_cost: bool = False
    sets_model: bool = False
    takes_images: bool = False


@attrs.frozen(kw_only=True)
class SentImage:
    """An image of a turn, as the protocols take it."""

    media_type: str
    base64: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Beginning:
    """How a process is to begin.

    ``mcp_url`` is a secret: it travels in a frame, never in an argument. ``primer`` is added to the
    agent's system prompt, or precedes the first turn where it has none. ``conversation`` is resumed
    if given; ``fork`` makes a copy of it, and ``is_unprimed`` says that it has had no primer: it
    began in another program, or was cleared. ``cwd`` is the working directory. ``login`` is the id
    of the ``LoginMethod`` that a person has chosen. ``plan`` is the list of a conversation that is
    resumed, as the agent last reported it. ``images`` is the path of the directory for images in
    results; ``""``: none are kept. ``servers`` are MCP servers of its user by name, as
    Claude Code configures them: they can hold secrets. ``reads_project``: Claude Code reads the
    instructions of ``cwd``, which run nothing. ``project_commands`` are texts of it that a person
    can choose. ``root`` is the one of the daemon, ``handle`` that of the session.
    """

    cwd: str
    root: str = ""
    handle: str = ""
    mcp_url: str = attrs.field(repr=False)
    primer: str = ""
    conversation: str | None = None
    fork: bool = False
    is_unprimed: bool = False
    model: str | None = None
    effort: str | None = None
    thinking: str | None = None
    permission: Permission = "ask"
    call_limit_s: float | None = None
    login: str = ""
    plan: tuple[PlanStep, ...] = ()
    servers: Mapping[str, Frame] = attrs.field(factory=dict, repr=False)
    reads_project: bool = False
    images: str = ""
    project_commands: tuple[ProjectCommand, ...] = ()


# The outputs of a machine.


@attrs.frozen
class Write:
    """Write this frame to the agent."""

    frame: Frame = attrs.field(repr=False)


@attrs.frozen
class Emit:
    """Pass this event to the session."""

    event: AgentEvent


@attrs.frozen(kw_only=True)
class AgentReady:
    """The agent can take its first turn, in ``conversation``.

    ``""``: the agent names its conversation later, in a ``SystemInit``.
    """

    conversation: str
    capabilities: Capabilities


@attrs.frozen(kw_only=True)
class LoginMethod:
    """One way to log in to an agent.

    ``arguments``: those of the agent's own program, which a person then runs in a terminal; None if
    the login needs no terminal.
    """

    id: str
    name: str
    arguments: tuple[str, ...] | None = None


@attrs.frozen(kw_only=True)
class AgentFailed:
    """The agent cannot be used: ``reason`` is one sentence with the remedy.

    ``kind`` "conversation": the conversation cannot be resumed, so a new process may begin a fresh
    one. "login": a person has to log in, by one of ``logins``. "other": anything else.
    """

    reason: str
    kind: Literal["conversation", "login", "other"] = "other"
    logins: tuple[LoginMethod, ...] = ()


@attrs.frozen(kw_only=True)
class Serve:
    """The agent asks its client to do something: answer with ``Harness.served``.

    ``method`` is one of ACP's client methods (``fs/read_text_file``, ``terminal/create``, …).
    """

    id: str
    method: str
    params: Mapping[str, Any]


@attrs.frozen
class StopServing:
    """The agent no longer waits for the ``Serve`` with this id, which gets no answer."""

    id: str


@attrs.frozen
class OrderRefused:
    """The order cannot be carried out; ``reason`` is one sentence."""

    reason: str


Setting = Literal["model", "permission"]
"""A setting that can be changed while the agent runs."""


@attrs.frozen
class SettingChanged:
    """The agent answered the change of a setting; ``refusal`` is one sentence, or None.

    Each change returns one, or ``OrderRefused``. It can come much later, or never if the process
    ends.
    """

    setting: Setting
    refusal: str | None = None


@attrs.frozen(kw_only=True)
class FilesRewound:
    """The agent answered ``RewindsFiles.rewind``.

    ``refusal`` is one sentence, or None. ``files`` are the paths that a dry run has named.
    """

    refusal: str | None = None
    files: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class KeepImage:
    """Keep an image of a result in a file, before an event shows its path."""

    path: str
    data: bytes = attrs.field(repr=False)


Output = (
    KeepImage
    | Write
    | Emit
    | AgentReady
    | AgentFailed
    | Serve
    | StopServing
    | OrderRefused
    | SettingChanged
    | FilesRewound
)
"""One output of a machine; outputs are carried out in order."""


class Harness(Protocol):
    """The machine of one protocol for one process. It never raises because of a frame."""

    def begin(self) -> list[Output]:
        """Return the first frames; ``AgentReady`` or ``AgentFailed`` follows from ``receive``."""
        ...

    def receive(self, frame: Frame) -> list[Output]:
        """Take one frame of the agent."""
        ...

    def receive_cut(self, frame: Frame, size: int) -> list[Output]:
        """Take what is left of a frame of ``size`` bytes, which was larger than the limit.

        Its long texts are cut, so that it is reported, but a request in it is refused.
        """
        ...

    def send(
        self, uuid: str, text: str, command: str = "", images: Sequence[SentImage] = ()
    ) -> list[Output]:
        """Send a turn's text as one user frame. ``Result.messages`` will name ``uuid``.

        It reaches the agent as text, also if it begins like a command of the agent. ``command`` is
        sent in its place if the agent has announced such a command; ``CommandSent`` says what was.
        The ``images`` follow the text. Returns ``OrderRefused`` if the agent takes none.
        """
        ...

    def interrupt(self) -> list[Output]:
        """Interrupt the current turn; without one it does nothing."""
        ...

    def answer(self, request: str, answer: RequestAnswer) -> list[Output]:
        """Answer an open request. Returns ``OrderRefused`` if it was withdrawn or does not fit."""
        ...

    def served(
        self, serve: str, result: Mapping[str, Any] | None, error: str, code: str = ""
    ) -> list[Output]:
        """Answer a ``Serve``: with ``result``, or with ``error`` if that is None.

        ``code`` is the one of an ``AegisError``.
        """
        ...

    def set_permission(self, permission: Permission) -> list[Output]:
        """Set the permission from now on. ``SettingChanged`` follows, or ``OrderRefused``."""
        ...

    def set_model(self, model: str) -> list[Output]:
        """Set the model from the next turn on. ``SettingChanged`` follows, or ``OrderRefused``."""
        ...

    def ended(self) -> list[Output]:
        """Note the end of the process: open requests are withdrawn."""
        ...


@runtime_checkable
class RewindsFiles(Protocol):
    """A ``Harness`` of agents that can set files back to what they were before a turn."""

    def rewind(self, uuid: str, *, is_dry: bool) -> list[Output]:
        """Set back the files that the agent changed since the turn ``uuid``, all or none.

        ``is_dry``: only ask which. ``FilesRewound`` follows once it has answered.
        """
        ...


@runtime_checkable
class ChecksSettings(Protocol):
    """A ``Harness`` of agents that list what they offer."""

    def refuse_effort(self, effort: str, model: str | None = None) -> str | None:
        """Return why the agent cannot use an effort, in one sentence; None if it may.

        ``model`` is the one that it is to be used with, if another than now.
        """
        ...

    def refuse_thinking(self, thinking: str, model: str | None = None) -> str | None:
        """Return why the agent cannot think so, in one sentence; None if it may."""
        ...


@runtime_checkable
class AwaitsReplay(Protocol):
    """A ``Harness`` of agents that repeat a conversation after they have loaded it."""

    def replay_looked_at(self) -> list[Output] | None:
        """Return the outputs if the agent repeats nothing any more; None if it may still.

        Called each ``REPLAY_S`` seconds from ``AgentReady`` on.
        """
        ...


REPLAY_S = 0.25
"""Seconds without an update after which a repetition is over."""


@runtime_checkable
class AwaitsMcp(Protocol):
    """A ``Harness`` of agents that may connect to our MCP server later than they are ready."""

    def mcp_connected(self) -> list[Output]:
        """Note that the agent has listed the tools of our MCP server."""
        ...

    def mcp_is_late(self) -> list[Output]:
        """Note that the agent had time enough to connect: turns wait no longer for that."""
        ...

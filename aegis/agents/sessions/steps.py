"""The outputs of a session's machine (``rules``), its phases, and messages of its parts.

``now`` and all moments are seconds since 1970 (UTC). Pure.
"""

from __future__ import annotations

import enum
from typing import Any, Literal

import attrs

from aegis.agents.messages import (
    InterruptTurn,
    SendTurn,
)
from aegis.agents.sessions.past import OpenTurn, Rewind
from aegis.protocol.agent_events import AgentEvent, PlanStep, RequestAnswer, RequestOpened

Outcome = Literal["completed", "failed", "cancelled", "limited", "interrupted"]
"""The outcome of a turn.

``cancelled``: by an interrupt, a close or a restart. ``interrupted``: the agent's process or the
daemon ended in the turn, and the agent may have done a part of it.
"""

TimerName = Literal["start", "store", "limit", "look", "runtime", "kill", "answer"]
"""The timers of a session: start a process, write again, end of a usage limit, look again whether a
turn may open, end of a turn's time, end of the process of an agent that ignores its interrupt, end
of the wait for an answer."""


class SessionPhase(enum.Enum):
    """The state of the agent's process; ``TAKEN_OVER``: a person has the conversation."""

    DORMANT = "dormant"
    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    STOPPING = "stopping"
    TAKEN_OVER = "taken_over"
    ERROR = "error"
    CLOSED = "closed"


@attrs.frozen(kw_only=True)
class Incoming:
    """A message of the inbox; ``text`` is its rendered form.

    ``is_alone``: it is a turn of its own (a broadcast, a task, a workflow's order, a command, a
    message with images). ``command`` is what a person has written, if it is a command of the
    agent's own. ``images`` are the names of the files of its images. ``is_person``: a person has
    sent it, not a program.
    """

    id: str
    sender: str
    text: str
    is_alone: bool = False
    command: str = ""
    images: tuple[str, ...] = ()
    is_person: bool = False


# Messages that the parts of a session send it.


@attrs.frozen(kw_only=True)
class TurnRefused:
    """The driver did not send the turn of this uuid; ``reason`` is one sentence."""

    uuid: str
    reason: str


@attrs.frozen
class Notified:
    """The notification with this id is durable in its inbox."""

    id: str


@attrs.frozen(kw_only=True)
class HandedBack:
    """The take-over has ended, and no process of it is left.

    The conversation continues under the id ``conversation``. ``said`` are the events in it, each
    with the id that it has in the agent's own file. ``reason`` says why it could not be begun.
    """

    conversation: str
    said: tuple[tuple[str, AgentEvent], ...] = ()
    reason: str = ""


@attrs.frozen
class RewindEntry:
    """Write an entry of a rewind; ``RewindStored`` follows once it is durable."""

    kind: Literal["rewinding", "rewound"]
    fields: dict[str, Any]


@attrs.frozen
class RewindOver:
    """The rewind has ended, or changes nothing."""


# Outputs.


@attrs.frozen(kw_only=True)
class Append:
    """Write ``entry`` to the transcript; with ``sync``, report ``Stored`` or ``NotStored``."""

    number: int
    entry: dict[str, Any]
    sync: bool = False


@attrs.frozen(kw_only=True)
class StartDriver:
    """Start the agent, in ``conversation`` if given, else in a new one primed with ``texts``.

    ``login`` is the id of the login method that a person has chosen. ``spent_usd`` is the cost of
    the session so far, in a new conversation: the agent counts that of an old one itself.
    ``plan`` is the list that the agent keeps in the ``conversation``. ``is_cleared``: it has had no
    primer since it was cleared, or another one begun in its place.
    """

    conversation: str | None
    texts: tuple[str, ...] = ()
    login: str = ""
    spent_usd: float = 0.0
    plan: tuple[PlanStep, ...] = ()
    is_cleared: bool = False


@attrs.frozen
class StopDriver:
    """End the agent's process and its tree; ``DriverEnded`` follows."""


@attrs.frozen
class OpenTakeover:
    """Open the agent's own program on the conversation for a person; ``HandedBack`` follows.

    Not ``is_new``: it was opened before the session's actor began, and may have ended.
    """

    is_new: bool


@attrs.frozen
class EndTakeover:
    """End the program of a take-over."""


@attrs.frozen
class RewindStored:
    """The entry of ``RewindEntry`` would survive a power loss."""


@attrs.frozen
class UndoRewind:
    """Undo the rewind that the end of the daemon has cut; ``RewindOver`` follows."""

    rewind: Rewind


@attrs.frozen(kw_only=True)
class AnswerAgent:
    """Answer a request of the agent. ``is_ours``: by the profile's policy, not by a person.

    ``reason`` is the message of a refusal that the agent's protocol cannot carry: it becomes the
    next message of the session. ``approves_plan``: the agent leaves its mode for plans.
    """

    request: str
    answer: RequestAnswer
    is_ours: bool = False
    reason: str = ""
    approves_plan: bool = False


@attrs.frozen(kw_only=True)
class OpenAtDesk:
    """Show this request to people."""

    event: RequestOpened
    turn: int | None


@attrs.frozen(kw_only=True)
class WithdrawAtDesk:
    """These requests can no longer be answered."""

    requests: tuple[str, ...]
    reason: str


@attrs.frozen(kw_only=True)
class LogIn:
    """Run the login command in a shared terminal, if any; then ``ResumeOrder`` by ``method``."""

    command: str
    terminal: str
    method: str = ""


@attrs.frozen
class Acknowledge:
    """Mark the inbox as read up to this message."""

    message: str


@attrs.frozen(kw_only=True)
class Notify:
    """Send a message of the substrate to a handle, and report ``Notified``.

    Its id is stable, so it arrives once. ``done`` is the turn that it reports as done; None: it
    reports a loss or a limit.
    """

    id: str
    handle: str
    body: str
    done: OpenTurn | None = None


@attrs.frozen(kw_only=True)
class SetTimer:
    """Start a timer, in place of one with the same name; report ``TimerFired``."""

    timer: TimerName
    after_s: float


@attrs.frozen
class Finished:
    """The session is closed: its actor ends."""


Output = (
    Append
    | StartDriver
    | StopDriver
    | OpenTakeover
    | EndTakeover
    | RewindStored
    | UndoRewind
    | SendTurn
    | InterruptTurn
    | AnswerAgent
    | OpenAtDesk
    | WithdrawAtDesk
    | LogIn
    | Acknowledge
    | Notify
    | SetTimer
    | Finished
)


class Entries:
    """Numbers entries; keeps each that must be durable until the disk has taken it."""

    def __init__(self) -> None:
        self._number = 0
        self._unstored: dict[int, tuple[str, dict[str, Any]]] = {}
        self._refused: list[tuple[str, dict[str, Any]]] = []

    @property
    def are_stored(self) -> bool:
        """Whether every entry that must be durable is."""
        return not self._unstored and not self._refused

    def append(self, kind: str, at: float, fields: dict[str, Any], *, sync: bool) -> Append:
        """Return the output that writes an entry at the moment ``at``."""
        self._number += 1
        if sync:
            self._unstored[self._number] = kind, fields
        entry = {"kind": kind, "at": round(at, 3), **fields}
        return Append(number=self._number, entry=entry, sync=sync)

    def stored(self, number: int) -> str:
        """Return the kind of the entry that is durable now; empty if it was written again."""
        return self._unstored.pop(number, ("", {}))[0]

    def refused(self, number: int) -> None:
        """Note that the disk refused an entry."""
        entry = self._unstored.pop(number, None)
        if entry is not None:
            self._refused.append(entry)

    def again(self, at: float) -> list[Append]:
        """Return the outputs that write the refused entries again, in order."""
        refused, self._refused = self._refused, []
        return [self.append(kind, at, fields, sync=True) for kind, fields in refused]

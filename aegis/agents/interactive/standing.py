"""``AgentStanding``: the state of a terminal agent, from its launches, verdicts and ends. Pure.

    exited → starting → running ⇄ needs_input → stale          any → exited, closed

``handle(event, now)`` returns the actions to carry out; ``now`` and every moment are seconds since
1970. Rules:

- A verdict counts only if it is about the command of the current launch; a verdict that comes
  before the launch is confirmed is kept until then.
- People are woken once for each need: when it begins, and when another question follows. A program
  decides what it asks, so wakes are limited: ``BURST`` at once, and one more each ``REFILL_S``.
"""

from __future__ import annotations

import attrs

from aegis.lifecycle.states import Evidence, Need, State, Verdict
from aegis.protocol.agents import AgentState
from aegis.protocol.terminals import End

BURST = 10
REFILL_S = 15.0

_ENDS: dict[End | None, str] = {
    "killed_by_restart": "its terminal was restarted",
    "closed": "its terminal was closed",
    "shell_exit": "the shell of its terminal has ended",
    "lost": "its end was not seen",
}


# Events.


@attrs.frozen
class Launching:
    """A process is about to be started."""


@attrs.frozen(kw_only=True)
class Launched:
    """The command ``seq`` of the terminal is the process; its output begins at ``raw_start``."""

    seq: int
    raw_start: int


@attrs.frozen
class NotLaunched:
    """The process could not be started; ``reason`` is one sentence."""

    reason: str


@attrs.frozen(kw_only=True)
class VerdictReported:
    """The verdict about the command at ``raw_start``, which holds since the moment ``since``."""

    raw_start: int
    verdict: Verdict
    since: float


@attrs.frozen(kw_only=True)
class LaunchEnded:
    """The command ``seq`` has ended, as its record says."""

    seq: int
    exit_code: int | None
    end: End | None


@attrs.frozen(kw_only=True)
class Remembered:
    """The last process before the daemon's start ended so, at the moment ``at``."""

    exit_code: int | None
    end: End | None
    at: float


@attrs.frozen
class AgentStopping:
    """The process is being ended."""


@attrs.frozen
class AgentClosed:
    """The agent is closed; no launch follows."""


Event = (
    Launching
    | Launched
    | NotLaunched
    | VerdictReported
    | LaunchEnded
    | Remembered
    | AgentStopping
    | AgentClosed
)


# Actions.


@attrs.frozen
class ReportState:
    """The state has changed."""


@attrs.frozen(kw_only=True)
class WakePeople:
    """Send this message to the subscribers; ``key`` is unique for the need."""

    key: str
    body: str


Action = ReportState | WakePeople


@attrs.define(kw_only=True)
class AgentStanding:
    """The state of the agent in ``terminal``; ``life`` names this incarnation of its actor.

    ``state`` holds since the moment ``since``. ``seq`` and ``raw_start`` are those of the current
    process; None without one. ``launches`` counts the processes.
    """

    terminal: str
    life: str
    since: float
    state: AgentState = "exited"
    reason: str = ""
    seq: int | None = None
    raw_start: int | None = None
    launches: int = 0
    verdict: Verdict | None = None
    exit_code: int | None = None
    _early: VerdictReported | None = None
    _woken_for: float | None = None
    _wakes: int = 0
    _wakes_left: float = float(BURST)
    _counted_at: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether there is a process."""
        return self.seq is not None

    @property
    def need(self) -> Need | None:
        """The input that the agent waits for."""
        return None if self.verdict is None else self.verdict.need

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take ``event``; return the actions."""
        before = self._shown()
        actions = self._take(event, now)
        return [ReportState(), *actions] if self._shown() != before else actions

    def _shown(self) -> tuple[object, ...]:
        return (
            *(self.state, self.since, self.reason, self.seq, self.verdict, self.launches),
            self.exit_code,
        )

    def _take(self, event: Event, now: float) -> list[Action]:
        match event:
            case Launching():
                self._become("starting", now)
                self.launches += 1
                self._early = self.exit_code = None
            case Launched(seq=seq, raw_start=raw_start):
                self.seq, self.raw_start = seq, raw_start
                early, self._early = self._early, None
                if early is not None and early.raw_start == raw_start:
                    return self._judge(early, now)
            case NotLaunched(reason=reason):
                self._become("exited", now, reason)
            case VerdictReported():
                return self._judge(event, now)
            case LaunchEnded(seq=seq) if seq == self.seq:
                self._end(event, now)
            case Remembered() if self.launches == 0 and self.state == "exited":
                self._become("exited", event.at, _ENDS.get(event.end, ""))
                self.exit_code = event.exit_code
            case AgentStopping() if self.runs:
                self.reason = "it is being stopped"
            case AgentClosed():
                self._become("closed", now)
                self.seq = self.raw_start = None
        return []

    def _become(self, state: AgentState, now: float, reason: str = "") -> None:
        self.state, self.since, self.reason, self.verdict = state, now, reason, None
        self._woken_for = None

    def _end(self, event: LaunchEnded, now: float) -> None:
        self._become("exited", now, _ENDS.get(event.end, ""))
        self.exit_code, self.seq, self.raw_start = event.exit_code, None, None

    def _judge(self, event: VerdictReported, now: float) -> list[Action]:
        if event.raw_start != self.raw_start:
            if self.state == "starting":
                self._early = event
            return []
        if event.verdict.state is State.EXITED:
            return []  # its record follows, with the reason
        self.verdict, self.state = event.verdict, _STATES[event.verdict.state]
        self.since = event.since
        return self._wake(event.verdict, now)

    def _wake(self, verdict: Verdict, now: float) -> list[Action]:
        need = verdict.need
        if need is None:
            self._woken_for = None
            return []
        # The moment keeps while the text of a need becomes fuller, or its source stronger.
        if verdict.state is State.STALE or verdict.since == self._woken_for:
            return []
        self._woken_for = verdict.since
        if not self._may_wake(now):
            return []
        self._wakes += 1
        key = f"{self.life}/{self.launches}/{self._wakes}"
        return [WakePeople(key=key, body=wake_body(need, verdict.source, self.terminal))]

    def _may_wake(self, now: float) -> bool:
        earned = max(0.0, now - self._counted_at) / REFILL_S
        self._wakes_left = min(float(BURST), self._wakes_left + earned)
        self._counted_at = now
        if self._wakes_left < 1:
            return False
        self._wakes_left -= 1
        return True


_STATES: dict[State, AgentState] = {
    State.STARTING: "starting",
    State.RUNNING: "running",
    State.NEEDS_INPUT: "needs_input",
    State.STALE: "stale",
}


_LEADS = {
    "permission": "asks for a permission",
    "question": "asks a question",
    "auth": "asks for a secret",
    "input": "waits for input",
    "ready": "is ready for its next order",
    "failed": "ended its work with an error",
}


def need_text(need: Need, source: Evidence) -> str:
    """Return the need as one line: what the agent does, and its own text."""
    if source is Evidence.SILENCE:
        return "is silent, and may wait for input"
    lead = _LEADS[need.kind]
    return f"{lead}: {need.text}" if need.text else lead


def wake_body(need: Need, source: Evidence, terminal: str) -> str:
    """Return the body of the message: the need, the tool's input, and the remedy."""
    lines = [need_text(need, source)]
    if need.tool_input:
        lines += ["──", f"{need.tool} {need.tool_input}".strip()]
    return "\n".join([*lines, "──", f"answer with: aegis-actors term attach {terminal}"])

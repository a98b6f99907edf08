"""``AgentStanding``: the state of a terminal agent, from its launches, verdicts and ends. Pure.

    exited → starting → running ⇄ needs_input → stale          any → exited, closed

``now`` and every moment are seconds since 1970. Rules:

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


Wake = tuple[str, str]
"""A message to send to the subscribers: its key, which is unique for the need, and its body."""


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
    _early: tuple[int, Verdict, float] | None = None
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

    @property
    def shown(self) -> tuple[object, ...]:
        """All of the state that is shown to clients."""
        return (
            *(self.state, self.since, self.reason, self.seq, self.verdict, self.launches),
            self.exit_code,
        )

    def launching(self, now: float) -> None:
        """Note that a process is about to be started."""
        self._become("starting", now)
        self.launches += 1
        self._early = self.exit_code = None

    def launched(self, now: float, *, seq: int, raw_start: int) -> Wake | None:
        """Note the process: the command ``seq``, whose output begins at ``raw_start``."""
        self.seq, self.raw_start = seq, raw_start
        early, self._early = self._early, None
        return None if early is None or early[0] != raw_start else self.judged(now, *early)

    def not_launched(self, now: float, reason: str) -> None:
        """Note that the process could not be started, for a ``reason`` in one sentence."""
        self._become("exited", now, reason)

    def ended(self, now: float, *, seq: int, exit_code: int | None, end: End | None) -> None:
        """Note the end of the command ``seq``, as its record says."""
        if seq == self.seq:
            self._become("exited", now, _ENDS.get(end, ""))
            self.exit_code, self.seq, self.raw_start = exit_code, None, None

    def remembered(self, at: float, *, exit_code: int | None, end: End | None) -> None:
        """Note the end, at the moment ``at``, of the last process before the daemon's start."""
        if self.launches == 0 and self.state == "exited":
            self._become("exited", at, _ENDS.get(end, ""))
            self.exit_code = exit_code

    def stopping(self) -> None:
        """Note that the process is being ended."""
        if self.runs:
            self.reason = "it is being stopped"

    def closed(self, now: float) -> None:
        """Note that the agent is closed; no launch follows."""
        self._become("closed", now)
        self.seq = self.raw_start = None

    def _become(self, state: AgentState, now: float, reason: str = "") -> None:
        self.state, self.since, self.reason, self.verdict = state, now, reason, None
        self._woken_for = None

    def judged(self, now: float, raw_start: int, verdict: Verdict, since: float) -> Wake | None:
        """Take the ``verdict``, since that moment, about the command at ``raw_start``."""
        if raw_start != self.raw_start:
            if self.state == "starting":
                self._early = raw_start, verdict, since
            return None
        if verdict.state is State.EXITED:
            return None  # its record follows, with the reason
        self.verdict, self.state, self.since = verdict, _STATES[verdict.state], since
        return self._wake(verdict, now)

    def _wake(self, verdict: Verdict, now: float) -> Wake | None:
        need = verdict.need
        if need is None:
            self._woken_for = None
            return None
        # The moment keeps while the text of a need becomes fuller, or its source stronger.
        if verdict.state is State.STALE or verdict.since == self._woken_for:
            return None
        self._woken_for = verdict.since
        if not self._may_wake(now):
            return None
        self._wakes += 1
        key = f"{self.life}/{self.launches}/{self._wakes}"
        return key, wake_body(need, verdict.source, self.terminal)

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

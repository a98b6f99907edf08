"""``WorkerWatch``: what the transcript of a worker says of its task. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from aegis.protocol.agents import AgentInfo, TranscriptEntry

HOLD_S = 600.0
"""Seconds after its last turn for which a worker may wait for what it has begun."""

LIMIT_S = 300.0
"""Seconds until a worker continues after a usage limit without an end."""


@attrs.frozen
class IsIdle:
    """It has not begun, and will not without a person."""

    reason: str


@attrs.frozen
class IsDone:
    """It has done the task."""

    text: str


@attrs.frozen
class IsLost:
    """It will not do the task."""

    reason: str
    text: str


@attrs.frozen
class IsLimited:
    """It has reached a usage limit; ``until`` is UTC, ISO 8601, None if the end is unknown."""

    turn: int
    until: str | None


@attrs.frozen
class Waits:
    """It continues; ``is_held``: its turn has completed, and it waits for what it has begun."""

    is_held: bool = False


Verdict = IsIdle | IsDone | IsLost | IsLimited | Waits


@attrs.define
class WorkerWatch:
    """The transcript so far: whether a turn ``began``, and the end of the last one.

    ``turn`` is the number of the last turn, ``end`` the fields of its end, None while it runs.
    """

    turn: int = 0
    end: dict[str, Any] | None = None

    @property
    def began(self) -> bool:
        """Whether a turn has been opened."""
        return self.turn > 0

    @property
    def text(self) -> str:
        """The last message of the last turn that has ended."""
        return "" if self.end is None else str(self.end.get("text") or "")

    def take(self, entries: Sequence[TranscriptEntry]) -> bool:
        """Take the next entries; return whether the first turn was opened in them."""
        had_begun = self.began
        for entry in entries:
            if entry.kind == "turn_opened":
                self.turn, self.end = int(entry.fields.get("turn", self.turn + 1)), None
            elif entry.kind == "turn_ended":
                self.end = entry.fields
        return self.began and not had_begun

    def verdict(self, info: AgentInfo, *, is_busy: bool) -> Verdict:
        """Return the verdict on a session in the state ``info``, which is newer than the entries.

        ``is_busy``: a command runs on a terminal that it has subscribed to.
        """
        is_over = info.state in ("closed", "error")
        if not self.began:
            return IsIdle(_reason(info)) if is_over else Waits()
        if self.end is None or info.turn > self.turn:
            return IsLost(_reason(info), "") if is_over else Waits()
        outcome, text = str(self.end.get("outcome")), self.text
        if outcome == "limited" and not is_over:
            return IsLimited(self.turn, info.limited_until)
        if info.blocked is not None and info.blocked.kind == "limit":
            return IsLost(info.blocked.title, text)
        if info.waiting and not is_over:
            return Waits()
        if outcome != "completed":
            why = str(self.end.get("reason") or "no reason is known")
            return IsLost(f"its turn {_ENDED.get(outcome, outcome)}: {why}", text)
        if not is_over and (is_busy or info.blocked is not None or info.tools or info.terminals):
            return Waits(is_held=True)
        return IsDone(text)


_ENDED = {
    "failed": "failed",
    "interrupted": "was interrupted",
    "cancelled": "was cancelled",
    "limited": "was refused by a usage limit",
}


def _reason(info: AgentInfo) -> str:
    return info.reason or f"its session {info.handle!r} is {info.state}"

"""``TurnWatch``: the outcome of the turn that one message began, from a transcript. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from aegis.protocol.agents import AgentInfo, TranscriptEntry, is_at_rest
from aegis.protocol.inboxes import Place

TurnEnd = Literal["completed", "failed", "interrupted", "cancelled", "limited", "lost"]
"""The end of a turn.

``cancelled``: by an interrupt, a close or a restart. ``interrupted``: the agent's process or the
daemon ended in the turn. ``lost``: no turn answers the message, or its transcript does not say.
"""

FAILED: tuple[TurnEnd, str] = ("failed", "its turn failed")

ENDS: Mapping[str, tuple[TurnEnd, str]] = {
    "completed": ("completed", ""),
    "failed": FAILED,
    "interrupted": ("interrupted", "its turn was interrupted"),
    "cancelled": ("cancelled", "its turn was cancelled"),
    "limited": ("limited", "its turn was refused by a usage limit"),
}
"""The ends of turns by the outcomes in transcripts, with the beginnings of their reasons."""

FORGOTTEN = "its transcript was rotated, and does not have the end of the turn any more"


@attrs.frozen(kw_only=True)
class TurnOutcome:
    """The outcome of one message to a session.

    ``text`` is the whole last message of the agent in that turn; of a turn that was not completed,
    what it said last. ``reason`` says why it was not completed. ``turn`` is the turn's number; None
    if none was opened. ``seq`` is that of the entry of its end; 0 if there is none. ``is_cut``: the
    message was longer than a transcript keeps.
    """

    end: TurnEnd
    text: str = attrs.field(default="", repr=False)
    reason: str = ""
    turn: int | None = None
    seq: int = 0
    is_cut: bool = False


@attrs.define
class TurnWatch:
    """The turn that the message with the id ``message`` began, as far as the transcript says.

    ``turn`` is its number, None before it is opened; ``ended`` is the entry of its end. ``last`` is
    the number of the newest turn. ``has_gap``: entries were missed that may be about the turn.
    """

    message: str
    turn: int | None = None
    ended: TranscriptEntry | None = None
    last: int = 0
    has_gap: bool = False

    def take(self, entries: Sequence[TranscriptEntry], *, missed: int = 0) -> None:
        """Take the next entries; ``missed`` before them are no longer kept."""
        self.has_gap |= missed > 0 and self.ended is None
        for entry in entries:
            number = entry.fields.get("turn")
            if entry.kind == "turn_opened" and isinstance(number, int):
                self.last = number
                if self.turn is None and self.message in _message_ids(entry.fields):
                    self.turn, self.has_gap = number, False
            elif entry.kind == "turn_ended" and number is not None and number == self.turn:
                self.ended = self.ended or entry

    def outcome(self, *, is_over: bool) -> TurnOutcome | None:
        """Return the outcome; None before there is one.

        ``is_over``: the session is closed, and all of its entries were taken.
        """
        if self.ended is not None:
            return self._outcome(self.ended)
        if self.turn is not None and self.last > self.turn:
            return self._lost(FORGOTTEN)  # a turn ends before the next one opens
        if is_over:
            unopened = "its session was closed before it read the message"
            return self._lost(unopened if self.turn is None and not self.has_gap else FORGOTTEN)
        return None

    def without_turn(self, info: AgentInfo, place: Place | None) -> TurnOutcome | None:
        """Return the outcome if no entry will have it; None if one may.

        All entries were taken that there were when the session reported its state ``info``, which
        it did after it had reported the ``place`` of the message; None: that is unknown.
        """
        if self.has_gap and (self.turn is not None or (place is not None and place.is_landed)):
            is_working = info.turn == self.turn and info.state in ("working", "blocked")
            is_working &= not is_at_rest(info)
            return None if is_working else self._lost(FORGOTTEN)
        # A session in this state opens no turn before a person, or another message, starts it.
        waits = self.turn is None and place is not None and not place.is_landed
        if waits and info.state == "error":
            return self._lost(info.reason or f"its session {info.handle!r} cannot be used")
        return None

    def _outcome(self, ended: TranscriptEntry) -> TurnOutcome:
        fields = ended.fields
        end, why = ENDS.get(str(fields.get("outcome")), FAILED)
        reason, text = str(fields.get("reason") or ""), fields.get("text")
        return TurnOutcome(
            end=end,
            text=text if isinstance(text, str) else "",
            reason=f"{why}: {reason}" if why and reason else why,
            turn=self.turn,
            seq=ended.seq,
            is_cut="truncated" in fields,
        )

    def _lost(self, reason: str) -> TurnOutcome:
        return TurnOutcome(end="lost", reason=reason, turn=self.turn)


def _message_ids(fields: Mapping[str, Any]) -> list[object]:
    """Return the ids of the messages of a turn."""
    messages = fields.get("messages")
    named = messages if isinstance(messages, list) else []
    return [each.get("id") for each in named if isinstance(each, Mapping)]


def takes_no_turns(info: AgentInfo) -> str:
    """Return why a terminal agent does not answer a message."""
    return f"{info.handle!r} is a terminal agent and takes no turns: type into its terminal"

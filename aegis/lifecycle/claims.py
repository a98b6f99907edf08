"""Claims: the last statement of each source, how long it is in force, and which one decides. Pure.

A claim says that the program works, or what it needs. The strongest claim in force decides.

| source, the strongest first | a claim that it works | a claim that it needs input |
|---|---|---|
| report | until it is replaced or cleared | the same |
| hook | while bytes flow; an interrupt ends it | until the next hook; an answer ends it |
| title | while bytes flow | until the next title |
| notification | | until the text changes, progress is reported, or an answer |
| progress | while bytes flow, until it is removed | |
| tty | until output or the next check | until output, the next check, or an answer |

- "While bytes flow": an agent at work paints all the time, so a claim without bytes for the idle
  time is outdated: its program was killed, or an event is missing. Reports are exempt: their
  protocol requires no heartbeat.
- An answer (keys) suspends a report or title that needs input, since it is true until the program
  changes it: with the idle time over and nothing else known, it is in force again. A change of the
  screen's text after the answer ends it: the program has gone on without a new report. Claims of
  other sources are events of the past, which an answer ends at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from aegis.lifecycle.keys import KeyInput
from aegis.lifecycle.states import Evidence, Need

BY_STRENGTH = (
    Evidence.REPORT,
    Evidence.HOOK,
    Evidence.TITLE,
    Evidence.NOTICE,
    Evidence.PROGRESS,
    Evidence.TTY,
)

SETTLE_S = 1.0
"""Seconds for which output counts as echo after a key, as repaint after a resize, and as part of
the prompt after a notification; less if the idle time is short."""

_LASTING = frozenset({Evidence.REPORT, Evidence.TITLE})
"""Sources whose claim is true until the program changes it."""

_LAPSING = frozenset({Evidence.HOOK, Evidence.TITLE, Evidence.PROGRESS})
"""Sources whose claim of work is in force only while bytes flow."""

_VAGUE = frozenset({Evidence.TITLE, Evidence.NOTICE, Evidence.TTY})
"""Sources that do not say for sure what kind of input is needed."""


@attrs.frozen(kw_only=True)
class Statement:
    """A statement of ``source`` at the moment ``at``; without ``need`` the program works.

    ``answered_at`` is the moment of the last key that may have answered it.
    """

    source: Evidence
    at: float
    need: Need | None
    answered_at: float | None = None


class Claims:
    """The last claim of each source; ``idle_s`` is the idle time.

    ``painted_at`` is the moment of the last bytes of output that were no echo and no repaint.
    """

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self.settle_s = min(SETTLE_S, idle_s / 2)
        self._claims: dict[Evidence, Statement] = {}
        self.painted_at = 0.0

    def clear(self, now: float) -> None:
        """Drop all claims: another program is started."""
        self._claims.clear()
        self.painted_at = now

    def put(self, source: Evidence, need: Need | None, now: float) -> None:
        """Replace the claim of ``source``."""
        old = self._claims.get(source)
        answered_at = None if old is None or old.need != need else old.answered_at
        # The same need again, just after the answer, was sent before the program read the key.
        if answered_at is None or now >= answered_at + self.settle_s:
            self._claims[source] = Statement(source=source, at=now, need=need)

    def drop(self, *sources: Evidence) -> None:
        """Drop the claims of these sources."""
        for source in sources:
            self._claims.pop(source, None)

    def of(self, source: Evidence) -> Statement | None:
        """Return the claim of ``source``, in force or not."""
        return self._claims.get(source)

    def answer(self, keys: KeyInput, now: float) -> bool:
        """End or suspend the needs that ``keys`` answer; return whether the prompt is answered."""
        hook = self._claims.get(Evidence.HOOK)
        if keys.interrupts and hook is not None and hook.need is None:
            self.drop(Evidence.HOOK)
        decided = self.deciding(now)
        prompt = None if decided is None or decided.need is None else decided
        for claim in list(self._claims.values()):
            # A weaker need is about the same prompt as the one that decides.
            if claim.need is not None and _answers(keys, prompt or claim):
                self._end_need(claim, claim.need, keys, now)
        return keys.is_answer if prompt is None else _answers(keys, prompt)

    def _end_need(self, claim: Statement, need: Need, keys: KeyInput, now: float) -> None:
        if claim.source not in _LASTING:
            self.drop(claim.source)
        elif not (keys.interrupts and need.takes_line):
            # Escape is no order to a program that takes one: such a claim holds.
            self._claims[claim.source] = attrs.evolve(claim, answered_at=now)

    def text_changed(self, now: float, *, is_certain: bool) -> None:
        """End the claims that new text refutes. ``is_certain``: it is more than a blink."""
        self.drop(Evidence.TTY)
        for claim in list(self._claims.values()):
            is_past = claim.source is Evidence.NOTICE and now >= claim.at + self.settle_s
            if is_certain and (is_past or claim.answered_at is not None):
                self.drop(claim.source)

    def deciding(self, now: float) -> Statement | None:
        """Return the strongest claim in force, with the fullest text of its need."""
        claim = next(self._in_force(now), None)
        if claim is None or claim.need is None:
            return claim
        weaker = (each for each in self._in_force(now) if each is not claim)
        need = claim.need
        for each in weaker:
            if each.need is not None:
                need = _completed(need, each.need, is_vague=claim.source in _VAGUE)
        return attrs.evolve(claim, need=need)

    def _in_force(self, now: float) -> Iterator[Statement]:
        for source in BY_STRENGTH:
            claim = self._claims.get(source)
            if claim is not None and self._is_in_force(claim, now):
                yield claim

    def _is_in_force(self, claim: Statement, now: float) -> bool:
        changes_at = self._changes_at(claim)
        if changes_at is None:
            return True
        is_over = now >= changes_at
        return is_over if claim.answered_at is not None else not is_over

    def _changes_at(self, claim: Statement) -> float | None:
        """Return the moment at which the claim lapses, or is in force again; None if never."""
        if claim.answered_at is not None:
            return claim.answered_at + self._idle_s
        if claim.need is None and claim.source in _LAPSING:
            return max(claim.at, self.painted_at) + self._idle_s
        return None

    def changes(self, now: float) -> Iterator[float]:
        """Yield the moments after ``now`` at which a claim changes by time alone."""
        for claim in self._claims.values():
            changes_at = self._changes_at(claim)
            if changes_at is not None and changes_at > now:
                yield changes_at


def _answers(keys: KeyInput, claim: Statement) -> bool:
    takes_line = claim.source is Evidence.TTY or (claim.need is not None and claim.need.takes_line)
    return keys.ends_line if takes_line else keys.is_answer


def _completed(need: Need, other: Need, *, is_vague: bool) -> Need:
    """Return ``need`` with what ``other``, a need by a weaker source, adds to it."""
    if not need.text and other.text and (is_vague or need.kind in (other.kind, "input")):
        need = attrs.evolve(need, kind=other.kind, text=other.text)
    if need.kind == other.kind and other.tool:
        need = attrs.evolve(need, tool=other.tool, tool_input=other.tool_input)
    return need

"""``Responder``: answers the queries to the terminal in one shell's output. Pure.

Queries are answered at once and in the order of the stream, whether or not a client watches, and
nothing else answers them. An answer is written to the PTY after all earlier input, and counts as no
writer's keys.

Like a real terminal, it answers queries in any output, also in an old log on ``cat``. The number of
answers is limited: ``BURST`` at once and ``PER_SECOND`` after that, and none while earlier answers
are unread. Further queries get no answer.
"""

from __future__ import annotations

from collections.abc import Callable

from aegis.terminals.parse.answers import Answers, ReportedModes
from aegis.terminals.parse.control_sequences import ControlSequence

BURST = 1024
"""A program may query the whole palette, and much else, as it starts."""

PER_SECOND = 128.0

MAX_UNREAD_ANSWERS_BYTES = 4096
"""No query is answered while so many bytes of input are unread."""


class TokenBucket:
    """A rate limit: ``burst`` answers at once, and ``per_second`` more as time passes."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = float(burst)
        self._per_second = per_second
        self._left = float(burst)
        self._counted_at = 0.0

    def is_left(self, now: float) -> bool:
        """Whether an answer is allowed now; ``now`` is monotonic seconds."""
        earned = (now - self._counted_at) * self._per_second
        self._left = min(self._burst, self._left + earned)
        self._counted_at = now
        return self._left >= 1.0

    def spend(self) -> None:
        """Count one answer."""
        self._left -= 1.0


class Responder:
    """The answers of one shell's terminal; ``size`` and ``cursor_at`` are those of ``Answers``."""

    def __init__(
        self, *, size: Callable[[], tuple[int, int]], cursor_at: Callable[[int], tuple[int, int]]
    ) -> None:
        self._modes = ReportedModes()
        self._answers = Answers(size=size, cursor_at=cursor_at, modes=self._modes)
        self._budget = TokenBucket(BURST, PER_SECOND)

    def answer(self, sequence: ControlSequence, now: float) -> bytes:
        """Return the answer to a query, or nothing; ``now`` is monotonic seconds."""
        if self._modes.follow(sequence) or not self._budget.is_left(now):
            return b""
        answer = self._answers.answer(sequence)
        if answer:
            self._budget.spend()
        return answer

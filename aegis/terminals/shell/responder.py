"""``Responder``: answers the queries to the terminal in one shell's output.

It answers at once and in the order of the stream, whether or not a client watches, and is the only
one that does. An answer is written to the PTY after all earlier input, and counts as no writer's
keys.

Like a real terminal, it answers queries in any output, also in an old log on ``cat``. The number of
answers is limited: ``BURST`` at once and ``PER_SECOND`` after that, and none while earlier answers
are unread (see ``send``). Further queries get no answer.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import trio

from aegis.terminals.parse.answers import Answers, ReportedModes
from aegis.terminals.parse.queries import Osc, SequenceScanner
from aegis.terminals.parse.reported_directory import reported_directory

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
    """An ``OutputObserver`` of one shell.

    ``send`` writes an answer to the PTY, if there is room for it. ``moved`` is called with the
    directory that a program reports as its own. ``size`` and ``cursor_at`` are those of
    ``Answers``.
    """

    def __init__(
        self,
        *,
        size: Callable[[], tuple[int, int]],
        cursor_at: Callable[[int], tuple[int, int]],
        send: Callable[[bytes], None],
        moved: Callable[[str], None],
    ) -> None:
        self._scanner = SequenceScanner()
        self._modes = ReportedModes()
        self._answers = Answers(size=size, cursor_at=cursor_at, modes=self._modes)
        self._budget = TokenBucket(BURST, PER_SECOND)
        self._send = send
        self._moved = moved

    def output(self, data: bytes, cursor: int) -> None:
        """Answer the queries in ``data``, which was printed at the offset ``cursor``."""
        for sequence in self._scanner.feed(data, cursor):
            if isinstance(sequence, Osc) and sequence.number == 7:
                self._reported(sequence.content)
            elif not self._modes.follow(sequence) and self._budget.is_left(trio.current_time()):
                answer = self._answers.answer(sequence)
                if answer:
                    self._budget.spend()
                    self._send(answer)

    def _reported(self, content: bytes) -> None:
        directory = reported_directory(content, (socket.gethostname(),))
        if directory is not None:
            self._moved(directory)

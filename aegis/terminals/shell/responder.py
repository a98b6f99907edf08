"""``Responder``: watches one shell's output for questions to the terminal, and answers them.

It answers at once and in the order of the stream, whether or not anybody watches; nobody else does.
An answer is written to the PTY behind what was sent before and counts as nobody's keys.

A real terminal answers everything that is printed, an old log on ``cat`` too, and so does this
one. But there are bounds: ``BURST`` answers at once and ``PER_SECOND`` after that, and none while
earlier ones lie unread (``send`` sees to that). What comes in excess gets no answer.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import trio

from aegis.terminals.parse.answers import Answers, Modes
from aegis.terminals.parse.queries import Osc, SequenceScanner
from aegis.terminals.parse.reported_directory import reported_directory

BURST = 1024
"""A program may ask for the whole palette, and for much else, as it starts."""

PER_SECOND = 128.0


MAX_UNREAD_ANSWERS_BYTES = 4096
"""No question is answered while so many bytes wait for a program to read them."""


class Budget:
    """How many answers may still be given: ``burst``, and ``per_second`` more as time passes."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = float(burst)
        self._per_second = per_second
        self._left = float(burst)
        self._counted_at = 0.0

    def is_left(self, now: float) -> bool:
        """Whether one may be given now; ``now`` is monotonic seconds."""
        earned = (now - self._counted_at) * self._per_second
        self._left = min(self._burst, self._left + earned)
        self._counted_at = now
        return self._left >= 1.0

    def spend(self) -> None:
        """One was given."""
        self._left -= 1.0


class Responder:
    """An ``OutputObserver`` of one shell.

    ``send`` writes an answer to the PTY, if there is room for it. ``moved`` is told the directory
    that a program reports as its own. ``size`` and ``cursor_at`` are those of ``Answers``.
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
        self._modes = Modes()
        self._answers = Answers(size=size, cursor_at=cursor_at, modes=self._modes)
        self._budget = Budget(BURST, PER_SECOND)
        self._send = send
        self._moved = moved

    def output(self, data: bytes, cursor: int) -> None:
        """``data`` was printed, from the offset ``cursor`` on."""
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

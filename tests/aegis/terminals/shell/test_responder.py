"""The responder: in order, and bounded."""

from __future__ import annotations

from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.shell.responder import BURST, PER_SECOND, Responder, TokenBucket


class Watched:
    def __init__(self) -> None:
        self.looked_up: list[int] = []
        self._scanner = SequenceScanner()
        self._responder = Responder(size=lambda: (24, 80), cursor_at=self._cursor_at)

    def _cursor_at(self, cursor: int) -> tuple[int, int]:
        self.looked_up.append(cursor)
        return 5, 7

    def answers(self, data: bytes, cursor: int = 0, now: float = 0.0) -> list[bytes]:
        """Return the answers to the queries in ``data``, which was printed at ``cursor``."""
        found = self._scanner.feed(data, cursor)
        return [answer for each in found if (answer := self._responder.answer(each, now))]


def test_questions_are_answered_one_by_one_in_their_order() -> None:
    watched = Watched()
    assert watched.answers(b"text\x1b[c\x1b[6", 100) == [b"\x1b[?62;22c"]
    assert watched.answers(b"n\x1b]7501;?\x07", 110) == [b"\x1b[5;7R", b"\x1b]7501;?\x07"]
    assert watched.looked_up == [111]


def test_a_flood_of_questions_is_answered_in_bounds() -> None:
    watched = Watched()
    first = [answer for _ in range(100) for answer in watched.answers(b"\x1b[6n" * 1000)]
    assert len(first) == len(watched.looked_up) == BURST
    assert len(watched.answers(b"\x1b[6n" * 1000, now=2.0)) == 2 * PER_SECOND
    assert len(watched.answers(b"\x1b[6n" * 2 * BURST, now=1000.0)) == BURST


def test_what_is_no_question_costs_nothing_of_the_budget() -> None:
    watched = Watched()
    assert watched.answers(b"\x1b[?25l\x1b[?25h\x1b[22;0t" * 2000) == []
    assert watched.answers(b"\x1b[?25$p") == [b"\x1b[?25;1$y"]


def test_a_budget_earns_as_time_passes_and_never_more_than_its_burst() -> None:
    budget = TokenBucket(2, per_second=1.0)
    given = []
    for now in (0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 100.0, 100.0, 100.0):
        given.append(budget.is_left(now))
        if given[-1]:
            budget.spend()
    assert given == [True, True, False, False, True, False, True, True, False]

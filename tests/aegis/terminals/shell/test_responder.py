"""The responder: at once, in order, bounded."""

from __future__ import annotations

import socket

import trio
import trio.testing

from aegis.terminals.shell.responder import BURST, PER_SECOND, Responder, TokenBucket


class Watched:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.moved: list[str] = []
        self.looked_up: list[int] = []
        self.responder = Responder(
            size=lambda: (24, 80),
            cursor_at=self._cursor_at,
            send=self.sent.append,
            moved=self.moved.append,
        )

    def _cursor_at(self, cursor: int) -> tuple[int, int]:
        self.looked_up.append(cursor)
        return 5, 7


async def test_questions_are_answered_one_by_one_in_their_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    watched = Watched()
    watched.responder.output(b"text\x1b[c\x1b[6", 100)
    assert watched.sent == [b"\x1b[?62;22c"]
    watched.responder.output(b"n\x1b]7501;?\x07", 110)
    assert watched.sent[1:] == [b"\x1b[5;7R", b"\x1b]7501;?\x07"]
    assert watched.looked_up == [111]


async def test_a_flood_of_questions_is_answered_in_bounds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    watched = Watched()
    for _ in range(100):
        watched.responder.output(b"\x1b[6n" * 1000, 0)
    assert len(watched.sent) == len(watched.looked_up) == BURST
    await trio.sleep(2)
    watched.responder.output(b"\x1b[6n" * 1000, 0)
    assert len(watched.sent) == BURST + 2 * PER_SECOND
    await trio.sleep(1000)
    watched.responder.output(b"\x1b[6n" * 2 * BURST, 0)
    assert len(watched.sent) == 2 * BURST + 2 * PER_SECOND


async def test_what_is_no_question_costs_nothing_of_the_budget(
    autojump_clock: trio.testing.MockClock,
) -> None:
    watched = Watched()
    watched.responder.output(b"\x1b[?25l\x1b[?25h\x1b[22;0t" * 2000, 0)
    watched.responder.output(b"\x1b[?25$p", 0)
    assert watched.sent == [b"\x1b[?25;1$y"]


async def test_a_report_of_a_directory_of_this_host_is_told(
    autojump_clock: trio.testing.MockClock,
) -> None:
    watched = Watched()
    host = socket.gethostname().encode()
    watched.responder.output(
        b"\x1b]7;file://%b/srv/x\x07\x1b]7;file://not-%b/y\x07" % (host, host), 0
    )
    assert (watched.moved, watched.sent) == (["/srv/x"], [])


def test_a_budget_earns_as_time_passes_and_never_more_than_its_burst() -> None:
    budget = TokenBucket(2, per_second=1.0)
    given = []
    for now in (0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 100.0, 100.0, 100.0):
        given.append(budget.is_left(now))
        if given[-1]:
            budget.spend()
    assert given == [True, True, False, False, True, False, True, True, False]

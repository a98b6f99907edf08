"""A client of a history: it outlives the daemons, and does one step after the other.

A step that was under way when a daemon died is not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import trio

from tests.chaos.histories import script as s
from tests.chaos.histories.trouble import Trouble
from tests.chaos.notebook import Notebook


class Doer(Protocol):
    """Does one step, with the daemon of this life."""

    async def do(self, step: s.Step) -> None:
        """Do it."""


@attrs.define
class Places:
    """How far a client has read: seqs and cursors by terminal, and its inbox."""

    seqs: dict[str, int] = attrs.field(factory=dict)
    cursors: dict[str, int] = attrs.field(factory=dict)
    inbox: str | None = None


class Client:
    """``number`` of a history. ``trouble`` hears of each step when it begins.

    ``find_id`` gives the life id that a terminal has on the disk.
    """

    def __init__(
        self,
        number: int,
        steps: Sequence[s.Step],
        book: Notebook,
        trouble: Trouble,
        find_id: Callable[[str], str | None],
    ) -> None:
        self.number = number
        self.find_id = find_id
        self.handle = s.handle_of(number)
        self.places = Places()
        self._steps = steps
        self._book = book
        self.trouble = trouble
        self._done = 0
        book.answers[self.handle] = []

    @property
    def is_finished(self) -> bool:
        """Whether all steps are done, or were begun."""
        return self._done == len(self._steps)

    async def work(self, turn: Doer) -> None:
        """Go on with the steps until the last, or until the daemon is gone."""
        while not self.is_finished:
            step = self._steps[self._done]
            await trio.sleep(step.pause_s)
            self._done += 1
            self.trouble.step(step.number)
            await turn.do(step)

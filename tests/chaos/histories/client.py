"""A client of a history: it outlives the daemons, and does one step after the other.

A step that was in progress when a daemon died is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import trio

from tests.chaos.histories import script as s
from tests.chaos.histories.trouble import Trouble
from tests.chaos.machine.disk_model import DiskModel
from tests.chaos.notebook import Notebook


class StepRunner(Protocol):
    """The player of single steps in one incarnation of the daemon."""

    async def do(self, step: s.Step) -> None: ...


@attrs.define
class ReadPositions:
    """The read positions of a client: seqs and cursors by terminal, and its inbox."""

    seqs: dict[str, int] = attrs.field(factory=dict)
    cursors: dict[str, int] = attrs.field(factory=dict)
    inbox: str | None = None
    revisions: dict[tuple[str, str], int] = attrs.field(factory=dict)
    """The revisions of sections that it knows, by canvas and section."""


class Client:
    """Client ``number`` of a history. ``trouble`` is notified of the start of each step.

    ``find_id`` returns the life id of a terminal from the disk, ``model`` the disk.
    """

    def __init__(
        self,
        number: int,
        steps: Sequence[s.Step],
        book: Notebook,
        trouble: Trouble,
        find_id: Callable[[str], str | None],
        model: Callable[[], DiskModel],
    ) -> None:
        self.number = number
        self.find_id = find_id
        self.model = model
        self.handle = s.handle_of(number)
        self.places = ReadPositions()
        self._steps = steps
        self._book = book
        self.trouble = trouble
        self._done = 0
        book.answers[self.handle] = []

    @property
    def is_finished(self) -> bool:
        """Return whether all steps are done, or were begun."""
        return self._done == len(self._steps)

    async def work(self, turn: StepRunner) -> None:
        """Do the remaining steps, until the last or until the daemon is gone."""
        while not self.is_finished:
            step = self._steps[self._done]
            await trio.sleep(step.pause_s)
            self._done += 1
            self.trouble.step(step.number)
            await turn.do(step)

"""Real daemons, killed again and again: some incarnations on one root, then the next root."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from tests.chaos.checking.checker import Violation, violations
from tests.chaos.real.campaign import Campaign
from tests.chaos.real.deaths import Death, endless_deaths
from tests.chaos.real.scratch import free_port
from tests.chaos.real.table import Figures, added, figures
from tests.chaos.real.tracing import reason_not_to_trace

LIVES_OF_ROOT = 25
"""The number of incarnations of a root before it is checked, so that failures are found early."""

Progress = Callable[[int, Death], None]
"""A function that is called after each incarnation, with its number and its death."""


class RealRun:
    """A run of daemons in ``directory``, limited by incarnations or minutes.

    The same seed gives the same deaths and the same load, not the same timing. ``figures`` and
    ``lives`` are of the checked roots, ``violations`` the broken promises, ``root`` the root of
    these, which is kept. ``untraced`` is the reason why no daemon died at a call, or None.
    """

    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        progress: Progress,
        lives: int | None = None,
        minutes: float | None = None,
    ) -> None:
        self.figures: Figures = {}
        self.lives = 0
        self.violations: list[Violation] = []
        self.root: Path | None = None
        self.untraced = reason_not_to_trace()
        self._directory = directory
        self._chance = random.Random(seed)
        self._progress = progress
        self._most = lives
        self._end = None if minutes is None else time.monotonic() + 60 * minutes

    def run(self) -> None:
        """Run until a limit, or the first root with a broken promise.

        Raises ``ScratchError`` if a daemon does not start or die as planned. No process is left
        after any error.
        """
        planned = endless_deaths(self._chance, calls=self.untraced is None)
        while not self.violations and (batch := self._next_batch()):
            self._live(list(islice(planned, batch)))

    def _next_batch(self) -> int:
        left = LIVES_OF_ROOT if self._most is None else self._most - self.lives
        return min(LIVES_OF_ROOT, left) if self._may_go_on() else 0

    def _may_go_on(self) -> bool:
        return self._end is None or time.monotonic() < self._end

    def _live(self, deaths: list[Death]) -> None:
        self.root = self._directory / str(self.lives)
        self.root.mkdir()
        campaign = Campaign(self.root, self._chance, port=free_port(self._chance))
        lived = []
        try:
            campaign.prepare()
            for death in deaths:
                campaign.live(death)
                lived.append(death)
                self._progress(self.lives + len(lived), death)
                if not self._may_go_on():
                    break
            evidence = campaign.finish()
        finally:
            campaign.clean_up()
        self.violations = violations(evidence)
        self.figures = added([self.figures, figures(evidence, lived, self.violations)])
        self.lives += len(lived)


def run_real(
    directory: Path,
    seed: int,
    *,
    progress: Progress,
    lives: int | None = None,
    minutes: float | None = None,
) -> RealRun:
    """Return a finished run. See ``RealRun``."""
    run = RealRun(directory, seed, progress=progress, lives=lives, minutes=minutes)
    run.run()
    return run

"""Real daemons killed over and over for a user: some lives on one root, then the next root."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import attrs

from aegis.chaos.checking.checker import Violation, violations
from aegis.chaos.real.campaign import Campaign
from aegis.chaos.real.deaths import Death, endless_deaths
from aegis.chaos.real.scratch import free_port
from aegis.chaos.real.table import Figures, added, figures
from aegis.chaos.real.tracing import reason_not_to_trace

LIVES_OF_ROOT = 25
"""After so many a root is read and judged: evidence grows, and a failure should come early."""

Progress = Callable[[int, Death], None]
"""Told after each life: how many there were, and how the last one ended."""


@attrs.frozen(kw_only=True)
class RealOutcome:
    """What the lives have shown. ``untraced`` is why no death was at a call, if none was.

    ``root`` is where the violations were found; it is left as it is.
    """

    lives: int
    seconds: float
    figures: Figures
    violations: tuple[Violation, ...]
    untraced: str | None
    root: Path | None


def run_real(
    directory: Path,
    seed: int,
    *,
    progress: Progress,
    lives: int | None = None,
    minutes: float | None = None,
) -> RealOutcome:
    """Let daemons live and die in ``directory``, at most so many lives, or about so many minutes.

    Ends at the first root on which a promise was broken. The same seed gives the same deaths and
    the same load, not the same timing. Raises ``ScratchError`` if a daemon does not start or die
    as it must; whatever happens, no process is left.
    """
    began = time.monotonic()
    untraced = reason_not_to_trace()
    chance = random.Random(seed)  # noqa: S311
    planned = endless_deaths(chance, calls=untraced is None)
    found: list[Violation] = []
    sums: list[Figures] = []
    lived, root = 0, directory
    while not found and _may_go_on(lived, lives, began, minutes):
        batch = LIVES_OF_ROOT if lives is None else min(LIVES_OF_ROOT, lives - lived)
        root = directory / f"{lived}"
        root.mkdir()
        shown = _one_root(root, chance, list(islice(planned, batch)), lived, progress)
        found, lived = shown.violations, lived + batch
        sums.append(shown.figures)
    return RealOutcome(
        lives=lived,
        seconds=time.monotonic() - began,
        figures=added(sums),
        violations=tuple(found),
        untraced=untraced,
        root=root if found else None,
    )


def _may_go_on(lived: int, lives: int | None, began: float, minutes: float | None) -> bool:
    is_early = minutes is None or time.monotonic() < began + 60 * minutes
    return is_early and (lives is None or lived < lives)


@attrs.frozen
class _Shown:
    figures: Figures
    violations: list[Violation]


def _one_root(
    directory: Path,
    chance: random.Random,
    deaths: list[Death],
    lived: int,
    progress: Progress,
) -> _Shown:
    campaign = Campaign(directory, chance, port=free_port(chance))
    try:
        campaign.prepare()
        for number, death in enumerate(deaths, lived + 1):
            campaign.live(death)
            progress(number, death)
        evidence = campaign.finish()
    finally:
        campaign.clean_up()
    found = violations(evidence)
    return _Shown(figures(evidence, deaths, found), found)

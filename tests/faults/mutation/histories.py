"""Ring 2 for one mutant: random histories of the tree that this runs in, until a promise breaks.

    python -m tests.faults.mutation.histories [SEEDS]

All in this process, and without a search for the shortest script.
"""

from __future__ import annotations

import sys

from tests.chaos.running.figures import Played
from tests.chaos.running.worker import play_seed

SEEDS = 30
"""The number of histories that a survivor passes; the first of them is played twice."""


def play_until_broken(seeds: range) -> Played | None:
    """Return the result of the first seed with a broken promise; None if there is none."""
    outcomes = (play_seed(seed, twice=seed == seeds.start) for seed in seeds)
    return next((played for played in outcomes if played.violations), None)


def main() -> int:
    """Exit with code 1 and the broken rule, in pytest's format for a failed test."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    broken = play_until_broken(range(number))
    if broken is None:
        return 0
    first = broken.violations[0]
    print(f"FAILED {first.rule} - seed {broken.seed}: {first.what}")  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())

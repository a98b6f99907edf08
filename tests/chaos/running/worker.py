"""A process that plays seeds: one per line of its standard input, one line of figures for each.

It ends with its input, so none outlives its parent by more than a seed.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TextIO

from tests.chaos.checking.checker import Violation
from tests.chaos.histories.drawing import make_script
from tests.chaos.histories.playing import Outcome, play
from tests.chaos.running.figures import ONE_TRACE, Played, broken_off

LAST_LINES = 6
"""The last lines of a traceback, of a history that raised an exception."""


def play_seed(seed: int, *, twice: bool = False) -> Played:
    """Play the history of ``seed``, and again if the two traces are to be compared."""
    try:
        outcome = play(make_script(seed))
        again = play(make_script(seed)) if twice else outcome
    except Exception as error:
        lines = traceback.format_exception(error)
        return broken_off(seed, "".join(lines[-LAST_LINES:]).strip())
    return played(seed, outcome, again, twice=twice)


def played(seed: int, outcome: Outcome, again: Outcome, *, twice: bool) -> Played:
    """Return the figures of an outcome, with a violation if the second outcome differs."""
    found = list(outcome.violations)
    if outcome.events != again.events:
        found.append(Violation(ONE_TRACE, f"seed {seed} gave two traces"))
    return Played(
        seed=seed,
        operations=outcome.operations,
        records=outcome.records,
        wakes=outcome.wakes,
        lives=outcome.lives,
        hits=outcome.hits,
        violations=tuple(found),
        twice=twice,
    )


def serve(requests: TextIO, answers: TextIO) -> None:
    """Play each requested seed, until the end of the input."""
    for line in requests:
        request = json.loads(line)
        answers.write(f"{play_seed(request['seed'], twice=request['twice']).to_line()}\n")
        answers.flush()


def main() -> None:
    """Run the process. Other output during a seed is dropped: standard output is for answers."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        serve(sys.stdin, answers)


if __name__ == "__main__":
    main()

"""Breaks the promises on purpose, in a throw-away copy, and looks whether the harness notices.

    python -m tests.faults.mutation.run                          each promise of promises.py, broken
    python -m tests.faults.mutation.run --random 100 --seed 1    as many mutants drawn at random
    python -m tests.faults.mutation.run --only NAME              one of the promises

Each part is tried on the unbroken tree, then on all mutants that no part before has noticed; those
that only an ordinary test noticed are tried with all rings. What lasts five times as long as on the
unbroken tree hangs, and that is noticed too. A row for each try, and at the end what came of each
mutant. Exit code 1 if one of the promises survived, 2 if a part fails on the unbroken tree. With
``--out FILE`` the tries are written down, and those that are in it are not repeated. Needs root,
for what ``machine`` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from tests.faults.mutation.draw import draw
from tests.faults.mutation.machine import ROOT, Ended, Machine, machine, why_not
from tests.faults.mutation.parts import OUTSIDE, RINGS, Part, first_failure, ordinary
from tests.faults.mutation.promises import PROMISES
from tests.faults.mutation.reached import reached_lines
from tests.faults.mutation.tries import HANG, UNBROKEN, Try, rows, totals, verdicts

DRAWN_FROM = (
    "aegis/journal",
    "aegis/inboxes",
    "aegis/terminals",
    "actors/supervisor.py",
    "actors/supervision.py",
    "actors/policy.py",
)
"""The directories of the files of random mutants."""

LEAST_LIMIT_S = 120.0
TIMES_LONGER, TIMES_LONGER_THAN_MEASURED = 5, 2.5
"""The factors on the unbroken tree's time that limit a part, the second if lines were measured."""

UNBROKEN_LIMIT_S = 1800.0

NO_TESTS = 5
"""The exit code of pytest for a package without such tests."""


@attrs.frozen
class Change:
    """A file, its text with the mutant in it, and the lines that a part must run to notice it."""

    file: str
    text: str
    lines: range | None = None


def sources() -> dict[str, str]:
    """Return the files that mutants are drawn from."""
    paths = [
        path
        for place in DRAWN_FROM
        for path in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))
    ]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def promised(names: Sequence[str]) -> dict[str, Change]:
    """Return the promises of these names, broken."""
    chosen = [PROMISES[name] for name in names]
    return {
        each.name: Change(each.file, each.broken((ROOT / each.file).read_text())) for each in chosen
    }


def drawn(number: int, seed: int) -> dict[str, Change]:
    """Return so many mutants drawn at random."""
    files = sources()
    chosen = draw(files, number, seed)
    return {
        str(each): Change(each.file, each.applied_to(files[each.file]), each.lines)
        for each in chosen
    }


Stage = Mapping[str, Part]
"""The parts that are tried, by mutant."""


Trying = Callable[..., Awaitable[Try]]


class Campaign:
    """Mutants, the parts that are tried on them, and the results; ``jobs`` mutants at a time."""

    def __init__(
        self, on: Machine, mutants: Mapping[str, Change], jobs: int, out: Path | None
    ) -> None:
        self._machine = on
        self._mutants = mutants
        self._limiter = trio.CapacityLimiter(jobs)
        self._out = out
        known = [] if out is None or not out.exists() else out.read_text().splitlines()
        self.tries = [Try.from_line(line) for line in known]

    async def run(self, stages: Sequence[Stage]) -> str | None:
        """Run the stages in order; return the part that fails on the unbroken tree, or None."""
        for stage in stages:
            parts = {part.name: part for part in stage.values()}
            async with trio.open_nursery() as nursery:
                for name, part in parts.items():
                    if self._known(UNBROKEN, part) is None:
                        await self._limiter.acquire_on_behalf_of(name)
                        nursery.start_soon(self._released, name, self._measured, part)
            for part in parts.values():
                unbroken = self._known(UNBROKEN, part)
                if unbroken is not None and unbroken.noticed_by is not None:
                    return f"{part.name}: {unbroken.noticed_by}"
            async with trio.open_nursery() as nursery:
                for what, part in sorted(stage.items(), key=self._is_noticed):
                    if self._is_open(what, part):
                        await self._limiter.acquire_on_behalf_of(what)
                        nursery.start_soon(self._released, what, self._tried, what, part)
        return None

    def _is_noticed(self, item: tuple[str, Part]) -> bool:
        """Return the sort key that puts unnoticed mutants first."""
        return verdicts([item[0]], self.tries)[item[0]].by is not None

    def _is_open(self, what: str, part: Part) -> bool:
        """Return whether no ring, and for an ordinary test no test, has noticed the mutant.

        A part that does not run the line of a mutant is not tried with it.
        """
        if self._known(what, part) is not None or not self._is_reached(what, part):
            return False
        verdict = verdicts([what], self.tries)[what]
        return verdict.by is None or (part.is_ring and not verdict.is_caught_by_ring)

    def _is_reached(self, what: str, part: Part) -> bool:
        change, unbroken = self._mutants[what], self._known(UNBROKEN, part)
        if change.lines is None or unbroken is None:
            return True
        return unbroken.reaches(change.file, change.lines)

    async def _released(self, borrower: str, trying: Trying, *arguments: Any) -> None:
        try:
            self._add(await trying(*arguments))
        finally:
            self._limiter.release_on_behalf_of(borrower)

    def _add(self, tried: Try) -> None:
        self.tries.append(tried)
        print(tried, flush=True)  # noqa: T201
        if self._out is not None:
            with self._out.open("a") as file:
                file.write(f"{tried.to_line()}\n")

    def _known(self, what: str, part: Part) -> Try | None:
        fits = (each for each in self.tries if (each.what, each.part) == (what, part.name))
        return next(fits, None)

    async def _measured(self, part: Part) -> Try:
        """Run on the unbroken tree: measure the time and, for simulated rings, the lines."""
        if part.is_real or not part.is_ring:
            return await self._tried(UNBROKEN, part)
        ended = await self._machine.run(part.measured.words, within_s=UNBROKEN_LIMIT_S)
        lines = reached_lines(ended.output)
        return attrs.evolve(_try_of(UNBROKEN, part, ended), reached=lines)

    async def _tried(self, what: str, part: Part) -> Try:
        """Run on a mutant. A failure with real processes counts if it occurs again."""
        tried = await self._once(what, part)
        if not part.is_real or tried.noticed_by in (None, HANG):
            return tried
        again = await self._once(what, part.again(str(tried.noticed_by)))
        if again.noticed_by is not None:
            return attrs.evolve(again, noticed_by=tried.noticed_by)
        return await self._once(what, part)

    async def _once(self, what: str, part: Part) -> Try:
        change, unbroken = self._mutants.get(what), self._known(UNBROKEN, part)
        limit_s = UNBROKEN_LIMIT_S
        if unbroken is not None:
            times = TIMES_LONGER if unbroken.reached is None else TIMES_LONGER_THAN_MEASURED
            limit_s = max(LEAST_LIMIT_S, times * unbroken.seconds)
        mutant = None if change is None else (change.file, change.text)
        ended = await self._machine.run(part.words, within_s=limit_s, change=mutant)
        return _try_of(what, part, ended)


def _try_of(what: str, part: Part, ended: Ended) -> Try:
    noticed, seconds = _noticed_by(ended), round(ended.seconds, 1)
    return Try(what=what, part=part.name, noticed_by=noticed, seconds=seconds)


def _noticed_by(ended: Ended) -> str | None:
    if ended.code is None:
        return HANG
    if ended.code in (0, NO_TESTS):
        return None
    return first_failure(ended.output) or f"exit {ended.code}"


def stages_of(parts: Sequence[Part], mutants: Mapping[str, Change]) -> list[Stage]:
    """Return stages: the cheapest part, the ordinary tests, the other parts, those from outside."""
    stages: list[Stage] = [dict.fromkeys(mutants, part) for part in parts]
    of_each = {what: ordinary(change.file) for what, change in mutants.items()}
    stages[1:1] = [{what: of_it[index] for what, of_it in of_each.items()} for index in (0, 1)]
    stages.append(dict.fromkeys(mutants, OUTSIDE))
    return stages


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Break promises on purpose.")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="the promise of this name")
    parser.add_argument("--jobs", type=int, default=2, help="so many mutants at a time")
    parser.add_argument("--out", type=Path, help="write down what was tried, and go on from it")
    names = [part.name for part in RINGS]
    parser.add_argument("--ring", action="append", choices=names, help="only this one")
    return parser.parse_args()


def main() -> int:
    """Run the command line."""
    given = parse()
    reason = why_not()
    if reason is not None:
        sys.stderr.write(f"mutants need a machine to throw away: {reason}\n")
        return 2
    if given.random:
        mutants = drawn(given.random, given.seed)
    else:
        mutants = promised(given.only or list(PROMISES))
    parts = [part for part in RINGS if not given.ring or part.name in given.ring]
    with machine() as on:
        campaign = Campaign(on, mutants, given.jobs, given.out)
        broken = trio.run(campaign.run, stages_of(parts, mutants))
    if broken is not None:
        sys.stderr.write(f"the harness fails on the unbroken tree: {broken}\n")
        return 2
    return _close(campaign, mutants, is_random=given.random > 0)


def _close(campaign: Campaign, mutants: Mapping[str, Change], *, is_random: bool) -> int:
    found = verdicts(mutants, campaign.tries)
    for line in rows(found):
        print(line)  # noqa: T201
    counted = totals(found)
    print(", ".join(f"{name}: {number}" for name, number in counted.items()))  # noqa: T201
    return int(counted.get("survived", 0) > 0 and not is_random)


if __name__ == "__main__":
    sys.exit(main())

"""Ring 2: random histories until a limit is reached or a promise is broken."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from types import FrameType

import attrs
import trio

from tests.chaos.checking.checker import RULES
from tests.chaos.histories.drawing import make_script
from tests.chaos.running.closing import closing_table
from tests.chaos.running.failure import (
    replay_lines,
    shortest_lines,
    trace_lines,
    violation_lines,
)
from tests.chaos.running.figures import Played, Totals
from tests.chaos.running.pool import Pool
from tests.chaos.running.progress import Progress
from tests.chaos.running.reducing import Reduced, reduce_script, script_lines

TICK_S = 0.5
"""The interval, in seconds, between two updates of the progress while no seed ends."""


@attrs.frozen(kw_only=True)
class Limits:
    """The limits of a run; the seeds count up from ``first``. None: no such limit."""

    first: int
    seeds: int | None
    seconds: float | None


class _InterruptedError(Exception):
    """The user pressed Ctrl-C."""


class Ring2:
    """One run. ``totals`` has the played seeds, ``is_interrupted`` whether Ctrl-C ended it."""

    def __init__(self, limits: Limits, jobs: int, progress: Progress) -> None:
        self._limits = limits
        self._jobs = jobs
        self._progress = progress
        self._began = time.monotonic()
        self.totals = Totals()
        self.is_interrupted = False

    @property
    def seconds(self) -> float:
        """Return the seconds since the start of the run."""
        return time.monotonic() - self._began

    def run(self) -> None:
        """Play until a limit, the first violation, or Ctrl-C."""
        trio.run(self._run)
        self._progress.clear()

    async def _run(self) -> None:
        pool = Pool(self._seeds(), self._jobs, self._on_played)
        async with trio.open_nursery() as nursery:
            self._stop = nursery.cancel_scope
            await nursery.start(self._listen)  # before there is a process that shows that it runs
            nursery.start_soon(self._tick)
            await pool.run()
            nursery.cancel_scope.cancel()

    def _seeds(self) -> Iterator[int]:
        """Yield the next seed, as long as there is time."""
        for seed in islice(count(self._limits.first), self._limits.seeds):
            if self._limits.seconds is not None and self.seconds >= self._limits.seconds:
                return
            yield seed

    def _on_played(self, played: Played) -> None:
        self.totals.add(played)
        self._show()
        if played.violations:
            self._stop.cancel()

    async def _listen(self, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                self.is_interrupted = True
                self._stop.cancel()

    async def _tick(self) -> None:
        while True:
            self._show()
            await trio.sleep(TICK_S)

    def _show(self) -> None:
        totals = self.totals
        of = "" if self._limits.seeds is None else f" of {self._limits.seeds:,}"
        parts = [f"{totals.seeds:,}{of} seeds", f"{totals.violations} violations"]
        parts += [
            *self._time_left(),
            f"{totals.faults:,} faults",
            f"{totals.operations:,} operations",
        ]
        self._progress.show(*parts, f"{totals.seeds / max(self.seconds, 0.001):.1f} seeds/s")

    def _time_left(self) -> Iterator[str]:
        """Return the longest remaining time, by the time so far."""
        limits, done = self._limits, self.totals.seeds
        ends = [] if limits.seconds is None else [limits.seconds - self.seconds]
        if limits.seeds is not None and done:
            ends.append((limits.seeds - done) * self.seconds / done)
        if ends:
            left = max(0, round(min(ends)))
            yield f"{left // 60}m {left % 60:02}s left"

    @property
    def is_broken(self) -> bool:
        """Return whether a promise was broken."""
        return self.totals.violations > 0

    def table(self, columns: int) -> str:
        """Return the table of attempts and promises, fit for so many columns."""
        return closing_table(self.totals, columns)

    # A failure.

    def failure(self) -> Iterator[str]:
        """Return the report of the first seed that broke a promise, line by line."""
        failed = self.totals.failed
        if failed is None:
            return
        yield f"seed {failed.seed} breaks a promise:"
        yield from violation_lines(failed.violations)
        rule = failed.violations[0].rule
        if rule in RULES:
            yield from self._shortest(failed.seed, rule)
        yield from replay_lines(failed.seed)

    def _shortest(self, seed: int, rule: str) -> Iterator[str]:
        script = make_script(seed)
        try:
            reduced = self._reduce(seed, rule)
        except _InterruptedError:
            yield "the search for a shorter script was interrupted"
            return
        finally:
            self._progress.clear()
        yield from shortest_lines(
            rule,
            script_lines(reduced.script),
            whole=len(script.steps) + len(script.faults),
            tries=reduced.tries,
            is_minimal=reduced.is_minimal,
        )
        yield from violation_lines(reduced.outcome.violations)
        yield from trace_lines(reduced.outcome.trace)

    def _reduce(self, seed: int, rule: str) -> Reduced:
        with _interrupts() as interrupts:

            def on_try(tried: int, parts: int) -> None:
                if interrupts:
                    raise _InterruptedError
                self._progress.show(f"seed {seed}", f"try {tried}", f"{parts} steps and faults")

            return reduce_script(make_script(seed), rule, on_try=on_try)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Record Ctrl-C without an interrupt of the history in progress."""
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)

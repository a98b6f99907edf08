"""The time of a workflow: an input of its function, which a replay gives again.

``trio.current_time()`` of a workflow counts the seconds of its run. It moves only while the
function waits, when it gets an outcome or a deadline passes, and by recorded readings: so a replay
fires the same timers between the same outcomes, without waiting for them. The time for which the
daemon is down counts, that between the end of a workflow and a resume does not.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal

import trio
from trio.testing import wait_all_tasks_blocked

BEHIND_S = 0.1
"""Seconds that the time may be behind the real one when the function reads it.

It is more after code that does not wait, such as a long computation.
"""

RESTLESS_S = 0.5
"""Seconds for which outcomes and timers wait for the function to come to rest.

For a function that never does, such as a loop around ``trio.sleep(0)``, time passes all the same.
"""

Reader = Literal["function", "call"]

_reader: ContextVar[Reader | None] = ContextVar("reader", default=None)
"""The code that reads the clock: the function, or what carries out a call. None: Trio itself."""


class Timeline:
    """The order of a workflow's inputs, where its time is not its own (in a simulation)."""

    @property
    def now(self) -> float | None:
        """The workflow's time, in seconds; None if it has none."""
        return None

    async def rest(self) -> None:
        """Wait until all tasks wait for an input."""
        await trio.lowlevel.checkpoint()

    def allow(self, until: float | None) -> None:
        """Let the timers up to a moment of the replay fire, each when all tasks wait."""

    def arrive(self, moment: float | None) -> float | None:
        """Move the time to that of an outcome: in a replay ``moment``, else now; return it."""
        del moment
        return self.now

    def go_live(self, at: float | None) -> None:
        """Let the time pass; ``at`` is the real moment of the newest recorded one."""

    def take_readings(self) -> list[tuple[str, float | None]]:
        """Return the readings that moved the time since the last call."""
        return []

    @contextlib.contextmanager
    def read_by(self, reader: Reader) -> Iterator[None]:
        """Say what the code of a block is."""
        before = _reader.set(reader)
        try:
            yield
        finally:
            _reader.reset(before)


class WorkflowClock(Timeline, trio.abc.Clock):
    """The clock of Trio in the process of a workflow. ``readings`` are those of the journal."""

    def __init__(self, readings: Mapping[str, float]) -> None:
        self._readings = readings
        self._moved: list[tuple[str, float | None]] = []
        self._count = 0
        self._now = 0.0
        self._allowed = 0.0
        self._started: float | None = None  # on the real clock, minus the workflow's time
        self._deadline: float | None = None
        self._idle_at = time.monotonic()
        self._restless_at = math.inf
        self._restless = trio.Event()

    # Of Trio.

    def start_clock(self) -> None:
        """Start nothing: the time begins with ``go_live``."""

    def current_time(self) -> float:
        """Return the time; real time to code that carries out a call."""
        reader = _reader.get()
        if reader == "call":
            return self._real()
        if reader == "function":
            self._read()
        else:
            self._pass()
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Return how long nothing has to happen until a deadline: in a replay no time, or any."""
        self._deadline, self._idle_at = deadline, time.monotonic()
        if self._started is not None:
            return deadline - self._real()
        return 0 if deadline <= max(self._allowed, self._now) else math.inf

    def _real(self) -> float:
        return self._now if self._started is None else time.monotonic() - self._started

    def _pass(self) -> None:
        """Let at most one deadline pass: two outcomes of different timers are two inputs."""
        deadline, self._deadline = self._deadline, None
        end = self._allowed if self._started is None else self._real()
        if deadline is not None and self._now < deadline <= end:
            self._now = deadline
        if deadline is None and time.monotonic() - self._idle_at > RESTLESS_S:
            self._now = max(self._now, end)
        if time.monotonic() >= self._restless_at:
            self._restless_at = math.inf
            self._restless.set()

    def _read(self) -> None:
        self._count += 1
        reading = f"#{self._count}"
        if self._started is None:
            self._now = max(self._now, self._readings.get(reading, 0.0))
        elif self._real() > self._now + BEHIND_S:
            self._now = round(self._real(), 6)
            self._moved.append((reading, self._now))

    # Of the inputs.

    @property
    def now(self) -> float:
        """The workflow's time, in seconds."""
        return self._now

    async def rest(self) -> None:
        """Wait until all tasks wait for an input, or for ``RESTLESS_S``."""
        self._restless = trio.Event()
        self._restless_at = time.monotonic() + RESTLESS_S
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_when_blocked, nursery.cancel_scope)
            await self._restless.wait()
            nursery.cancel_scope.cancel()
        self._restless_at = math.inf

    def allow(self, until: float | None) -> None:
        """Let the timers up to a moment of the replay fire, each when all tasks wait."""
        self._allowed = max(self._allowed, until or 0.0)

    def arrive(self, moment: float | None) -> float:
        """Move the time to that of an outcome: in a replay ``moment``, else now; return it."""
        if self._started is None:
            self._now = max(self._now, moment or 0.0)
            return self._now
        # Not past a timer that has not fired: in a replay it would fire before the outcome.
        if trio.lowlevel.current_statistics().seconds_to_next_deadline > 0:
            self._now = round(max(self._now, self._real()), 6)
        return self._now

    def go_live(self, at: float | None) -> None:
        """Let the time pass; ``at`` is the real moment of the newest recorded one."""
        self._now = max(self._now, self._allowed)
        away = 0.0 if at is None else max(0.0, time.time() - at)
        self._started = time.monotonic() - self._now - away

    def take_readings(self) -> list[tuple[str, float | None]]:
        """Return the readings that moved the time since the last call."""
        moved, self._moved = self._moved, []
        return moved


async def _when_blocked(scope: trio.CancelScope) -> None:
    await wait_all_tasks_blocked()
    scope.cancel()


async def long_rest(seconds: float) -> None:
    """Wait until all tasks have waited for so long, in real seconds."""
    await wait_all_tasks_blocked(seconds)


class _OldestFirst(random.Random):
    """The order of Trio's scheduler: the tasks of a batch as they were started.

    Trio takes them from the end of the list.
    """

    def shuffle(self, x: Any) -> None:
        x.reverse()


def schedule_in_order() -> None:
    """Let Trio run tasks that are ready at the same time in the order in which they were started.

    Otherwise it is drawn by lot, and two replays of one journal would differ. Trio has no public
    way; Hypothesis uses this one. A Trio without it keeps its order, which only functions see whose
    tasks wait for the same thing.
    """
    scheduler: Any = importlib.import_module("trio._core._run")
    if hasattr(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING") and hasattr(scheduler, "_r"):
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
        scheduler._r = _OldestFirst()


def readings_of(seen: Sequence[tuple[str, float | None]]) -> dict[str, float]:
    """Return the recorded readings of the clock."""
    return {each: at for each, at in seen if each.startswith("#") and at is not None}

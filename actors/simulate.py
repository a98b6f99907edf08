"""Simulated runs: one seed determines the course of events, on a mock clock.

Trio runs the tasks that are ready in random order. Here the seed determines the order, so another
seed tries another order, and the same seed repeats it. All events are recorded in a trace, by which
two runs can be compared:

    async def play(simulation: Simulation) -> int:
        async with simulation.open_system(spec) as system:
            return await system.ref("root/account").ask(Balance())

    run = simulate(play, seed=7)
    assert simulate(play, seed=7).trace == run.trace

A run must not use threads, sockets, processes, the real clock, or any random source except
``Simulation.chance``. Only this file uses the two private hooks of Trio that it needs: the
scheduler's random source, and the switch that makes the order depend on it alone.
"""

from __future__ import annotations

import hashlib
import importlib
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Generic, TypeVar

import attrs
import trio
import trio.testing

from actors.errors import MisuseError
from actors.run import open_system
from actors.spec import SupervisorSpec
from actors.system import Observer, System

T = TypeVar("T")

KEPT = 100_000
"""The number of events that a trace keeps; older ones are dropped, but count in its digest."""
SHOWN = 20
"""The number of last events that a failed run shows."""


@attrs.frozen
class TraceEvent:
    """One event, ``at`` seconds after the start of the run.

    ``kind`` is "started", "crashed", "ended" or "teardown_cut" for an incarnation, "message" when
    its handling begins, "timer" when it is due, or a kind passed to ``Simulation.note``.
    """

    at: float
    kind: str
    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.kind} {self.path} {self.detail}".rstrip()


@attrs.frozen
class Trace:
    """The events of one run, in order. Two traces are equal if all events are, dropped ones too."""

    events: tuple[TraceEvent, ...] = attrs.field(eq=False, repr=False)
    count: int
    digest: str

    def __str__(self) -> str:
        return "\n".join(map(str, self.events))


@attrs.frozen
class Run(Generic[T]):
    """A finished run, and the value that its script returned."""

    seed: int
    value: T
    trace: Trace


class Simulation:
    """A run in progress. ``chance`` is the random source for the script's own choices."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = _source(seed, "script")
        self._pauses = _source(seed, "pauses")
        self._happenings: deque[TraceEvent] = deque(maxlen=KEPT)
        self._count = 0
        self._digest = hashlib.sha256()

    def open_system(
        self, spec: SupervisorSpec, *, observer: Observer | None = None
    ) -> AbstractAsyncContextManager[System]:
        """Open a traced system like ``actors.open_system``; the seed determines the jitter."""
        return open_system(spec, observer=observer, chance=self._pauses, tracer=self.note)

    def note(self, kind: str, path: str, detail: str = "") -> None:
        """Add an event to the trace."""
        event = TraceEvent(trio.current_time(), kind, path, detail)
        self._happenings.append(event)
        self._count += 1
        self._digest.update(f"{event}\n".encode())

    @property
    def trace(self) -> Trace:
        """The trace so far."""
        return Trace(tuple(self._happenings), self._count, self._digest.hexdigest())


def simulate(play: Callable[[Simulation], Awaitable[T]], *, seed: int) -> Run[T]:
    """Run ``play`` in a Trio loop of its own, on a mock clock that starts at 0.

    An exception of ``play`` is raised with a note that has the seed and the last events. Raises
    ``MisuseError`` if this version of Trio lacks the hooks that a seed needs.
    """
    simulation = Simulation(seed)
    clock = trio.testing.MockClock(autojump_threshold=0)
    with seeded_scheduling(seed):
        try:
            value = trio.run(play, simulation, clock=clock)
        except BaseException as error:
            error.add_note(_replay_note(simulation))
            raise
    return Run(seed, value, simulation.trace)


def _replay_note(simulation: Simulation) -> str:
    trace = simulation.trace
    last = [str(event) for event in trace.events[-SHOWN:]]
    head = (
        f"to replay: simulate(..., seed={simulation.seed}); the last {len(last)} of {trace.count}:"
    )
    return "\n  ".join([head, *last])


@contextmanager
def seeded_scheduling(seed: int) -> Iterator[None]:
    """Make the order of Trio's scheduler depend on ``seed`` until the block ends."""
    scheduler = _scheduler()
    state, allowed = scheduler._r.getstate(), scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    scheduler._r.setstate(_source(seed, "scheduler").getstate())
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        yield
    finally:
        scheduler._r.setstate(state)
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = allowed


def _scheduler() -> Any:
    """Return the module of Trio that has both hooks."""
    try:
        module: Any = importlib.import_module("trio._core._run")
    except ImportError:
        module = None
    source = getattr(module, "_r", None)
    switch = getattr(module, "_ALLOW_DETERMINISTIC_SCHEDULING", None)
    if not isinstance(source, random.Random) or not isinstance(switch, bool):
        raise MisuseError(
            f"Trio {trio.__version__} cannot run by a seed: trio._core._run must have a "
            "random.Random _r and a bool _ALLOW_DETERMINISTIC_SCHEDULING; use another version"
        )
    return module


def _source(seed: int, purpose: str) -> random.Random:
    # A text as seed does not depend on Python's hash seed.
    return random.Random(f"{seed}/{purpose}")  # noqa: S311 - a simulation, not a secret

"""Simulated runs: one seed gives one course of events, on a clock that jumps.

Trio runs the tasks that are ready in an order it draws at random. Here the draw comes from the
seed, so another seed tries another order, and the same seed the same again. What happens is written
into a trace, by which two runs can be compared:

    async def play(simulation: Simulation) -> int:
        async with simulation.open_system(spec) as system:
            return await system.ref("root/account").ask(Balance())

    run = simulate(play, seed=7)
    assert simulate(play, seed=7).trace == run.trace

A run must do without threads, sockets, processes and the real clock, and draw by chance only from
``Simulation.chance``. This file alone touches the two hooks of Trio that it takes, which are not
public: the random source of the scheduler, and the switch that makes its order hang on that alone.
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
"""Happenings of a trace that are kept; older ones are dropped, and still part of its digest."""
SHOWN = 20
"""The last happenings that a failed run shows."""


@attrs.frozen
class Happening:
    """One thing that happened ``at`` so many seconds after the start of the run.

    ``kind`` is "started", "crashed", "ended" or "teardown_cut" of a life, "message" when one is
    taken in hand, "timer" when one is due, or whatever ``Simulation.note`` was given.
    """

    at: float
    kind: str
    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.kind} {self.path} {self.detail}".rstrip()


@attrs.frozen
class Trace:
    """What happened in one run, in order; equal if all of it is, the dropped part included."""

    happenings: tuple[Happening, ...] = attrs.field(eq=False, repr=False)
    count: int
    digest: str

    def __str__(self) -> str:
        return "\n".join(map(str, self.happenings))


@attrs.frozen
class Run(Generic[T]):
    """A run that came to its end with ``value``."""

    seed: int
    value: T
    trace: Trace


class Simulation:
    """One run under way. ``chance`` is for the choices that its script makes."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = _source(seed, "script")
        self._pauses = _source(seed, "pauses")
        self._happenings: deque[Happening] = deque(maxlen=KEPT)
        self._count = 0
        self._digest = hashlib.sha256()

    def open_system(
        self, spec: SupervisorSpec, *, observer: Observer | None = None
    ) -> AbstractAsyncContextManager[System]:
        """Like ``actors.open_system``, with pauses drawn from the seed, and traced."""
        return open_system(spec, observer=observer, chance=self._pauses, tracer=self.note)

    def note(self, kind: str, path: str, detail: str = "") -> None:
        """Write something of the script's own into the trace."""
        happening = Happening(trio.current_time(), kind, path, detail)
        self._happenings.append(happening)
        self._count += 1
        self._digest.update(f"{happening}\n".encode())

    @property
    def trace(self) -> Trace:
        """What happened so far."""
        return Trace(tuple(self._happenings), self._count, self._digest.hexdigest())


def simulate(play: Callable[[Simulation], Awaitable[T]], *, seed: int) -> Run[T]:
    """Run ``play`` in a Trio loop of its own, on a mock clock that starts at 0.

    What it raises is raised, with a note that names the seed and ends with what happened last.
    Raises ``MisuseError`` if this version of Trio has not the hooks that a seed needs.
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
    last = [str(happening) for happening in trace.happenings[-SHOWN:]]
    head = (
        f"to replay: simulate(..., seed={simulation.seed}); the last {len(last)} of {trace.count}:"
    )
    return "\n  ".join([head, *last])


@contextmanager
def seeded_scheduling(seed: int) -> Iterator[None]:
    """Let Trio's scheduler draw from ``seed`` until the block ends."""
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
    """The module of Trio that holds both hooks."""
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
    """A random source of its own; a text as seed does not hang on Python's hash seed."""
    return random.Random(f"{seed}/{purpose}")  # noqa: S311 - a simulation, not a secret

"""Slow steps: code that blocked the loop, reported as an event.

Trio runs one task at a time, from one checkpoint to the next: a *step*. During a step nothing else
runs, so stops and time limits have no effect, and nothing can interrupt it. It is therefore
reported afterwards. Only another thread can see the stack of a running step: that is for debugging.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from time import perf_counter
from types import FrameType

import attrs
import trio

SLOW_STEP_S = 0.1
"""The duration, in seconds, from which a step is slow."""

CHECK_EVERY_S = 0.05
"""The longest time, in seconds, between two looks of the watchdog at the running step."""

FRAMES_SHOWN = 50
"""The number of innermost frames of a stack that are reported."""

# Trio's function that runs steps; the frames outside of it are the same for every step.
_RUNS_STEPS = "unrolled_run"


@attrs.frozen(kw_only=True)
class SlowStep:
    """A step that blocked the loop for ``duration_s`` seconds of real time.

    ``path`` is the actor or supervisor that the task (a helper task, too) belongs to; empty for a
    task outside the tree. ``stack`` is the stack at the moment the step became slow, innermost call
    last; empty without debugging, or if the code did not let another thread run.
    """

    path: str
    task: str
    duration_s: float
    stack: str = ""


SlowStepObserver = Callable[[SlowStep], None]
"""Called by Trio between two steps: it must be quick and must not raise."""


@contextlib.contextmanager
def watched_steps(
    report: SlowStepObserver | None, path_of: Callable[[trio.lowlevel.Task], str], *, debug: bool
) -> Iterator[None]:
    """Report every slow step of the current loop until the block ends; ``debug`` adds its stack.

    Steps are measured in real time, also on a mock clock. If ``report`` is None, nothing is
    measured.
    """
    if report is None:
        yield
        return
    watch = _StepWatch(report, path_of)
    trio.lowlevel.add_instrument(watch)
    try:
        with _Watchdog(watch) if debug else contextlib.nullcontext() as watch.watchdog:
            yield
    finally:
        with contextlib.suppress(KeyError):  # Trio itself removes one whose report raised
            trio.lowlevel.remove_instrument(watch)


class _StepWatch(trio.abc.Instrument):
    """The instrument that measures steps."""

    # These methods run around every step, twice for each message that wakes a task.

    def __init__(
        self, report: SlowStepObserver, path_of: Callable[[trio.lowlevel.Task], str]
    ) -> None:
        self._report = report
        self._path_of = path_of
        self.began = math.inf  # no step is under way
        self.watchdog: _Watchdog | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.began = perf_counter()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if perf_counter() - self.began > SLOW_STEP_S:
            self._report_step(task, perf_counter() - self.began)
        self.began = math.inf

    def _report_step(self, task: trio.lowlevel.Task, duration_s: float) -> None:
        stack = "" if self.watchdog is None else self.watchdog.stack_of(self.began)
        self._report(
            SlowStep(path=self._path_of(task), task=task.name, duration_s=duration_s, stack=stack)
        )


class _Watchdog:
    """A thread that records the stack of the loop's thread, once per slow step."""

    def __init__(self, watch: _StepWatch) -> None:
        self._watch = watch
        self._watched = threading.get_ident()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="actors-watchdog", daemon=True)
        # The start of the step whose stack was recorded last, and the stack. Two threads use them,
        # so one assignment sets both.
        self._seen = (math.nan, traceback.StackSummary())

    def __enter__(self) -> _Watchdog:
        with contextlib.suppress(RuntimeError):  # the limit of threads: steps have no stacks then
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def stack_of(self, began: float) -> str:
        """Return the stack of the step that began at ``began``, or an empty text."""
        seen_at, stack = self._seen
        return "".join(stack.format()).rstrip() if seen_at == began else ""

    def _look(self) -> None:
        while not self._is_over.wait(self._until_next_look()):
            began = self._watch.began
            if perf_counter() - began > SLOW_STEP_S and began != self._seen[0]:
                self._see(began)

    def _until_next_look(self) -> float:
        began = self._watch.began
        left = began + SLOW_STEP_S - perf_counter()
        return left if 0 < left < CHECK_EVERY_S else CHECK_EVERY_S

    def _see(self, began: float) -> None:
        # If the step ends meanwhile, the recorded stack is not used.
        frame = sys._current_frames().get(self._watched)
        if frame is not None:
            self._seen = (began, _stack_of(frame))


def _stack_of(frame: FrameType) -> traceback.StackSummary:
    """Return the frames of one step, innermost last; source lines are read only for a report."""
    inner = itertools.takewhile(
        lambda each: each[0].f_code.co_name != _RUNS_STEPS, traceback.walk_stack(frame)
    )
    shown = itertools.islice(inner, FRAMES_SHOWN)
    stack = traceback.StackSummary.extract(shown, lookup_lines=False)
    stack.reverse()
    return stack

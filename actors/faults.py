"""Fault points: named places in the code where a test injects faults.

A point is a constant in the package whose code passes it, listed in that package's table; its name
is ``<unit>.<step>.<before|after>``. A plan maps a pass of a point to a fault, counts all passes,
and is armed inside a ``with`` block:

    plan = Plan({("actor.setup.before", 2): Crash()})
    with armed(plan, RUNTIME):
        ...                          # the second set-up of an actor crashes
    plan.hits["actor.setup.before"]  # how often that point was passed

A pass may have a *subject* (the class of the actor, the name of the file): a plan may then name
the point and the subject, ``actor.receive.before[Counter]``, and only those passes are counted.

Points are the only state that all systems of a process share: tests that arm them must not run
beside others in one process. One that is not armed costs a look at an attribute.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import attrs
import trio

from actors.errors import InjectedCrash, MisuseError

_NAME = re.compile(r"[a-z_]+\.[a-z_]+\.(before|after)")
_PLACE = re.compile(r"(?P<point>[^[]+)(\[[^]]+\])?")  # a point, and perhaps a subject


@attrs.frozen
class Crash:
    """Raise ``InjectedCrash``."""


@attrs.frozen
class Raise:
    """Raise the result of ``make``: an ``OSError`` with an errno, say."""

    make: Callable[[], BaseException]


@attrs.frozen
class Delay:
    """Wait ``seconds`` on Trio's clock. Only for points that may wait."""

    seconds: float


@attrs.frozen
class Block:
    """Block the whole loop for ``seconds`` of real time, as blocking code does."""

    seconds: float


@attrs.frozen
class Kill:
    """End this process with SIGKILL, without any cleanup."""


Fault = Crash | Raise | Delay | Block | Kill


class FaultPoint:
    """One place. ``plan`` is None unless it is armed; code on a hot path looks at that itself."""

    __slots__ = ("may_wait", "name", "plan")

    def __init__(self, name: str, *, may_wait: bool) -> None:
        self.name = name
        self.may_wait = may_wait
        self.plan: Plan | None = None

    def hit(self, subject: str = "") -> None:
        """Pass the point, with ``subject``."""
        if self.plan is not None:
            self.plan.strike(self, subject)

    def delay(self, subject: str = "") -> float:
        """Pass the point; return the seconds for which the caller has to wait, mostly 0."""
        return 0.0 if self.plan is None else self.plan.strike(self, subject)

    async def reach(self, subject: str = "") -> None:
        """Pass the point where there is time to wait. No checkpoint unless a delay strikes."""
        delay_s = 0.0 if self.plan is None else self.plan.strike(self, subject)
        if delay_s > 0:
            await trio.sleep(delay_s)


class FaultTable:
    """All points of one package, by name."""

    def __init__(self) -> None:
        self._points: dict[str, FaultPoint] = {}

    def point(self, name: str, *, may_wait: bool = False) -> FaultPoint:
        """Enter a new point. ``may_wait`` where a task of its own passes it with ``reach``."""
        if _NAME.fullmatch(name) is None:
            raise MisuseError(f"{name!r} is no fault point: say <unit>.<step>.<before|after>")
        if name in self._points:
            raise MisuseError(f"there is a fault point {name!r} already")
        point = self._points[name] = FaultPoint(name, may_wait=may_wait)
        return point

    def __iter__(self) -> Iterator[FaultPoint]:
        return iter(self._points.values())

    @property
    def names(self) -> list[str]:
        """The names of all points, in the order they were entered."""
        return list(self._points)


class Plan:
    """The faults by the name of the point and the number of its pass, from 1.

    ``hits`` counts the passes since the plan was made: those of ``point`` and, beside them, those
    of ``point[subject]``.
    """

    def __init__(self, faults: Mapping[tuple[str, int], Fault] | None = None) -> None:
        self.faults = dict(faults or {})
        self.hits: Counter[str] = Counter()

    def strike(self, point: FaultPoint, subject: str = "") -> float:
        """Count a pass; raise its fault, or return the seconds to wait."""
        names = [point.name, f"{point.name}[{subject}]"] if subject else [point.name]
        self.hits.update(names)
        for name in names:
            fault = self.faults.get((name, self.hits[name]))
            if fault is not None:
                return _strike(fault, f"at {name}, pass {self.hits[name]}")
        return 0.0


def _strike(fault: Fault, where: str) -> float:
    match fault:
        case Crash():
            raise InjectedCrash(where)
        case Raise(make):
            raise make()
        case Kill():
            os.kill(os.getpid(), signal.SIGKILL)
            return 0.0
        case Block(seconds):
            time.sleep(seconds)
            return 0.0
        case Delay(seconds):
            return seconds


@contextmanager
def armed(plan: Plan, *tables: FaultTable) -> Iterator[Plan]:
    """Arm ``plan`` at the points of ``tables`` until the block ends.

    Raises ``MisuseError`` if the plan names an unknown point, has a delay for a point that cannot
    wait, or another plan is armed.
    """
    points = {point.name: point for table in tables for point in table}
    _check(plan, points)
    for point in points.values():
        point.plan = plan
    try:
        yield plan
    finally:
        for point in points.values():
            point.plan = None


def _check(plan: Plan, points: Mapping[str, FaultPoint]) -> None:
    for (name, occurrence), fault in plan.faults.items():
        place = _PLACE.fullmatch(name)
        point = None if place is None else points.get(place["point"])
        if point is None:
            raise MisuseError(f"there is no fault point {name!r}; there are {', '.join(points)}")
        if occurrence < 1:
            raise MisuseError(f"pass {occurrence} of {name}: the first pass is 1")
        if isinstance(fault, Delay) and not point.may_wait:
            raise MisuseError(f"{name} cannot wait: only a crash or an error can strike there")
    if any(point.plan is not None for point in points.values()):
        raise MisuseError("another plan is armed: only one at a time can be")


RUNTIME = FaultTable()
"""The points of the actor runtime."""

DELIVER_BEFORE = RUNTIME.point("mailbox.deliver.before")
"""A message is about to be queued; the sender gets the fault, the message is not there."""
DELIVER_AFTER = RUNTIME.point("mailbox.deliver.after")
"""The message is queued; the sender gets the fault all the same."""
SETUP_BEFORE = RUNTIME.point("actor.setup.before", may_wait=True)
SETUP_AFTER = RUNTIME.point("actor.setup.after", may_wait=True)
RECEIVE_BEFORE = RUNTIME.point("actor.receive.before", may_wait=True)
RECEIVE_AFTER = RUNTIME.point("actor.receive.after", may_wait=True)
TEARDOWN_BEFORE = RUNTIME.point("actor.teardown.before", may_wait=True)
"""Struck by an error, the actor's own ``teardown`` does not run."""
TEARDOWN_AFTER = RUNTIME.point("actor.teardown.after", may_wait=True)
START_BEFORE = RUNTIME.point("supervisor.start.before")
"""A supervisor is about to start an incarnation of a child, the first or a later one."""
START_AFTER = RUNTIME.point("supervisor.start.after")
RESTART_BEFORE = RUNTIME.point("supervisor.restart.before")
"""A supervisor is about to start an incarnation after the first."""
RESTART_AFTER = RUNTIME.point("supervisor.restart.after")
STOP_BEFORE = RUNTIME.point("supervisor.stop.before")
"""A supervisor is about to ask a child to stop."""
STOP_AFTER = RUNTIME.point("supervisor.stop.after")

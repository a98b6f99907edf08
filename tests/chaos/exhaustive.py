"""Ring 1: one scenario with each fault at each place.

The scenario is run undisturbed first, to count how often each place is passed. Then it is run once
for every strike. After each run, whether the process died or continued, the power fails: from every
image of the disk that is legal at that moment, the real recovery must find what was promised.
Recovery is also killed at each of its own calls and run again from every image that this leaves:
with the same result.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import attrs
from structlog.testing import capture_logs

from actors import describe
from actors.faults import Crash, Delay, Fault, FaultPoint, FaultTable, Plan, Raise, armed
from actors.simulate import Simulation, simulate
from tests.chaos.machine.disk_faults import disk_fault
from tests.chaos.machine.disk_images import MAX_PRODUCT, legal_images, sampled_images
from tests.chaos.machine.disk_model import DiskModel, Image, cached_image
from tests.chaos.machine.simulated_disk import (
    ANY,
    Die,
    DiskFault,
    DiskPlan,
    ProcessDied,
    SimulatedDisk,
)
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.strikes import DISK_PREFIX, STALL_S, Kind, Strike, all_strikes

SECOND_PRODUCT = 64
"""The number of images of one tree of names to try after a death inside recovery."""


@attrs.define
class Evidence:
    """The log of clients: ``confirmed`` is promised, ``tried`` may have happened."""

    tried: list[Any] = attrs.field(factory=list)
    confirmed: list[Any] = attrs.field(factory=list)
    proof: Any = None
    """Further evidence of the scenario, such as the lines that its commands wrote themselves."""


class QuietPlan(Plan):
    """A plan that can be paused."""

    is_quiet = False

    def strike(self, point: FaultPoint, subject: str = "") -> float:
        return 0.0 if self.is_quiet else super().strike(point, subject)


class World:
    """The disk of a scenario, its flusher, and the log of its clients."""

    def __init__(self, disk: SimulatedDisk, simulation: Simulation, plan: QuietPlan) -> None:
        self.disk = disk
        self.flusher = SimulatedFlusher(disk)
        self.simulation = simulation
        self.evidence = Evidence()
        self._plan = plan

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Count no passes of fault points, and let none strike, until the block ends."""
        self._plan.is_quiet = True
        try:
            yield
        finally:
            self._plan.is_quiet = False

    def tries(self, what: object) -> None:
        """Record the start of an operation, unless the process is dead. Repeats do not count."""
        if not self.disk.is_dead and self.evidence.tried[-1:] != [what]:
            self.evidence.tried.append(what)

    def confirm(self, what: object) -> None:
        """Record that a client got the confirmation of an operation."""
        if not self.disk.is_dead:
            self.evidence.confirmed.append(what)


class Scenario(Protocol):
    """A piece of work whose promises are checked. Its code above the disk is the real one."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def image(self) -> Image:
        """The disk at the start."""

    @property
    def tables(self) -> Sequence[FaultTable]:
        """The fault points that may strike."""

    @property
    def subjects(self) -> Sequence[str]:
        """The actors (subjects) at which the fault points of the runtime may strike."""

    @property
    def recovers_durably(self) -> bool:
        """Whether the result of recovery survives a loss of power during recovery."""

    @property
    def shows_only_durable(self) -> bool:
        """Whether a power loss right after a restart keeps the state that the restart found."""

    async def play(self, world: World) -> None:
        """Do the work until all is confirmed; a refused client tries again."""

    def recover(self, disk: SimulatedDisk) -> object:
        """Return the state that the real recovery finds on a disk."""

    def check(self, evidence: Evidence, found: Any, *, killed: bool) -> Iterable[str]:
        """Yield a sentence for each broken promise. ``killed``: only the process has ended."""


@attrs.frozen
class Effort:
    """The size of the search: every n-th strike, image, and image inside which recovery dies.

    Recovery dies at every ``call_step``-th of its calls; every ``left_step``-th image that this
    leaves is tried. ``max_product``: the most images of one tree of names made by combining
    contents. ``places``: the beginnings of the places that are struck; none for all.
    """

    strike_step: int = 1
    image_step: int = 1
    second_step: int = 1
    call_step: int = 1
    left_step: int = 1
    max_product: int = MAX_PRODUCT
    stop_at_violation: bool = False
    places: tuple[str, ...] = ()


@attrs.frozen
class Violation:
    """A broken promise, with its strike and image."""

    scenario: str
    strike: Strike | None
    what: str
    image: Image

    def __str__(self) -> str:
        held = {path: content for path, content in self.image.items() if content is not None}
        return f"{self.scenario}, {self.strike or 'undisturbed'}: {self.what}\n    disk: {held}"


@attrs.define
class Findings:
    """The counts of a search, and its violations."""

    scenario: str
    figures: Counter[str] = attrs.field(factory=Counter)
    kinds: Counter[Kind] = attrs.field(factory=Counter)
    hits: dict[str, int] = attrs.field(factory=dict)
    violations: list[Violation] = attrs.field(factory=list)


@attrs.frozen
class Outcome:
    """The result of one run: the disk, the evidence, and the number of passes of each place."""

    disk: SimulatedDisk
    evidence: Evidence
    hits: Mapping[str, int]
    failure: str = ""
    """The error of a run that ended neither normally nor by a death."""


@attrs.frozen
class RecoveryFailed:
    """The result of a recovery that raised an error."""

    error: str


class Exploration:
    """The search through one scenario. ``seed`` sets the order in which tasks run."""

    def __init__(self, scenario: Scenario, effort: Effort | None = None, *, seed: int = 1) -> None:
        self._scenario = scenario
        self._effort = effort or Effort()
        self._seed = seed
        self._found: dict[frozenset[tuple[str, bytes | None]], object] = {}
        self._killed_inside: set[frozenset[tuple[str, bytes | None]]] = set()
        self._image_numbers = itertools.count(1)
        self._left_numbers = itertools.count(1)
        self.findings = Findings(scenario.name)

    def explore(self) -> Findings:
        """Try every strike, as far as the effort allows."""
        undisturbed = self.run(None)
        self.findings.hits = dict(undisturbed.hits)
        self._examine(None, undisturbed)
        may_wait = {point.name: point.may_wait for each in self._scenario.tables for point in each}
        strikes = list(all_strikes(undisturbed.hits, may_wait))
        self.findings.figures["places x passes"] = sum(undisturbed.hits.values())
        self.findings.figures["places x passes x kinds"] = len(strikes)
        step = self._effort.strike_step
        if self._effort.places:
            strikes = [each for each in strikes if each.place.startswith(self._effort.places)]
        for strike in strikes[self._seed % step :: step]:
            if self.findings.violations and self._effort.stop_at_violation:
                break
            self.findings.figures["strikes"] += 1
            self.findings.kinds[strike.kind] += 1
            self._examine(strike, self.run(strike))
        return self.findings

    def examine(self, strike: Strike | None) -> Findings:
        """Run the scenario with this strike and check every image that it may leave."""
        self._examine(strike, self.run(strike))
        return self.findings

    def run(self, strike: Strike | None) -> Outcome:
        """Run the scenario once, with this strike."""
        disk = SimulatedDisk(self._scenario.image)
        disk.plan = DiskPlan(_disk_faults(strike))
        plan = QuietPlan(_point_faults(strike, disk))
        worlds: list[World] = []

        async def play(simulation: Simulation) -> None:
            worlds.append(World(disk, simulation, plan))
            await self._scenario.play(worlds[0])

        failure = ""
        with armed(plan, *self._scenario.tables), capture_logs():
            try:
                simulate(play, seed=self._seed)
            except* ProcessDied:
                pass
            except* Exception as errors:
                failure = f"the run failed: {describe(errors)}"
        hits = {f"{DISK_PREFIX}{call}": n for call, n in disk.plan.hits.items() if call != ANY}
        hits |= {name: n for name, n in plan.hits.items() if self._strikes(name)}
        return Outcome(disk, worlds[0].evidence, hits, failure)

    def _strikes(self, name: str) -> bool:
        """Return whether the point may strike: in the runtime only at the scenario's actors."""
        point, _, subject = name.partition("[")
        if point.startswith(("actor.", "mailbox.", "supervisor.")):
            return subject.removesuffix("]") in self._scenario.subjects
        return not subject

    # Images after a loss of power.

    def _examine(self, strike: Strike | None, outcome: Outcome) -> None:
        model, evidence = outcome.disk.model, outcome.evidence
        if outcome.failure and not outcome.disk.is_dead:
            self._report(strike, outcome.failure, cached_image(model))
        self._check(strike, evidence, cached_image(model), killed=True)
        for image in self._images(model, self._image_numbers, self._effort.image_step):
            self._check(strike, evidence, image, killed=False)
        if self._scenario.shows_only_durable:
            self._live_on(strike, outcome.disk)

    def _live_on(self, strike: Strike | None, killed: SimulatedDisk) -> None:
        """Check a restart after a kill: the restarted process finds the content of the cache."""
        killed.model.close_all()
        disk = SimulatedDisk()
        disk.model = killed.model
        found = self._recover(disk)
        if isinstance(found, RecoveryFailed):
            self._report(strike, f"recovery failed: {found.error}", cached_image(disk.model))
            return
        for image in self._images(disk.model, self._left_numbers, self._effort.left_step):
            self.findings.figures["images of a next life"] += 1
            if self._recovered(image) != found:
                self._report(strike, f"what a next life has shown is lost: {found}", image)

    def _check(
        self, strike: Strike | None, evidence: Evidence, image: Image, *, killed: bool
    ) -> None:
        self.findings.figures["images"] += 1
        found = self._recovered(image)
        if isinstance(found, RecoveryFailed):
            self._report(strike, f"recovery failed: {found.error}", image)
            return
        for what in self._scenario.check(evidence, found, killed=killed):
            self._report(strike, what, image)
        key = frozenset(image.items())
        if key not in self._killed_inside:
            self._killed_inside.add(key)
            if len(self._killed_inside) % self._effort.second_step == 0:
                self._kill_inside(strike, image, found)

    def _recovered(self, image: Image) -> object:
        """Return the result of recovery from an image; each image is recovered once."""
        key = frozenset(image.items())
        if key not in self._found:
            self.findings.figures["different images"] += 1
            self._found[key] = self._recover(SimulatedDisk(image))
        return self._found[key]

    def _recover(self, disk: SimulatedDisk) -> object:
        with capture_logs():
            try:
                return self._scenario.recover(disk)
            except Exception as error:
                return RecoveryFailed(describe(error))

    def _kill_inside(self, strike: Strike | None, image: Image, expected: object) -> None:
        """Kill recovery before each of its calls, then recover from every possible image."""
        probe = SimulatedDisk(image)
        self._recover(probe)
        for number in range(1, probe.plan.hits[ANY] + 1, self._effort.call_step):
            disk = SimulatedDisk(image)
            disk.plan = DiskPlan({(ANY, number): Die()})
            self.findings.figures["deaths inside recovery"] += 1
            try:
                self._recover(disk)
            except* ProcessDied:
                pass
            for left in self._left_by(disk):
                self.findings.figures["images after those"] += 1
                found = self._recovered(left)
                if found != expected:
                    what = f"recovery, killed before its call {number}, finds {found}"
                    self._report(strike, f"{what}, and not {expected}", left)

    def _left_by(self, disk: SimulatedDisk) -> Iterable[Image]:
        yield cached_image(disk.model)
        if self._scenario.recovers_durably:
            step = self._effort.left_step
            yield from self._images(disk.model, self._left_numbers, step, SECOND_PRODUCT)

    def _images(
        self, model: DiskModel, numbers: Iterator[int], step: int, max_product: int = MAX_PRODUCT
    ) -> Iterator[Image]:
        max_product = min(max_product, self._effort.max_product)
        if step == 1:
            return legal_images(model, max_product=max_product)
        return sampled_images(model, numbers, step, max_product=max_product)

    def _report(self, strike: Strike | None, what: str, image: Image) -> None:
        self.findings.figures["violations"] += 1
        if len(self.findings.violations) < 20:
            self.findings.violations.append(Violation(self._scenario.name, strike, what, image))


def _disk_faults(strike: Strike | None) -> dict[tuple[str, int], DiskFault]:
    if strike is None or strike.call is None:
        return {}
    return {(strike.call, strike.number): disk_fault(strike.kind)}


def _point_faults(strike: Strike | None, disk: SimulatedDisk) -> dict[tuple[str, int], Fault]:
    if strike is None or strike.call is not None:
        return {}
    return {(strike.place, strike.number): _point_fault(strike.kind, disk)}


def _point_fault(kind: Kind, disk: SimulatedDisk) -> Fault:
    match kind:
        case Kind.DIE:
            return Raise(disk.die)
        case Kind.CRASH:
            return Crash()
        case Kind.STALL:
            return Delay(STALL_S)
        case Kind.ENOSPC:
            return Raise(_os_error(errno.ENOSPC))
        case _:
            return Raise(_os_error(errno.EIO))


def _os_error(code: int) -> Callable[[], OSError]:
    return partial(OSError, code, os.strerror(code))

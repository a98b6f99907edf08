"""One desk of a daemon on a simulated disk and clock: its lives, and a client that asks it."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Container
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar

import attrs
import trio
import trio.testing

from actors import AskError, ChildSpec, Request, SupervisorSpec, System
from actors.errors import InjectedCrash, RestartsExhausted, StartFailed
from actors.simulate import Simulation
from actors.system import LifeCycleEvent
from aegis.clock import utc_text
from aegis.errors import AegisError
from tests.chaos.machine.disk_images import drawn_image, legal_images
from tests.chaos.machine.disk_model import DiskModel, Image, cached_image
from tests.chaos.machine.simulated_disk import DiskFault, DiskPlan, Fail, SimulatedDisk
from tests.chaos.reproducible import BEGIN

T = TypeVar("T")

EMPTY: Image = {"/": None, "/state": None}
SETTLED_S = 0.2
"""Longer than all syncs and calls take that follow from one event, shorter than any timer."""

WRITES = frozenset({"write", "fdatasync", "ftruncate"})


class RefusingDisk(DiskPlan):
    """A disk whose calls named in ``refuses`` fail with ``ENOSPC``; ``refused`` counts them."""

    refuses: Container[str] = ()
    refused = 0

    def strike(self, call: str) -> DiskFault | None:
        """Count the call; fail it if it is refused."""
        planned = super().strike(call)
        if call not in self.refuses:
            return planned
        self.refused += 1
        return Fail(errno.ENOSPC)

    def refuse_one(self, call: str, number: int) -> None:
        """Refuse one call of this name: the next one if the ``number`` is 1."""
        self.faults[call, self.hits[call] + number] = Fail(errno.ENOSPC)


@attrs.define
class Answer(Generic[T]):
    """The answer to a request that a test does not wait for: None until it is there, ``at``."""

    value: T | Any = None
    error: Exception | None = None
    at: float = 0.0
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    @property
    def has_come(self) -> bool:
        return self.value is not None or self.error is not None

    def give_up(self) -> None:
        """Stop waiting."""
        self.scope.cancel()


class SimulatedDaemon(ABC):
    """One state directory with the lives of a daemon, and a client of its actor ``desk``."""

    intensity = 3
    """The restarts of its actors in a short time, beyond which it ends."""

    def __init__(self, simulation: Simulation, desk: str) -> None:
        self.chance = simulation.chance
        self.plan = RefusingDisk()
        self.disk = SimulatedDisk(EMPTY, self.plan)
        self.system: System
        self.own_crashes: list[Exception] = []
        """Why its actors have crashed, apart from what is planned; one fails the test."""
        self._simulation = simulation
        self._desk = desk
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery

    @abstractmethod
    def actors(self) -> tuple[ChildSpec, ...]:
        """Return the actors of a life that begins now on ``disk``."""

    @abstractmethod
    def dies(self) -> None:
        """Forget what only the life that ends now knew."""

    # Lives of the daemon.

    async def start(self) -> None:
        """Start the daemon on what is on the disk."""
        await self._nursery.start(self._live)

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        spec = SupervisorSpec(name="root", children=self.actors(), intensity=self.intensity)
        with trio.CancelScope() as self._scope:
            opened = self._simulation.open_system(spec, observer=self._observe)
            async with opened as self.system:
                task_status.started()
                await trio.sleep_forever()

    def _observe(self, event: LifeCycleEvent) -> None:
        error, killed = event.error, self._scope.cancel_called
        # A killed life does no cleanup, and a supervisor ends by a crash that was seen before.
        if killed or error is None or isinstance(error, StartFailed | RestartsExhausted):
            return
        if not self.is_planned(event.path, error):
            self.own_crashes.append(error)

    def is_planned(self, path: str, error: Exception) -> bool:
        """Return whether the actor at ``path`` may crash by this error: one that a test injects."""
        return has_part(error, InjectedCrash)

    async def stop(self, *, power_fails: bool = False, draws: bool = False) -> None:
        """Kill the daemon; ``power_fails``: only synced data is left, or what chance ``draws``."""
        model = self.disk.model
        if power_fails and draws:
            image = drawn_image(model, self.chance.randrange)
        elif power_fails:
            image = next(iter(legal_images(model)))
        else:
            image = dict(cached_image(model))
        self.disk = SimulatedDisk(image, self.plan)  # the cleanup of the killed one changes nothing
        self.dies()
        self._scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

    async def restart(self, *, power_fails: bool = False, draws: bool = False) -> None:
        await self.stop(power_fails=power_fails, draws=draws)
        await self.start()
        await self.settles()

    async def draws_trouble(self) -> None:
        """Have the disk refuse a call or all for a while, or kill the daemon, if chance says so."""
        drawn = self.chance.random()
        if drawn < 0.15:
            call = self.chance.choice(["write", "fsync", "rename", "open", "unlink", "fdatasync"])
            self.plan.refuse_one(call, self.chance.randrange(1, 12))
        elif drawn < 0.25:
            self.plan.refuses = WRITES
            await self.passes(self.chance.choice([1, 70]))
            self.plan.refuses = ()
            await self.passes(10)
        elif drawn < 0.35:
            await self.restart(power_fails=self.chance.random() < 0.5, draws=True)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        async with trio.open_nursery() as self._nursery:
            await self.start()
            yield self
            for error in self.own_crashes:
                raise AssertionError(f"an actor crashes by itself: {error!r}") from error
            self._nursery.cancel_scope.cancel()

    async def settles(self) -> None:
        """Wait until all that follows from the last event has happened, apart from timers."""
        await trio.sleep(SETTLED_S)

    async def passes(self, seconds: float) -> None:
        """Let time pass."""
        await trio.sleep(seconds)
        await self.settles()

    async def yields(self) -> None:
        """Let all tasks run that can, without time passing."""
        await trio.testing.wait_all_tasks_blocked()

    def in_seconds(self, seconds: float) -> str:
        """Return a moment, ISO 8601."""
        return utc_text(BEGIN + timedelta(seconds=trio.current_time() + seconds))

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition, which is looked at every millisecond."""
        with trio.fail_after(60):
            while not condition():  # noqa: ASYNC110 -- of the simulated clock
                await trio.sleep(0.001)

    # A client.

    async def ask(self, request: Request[T]) -> T:
        return await self.system.ref(self._desk).ask(request, timeout=10_000)

    def ask_soon(self, request: Request[T]) -> Answer[T]:
        """Ask without waiting for the answer."""
        answer: Answer[T] = Answer()

        async def wait() -> None:
            try:
                with answer.scope:
                    answer.value = await self.ask(request)
            except (AegisError, AskError) as error:
                answer.error = error
            answer.at = trio.current_time()

        self._nursery.start_soon(wait)
        return answer

    @asynccontextmanager
    async def gives_up(self) -> AsyncIterator[None]:
        """Give up waiting inside the block once everything has settled."""
        with trio.move_on_after(SETTLED_S):
            yield

    async def refused(self, request: Request[Any]) -> AegisError:
        """Return the error with which a request is refused."""
        try:
            answer = await self.ask(request)
        except AegisError as error:
            return error
        raise AssertionError(f"it is not refused: {answer}")

    async def refusal(self, request: Request[Any]) -> str:
        """Return why a request is refused."""
        return str(await self.refused(request))

    # The disk.

    def files(self) -> list[str]:
        return [path for path in cached_image(self.disk.model) if path.endswith(".jsonl")]

    def refuse_to_open(self, name: str) -> None:
        """Refuse to open the ledger of this name; none if it is empty."""
        opens = DiskModel.open

        def refusing(path: str, *arguments: Any, **more: Any) -> int:
            if name and path.endswith(name):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return opens(self.disk.model, path, *arguments, **more)

        self.disk.model.open = refusing  # type: ignore[method-assign]


def has_part(error: Exception, kind: type[Exception]) -> bool:
    """Return whether an error, or a part of it, is of this kind."""
    if isinstance(error, ExceptionGroup):
        return any(has_part(each, kind) for each in error.exceptions)
    return isinstance(error, kind)

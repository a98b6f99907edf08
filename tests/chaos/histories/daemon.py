"""One process of a simulated daemon: its tree, and its death at any moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import AskError, System
from actors.simulate import Simulation
from aegis.inboxes.router import EndWaits
from aegis.terminals.directory.directory import EndAllTerminals
from aegis.terminals.retry import ask_across_restarts
from tests.chaos.checking.observations import Death, DeathKind
from tests.chaos.histories.tree import STATE, simulated_tree
from tests.chaos.machine.disk_model import DiskModel
from tests.chaos.machine.simulated_disk import DiskPlan, ProcessDied, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_processes import Machine, SimulatedProcess
from tests.chaos.notebook import Notebook

END_TERMINALS_S = 1.4
"""The time, in seconds, in which the terminals end, as in a real daemon."""


class _MortalDisk(SimulatedDisk):
    """A disk that calls ``on_death`` when the process dies at a call.

    ``on_loss`` is called with the path of each file before it is replaced or deleted.
    """

    def __init__(
        self,
        model: DiskModel,
        plan: DiskPlan,
        on_death: Callable[[], None],
        on_loss: Callable[[Path], None],
    ) -> None:
        super().__init__(plan=plan)
        self.model = model
        self._on_death = on_death
        self._on_loss = on_loss

    def rename(self, old: Path, new: Path) -> None:
        self._on_loss(new)
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._on_loss(path)
        super().unlink(path)

    def die(self) -> ProcessDied:
        self._on_death()
        return super().die()


class SimulatedDaemon:
    """The daemon of incarnation ``book.life``, on ``machine`` and on the disk ``model``.

    ``on_loss`` is called with the path of each file before it is replaced or deleted.
    """

    def __init__(
        self,
        simulation: Simulation,
        machine: Machine,
        model: DiskModel,
        plan: DiskPlan,
        book: Notebook,
        scratch: Path,
        on_loss: Callable[[Path], None],
    ) -> None:
        self.machine = machine
        self.disk = _MortalDisk(model, plan, partial(self.die, "kill"), on_loss)
        self.death: DeathKind | None = None
        self.draw = 0
        self._host = SimulatedHost(machine, scratch)
        self._scratch = scratch
        self._simulation = simulation
        self._book = book
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the daemon is dead, or has stopped."""
        return self.death is not None

    def start_soon(self, work: Callable[..., Any], *args: object) -> None:
        """Run ``work`` beside the daemon until its end or stop; afterwards do nothing."""
        if self._nursery is not None and not self.is_over:
            self._nursery.start_soon(work, *args)

    def shell_of(self, terminal: str) -> SimulatedProcess | None:
        """Return the shell of a terminal, or None."""
        beginning = f"{STATE.root}/{terminal}/"
        for each in self.machine.alive:
            leads = each.pid == each.session and each.tty is not None
            if leads and each.cookie is not None and each.cookie.startswith(beginning):
                return each
        return None

    def die(self, kind: DeathKind, *, draw: int = 0) -> None:
        """End at once, by a kill or a loss of power. Idempotent."""
        if self.is_over:
            return
        self._over(kind)
        self.draw = draw
        self._host.kill(lingers=kind == "kill")
        self.disk.is_dead = True
        self._scope.cancel()

    def _over(self, kind: DeathKind) -> None:
        self.death = kind
        self._book.deaths.append(Death(life=self._book.life, kind=kind, moment=self._book.moment()))

    async def live(self, body: Callable[[System], Awaitable[None]]) -> None:
        """Start, run ``body`` beside the tree, and then stop in order; or die meanwhile.

        Raises any error that ends the tree other than a death.
        """
        try:
            with self._scope:
                await self._live(body)
        except BaseException as error:
            if self.is_over and not _is_of_others(error):
                return
            raise

    async def _live(self, body: Callable[[System], Awaitable[None]]) -> None:
        tree = simulated_tree(SimulatedFlusher(self.disk), self._host, self._scratch)
        async with self._simulation.open_system(tree) as system:
            async with trio.open_nursery() as self._nursery:
                await body(system)
                self._nursery.cancel_scope.cancel()
            self._nursery = None
            await self._stop(system)

    async def _stop(self, system: System) -> None:
        self._book.lives[-1] = attrs.evolve(self._book.lives[-1], stopping=True)
        directory = system.registry.find("service", "terminals")
        if directory is not None:
            try:
                await ask_across_restarts(directory, EndAllTerminals(), timeout=END_TERMINALS_S)
            except AskError as error:
                self._simulation.note("late", "terminals", str(error))
        system.ref("root/inbox-router").tell(EndWaits())

    def stopped(self) -> None:
        """Record the end of an ordered stop."""
        self._over("stop")


def _is_of_others(error: BaseException) -> bool:
    """Return whether the error is no consequence of a death: the user's Ctrl-C, for example."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_of_others, error.exceptions))
    return not isinstance(error, Exception | ProcessDied)

"""The faults of a script: armed in time, and counted when they strike."""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs
import trio

from actors import InjectedCrash
from actors.faults import Delay, Fault, FaultPoint, Plan, Raise
from tests.chaos.checking.observations import Disturbance, Harm, Span
from tests.chaos.histories import script as s
from tests.chaos.histories.canvas_steps import edit_at_once, file_of
from tests.chaos.machine.disk_faults import disk_fault
from tests.chaos.machine.simulated_agent import AgentWorld, agents_on
from tests.chaos.machine.simulated_disk import DiskFault, DiskPlan
from tests.chaos.machine.simulated_processes import SimulatedProcess
from tests.chaos.machine.simulated_workflow import is_workflow
from tests.chaos.notebook import Notebook
from tests.chaos.strikes import STALL_S, Kind

if TYPE_CHECKING:
    from tests.chaos.histories.daemon import SimulatedDaemon

DISTURBED_S = 1.0
"""The time, in seconds, in which crashed actors restart and refused writes are tried again."""

TIMED = (
    s.KillFault | s.PowerLossFault | s.ShellKilledFault | s.AgentKilledFault | s.WorkflowKilledFault
)


class TroubledDiskPlan(DiskPlan):
    """Faults of the disk by call and number; ``on_hit`` is called at each strike."""

    def __init__(self, on_hit: Callable[[Kind], None]) -> None:
        super().__init__()
        self._on_hit = on_hit
        self._due: dict[tuple[str, int], tuple[DiskFault, Kind]] = {}

    def arm(self, call: str, ahead: int, kind: Kind) -> None:
        """Let ``kind`` strike a future call of this name, the next being 1."""
        self._due[call, self.hits[call] + ahead] = (disk_fault(kind), kind)

    def disarm(self) -> None:
        """Disarm all faults."""
        self._due.clear()

    def strike(self, call: str) -> DiskFault | None:
        """Count a call; return the fault that is due at it."""
        number = self.hits[call] = self.hits[call] + 1
        due = self._due.pop((call, number), None)
        if due is None:
            return None
        fault, kind = due
        self._on_hit(kind)
        return fault


class TroubledPlan(Plan):
    """Faults of fault points by place and number; ``on_hit`` is called at each strike."""

    def __init__(self, on_hit: Callable[[Kind], None]) -> None:
        super().__init__()
        self._on_hit = on_hit
        self._due: dict[tuple[str, int], tuple[Fault, Kind]] = {}
        self._interludes: dict[tuple[str, int], Callable[[], None]] = {}

    def arm(self, place: str, ahead: int, fault: Fault, kind: Kind) -> None:
        """Let ``fault`` strike a future pass of this place, the next being 1."""
        self._due[place, self.hits[place] + ahead] = (fault, kind)

    def interrupt(self, place: str, ahead: int, act: Callable[[], None]) -> None:
        """Let another program act at a future pass of this place, the next being 1."""
        self._interludes[place, self.hits[place] + ahead] = act

    def disarm(self) -> None:
        """Disarm all faults."""
        self._due.clear()

    def strike(self, point: FaultPoint, subject: str = "") -> float:
        """Count a pass; raise the fault that is due, or return the seconds to wait."""
        delay_s = self._pass(point.name)
        return delay_s + (self._pass(f"{point.name}[{subject}]") if subject else 0.0)

    def _pass(self, name: str) -> float:
        number = self.hits[name] = self.hits[name] + 1
        act = self._interludes.pop((name, number), None)
        if act is not None:
            act()
        due = self._due.pop((name, number), None)
        if due is None:
            return 0.0
        fault, kind = due
        self._on_hit(kind)
        match fault:
            case Delay(seconds):
                return seconds
            case Raise(make):
                raise make()
            case _:
                raise InjectedCrash(f"at {name}, pass {number}")


class Trouble:
    """The faults of ``script``. ``hits`` counts those that struck, by kind."""

    def __init__(self, script: s.Script, book: Notebook, agents: AgentWorld) -> None:
        self._agents = agents
        agents.on_failed_start = partial(self._count, "agent not started")
        self.hits: Counter[str] = Counter()
        self.edits = 0
        """The number of edits by another program in the middle of an exchange."""
        self.disk_plan = TroubledDiskPlan(self._disk_hit)
        self.plan = TroubledPlan(self._point_hit)
        self._deaf: set[int] = set()
        self._coming = list(script.faults)
        self._timed: list[TIMED] = []
        self._lasting: list[Disturbance] = []
        self._book = book
        self._daemon: SimulatedDaemon | None = None

    @property
    def count(self) -> int:
        """Return the number of strikes."""
        return self.hits.total()

    def meet(self, daemon: SimulatedDaemon) -> None:
        """Connect a new daemon: later faults strike this one."""
        self._daemon = daemon

    def begin(self) -> None:
        """Start the faults that are due, once the daemon is ready."""
        for fault in self._timed:
            self._start(fault)

    def end_life(self) -> None:
        """Disconnect the dead daemon, and end its disturbances."""
        for harm in list(self._lasting):
            self._is_over(harm)

    def step(self, number: int) -> None:
        """Arm the faults of a step that begins."""
        while self._coming and self._coming[0].step <= number:
            self._let_go_wrong(self._coming.pop(0))

    def keeps_from_reading(self, client: int) -> bool:
        """Return whether this client does not read its inbox."""
        is_deaf = client in self._deaf
        if is_deaf:
            self.hits["never reads"] += 1
        return is_deaf

    def end(self) -> None:
        """Disarm everything for the rest of the run."""
        self._coming.clear()
        self._timed.clear()
        self._agents.unstartable = 0
        self.disk_plan.disarm()
        self.plan.disarm()

    def _let_go_wrong(self, fault: s.ScriptFault) -> None:
        match fault:
            case s.UnstartableFault(starts=starts):
                self._agents.unstartable += starts
            case s.ForgottenFault(draw=draw):
                self.hits["conversation lost"] += self._agents.forget(draw)
            case s.OutsideEditFault():
                place = f"{fault.place}[{file_of(fault.canvas)}]"
                self.plan.interrupt(place, fault.number, partial(self._edit, fault))
            case (
                s.KillFault()
                | s.PowerLossFault()
                | s.ShellKilledFault()
                | s.AgentKilledFault()
                | s.WorkflowKilledFault()
            ):
                self._timed.append(fault)
                self._start(fault)
            case s.DiskFault(call=call, number=number, kind=kind):
                self.disk_plan.arm(call, number, kind)
            case s.PointFault(place=place, number=number, kind=kind):
                self.plan.arm(place, number, self._point_fault(kind), kind)
            case s.ShellStoppedFault():
                self._in_life(self._stop_shell, fault)
            case s.NeverReadsFault(client=client):
                self._deaf.add(client)

    def _count(self, kind: str) -> None:
        self.hits[kind] += 1

    def _in_life(self, work: Callable[..., object], *args: object) -> None:
        if self._daemon is not None:
            self._daemon.start_soon(work, *args)

    def _start(self, fault: TIMED) -> None:
        self._in_life(self._strike_later, fault)

    async def _strike_later(self, fault: TIMED) -> None:
        await trio.sleep(fault.after_s)
        daemon = self._daemon
        assert daemon is not None
        self._timed.remove(fault)
        match fault:
            case s.KillFault():
                self.hits["kill"] += 1
                daemon.die("kill")
            case s.PowerLossFault(draw=draw):
                self.hits["power loss"] += 1
                daemon.die("power loss", draw=draw)
            case s.ShellKilledFault(terminal=terminal):
                self._kill_shell(daemon, terminal)
            case s.AgentKilledFault(draw=draw):
                self._kill_agent(daemon, draw)
            case s.WorkflowKilledFault(draw=draw):
                self._kill_workflow(daemon, draw)

    def _edit(self, fault: s.OutsideEditFault) -> None:
        """Edit the file of a canvas as another program, in the middle of a step of the daemon."""
        assert self._daemon is not None
        token = f"@between.{fault.step * 100 + fault.number}@"
        edit_at_once(self._daemon.disk.model, self._book, fault, token)
        self.edits += 1

    def _kill_workflow(self, daemon: SimulatedDaemon, draw: int) -> None:
        found = [each for each in daemon.machine.alive if is_workflow(each.cookie or "")]
        if found:
            self.hits["workflow killed"] += 1
            found[draw % len(found)].take(signal.SIGKILL)

    def _kill_agent(self, daemon: SimulatedDaemon, draw: int) -> None:
        agents = agents_on(daemon.machine)
        if agents:
            self.hits["agent killed"] += 1
            agents[draw % len(agents)].take(signal.SIGKILL)

    # Shells.

    def _kill_shell(self, daemon: SimulatedDaemon, terminal: str) -> None:
        shell = daemon.shell_of(terminal)
        if shell is not None:
            self._harmed("shell killed", terminal, signal.SIGKILL)
            shell.take(signal.SIGKILL)

    async def _stop_shell(self, fault: s.ShellStoppedFault) -> None:
        assert self._daemon is not None
        shell = self._daemon.shell_of(fault.terminal)
        if shell is None:
            return
        self._harmed("shell stopped", fault.terminal, signal.SIGSTOP)
        shell.take(signal.SIGSTOP)
        await self._go_on_later(shell, fault.seconds)

    async def _go_on_later(self, shell: SimulatedProcess, seconds: float) -> None:
        try:
            await trio.sleep(seconds)
        finally:
            shell.take(signal.SIGCONT)

    def _harmed(self, harm: Harm, terminal: str, number: int) -> None:
        self.hits[harm] += 1
        span = self._book.point()
        self._book.disturbances.append(
            Disturbance(kind=harm, terminal=terminal, span=span, number=number)
        )

    # The disk, and fault points.

    def _disk_hit(self, kind: Kind) -> None:
        self.hits[f"disk: {kind.value}"] += 1
        if kind is not Kind.DIE:
            self._disturb("disk fault")

    def _point_hit(self, kind: Kind) -> None:
        self.hits[f"fault point: {kind.value}"] += 1
        if kind is Kind.CRASH:
            self._disturb("crash")
        elif kind is not Kind.DIE:
            self._disturb("disk fault")

    def _disturb(self, harm: Harm) -> None:
        """Record a disturbance of unknown place for a while."""
        lasting = Disturbance(kind=harm, terminal=None, span=Span(self._book.moment()))
        self._lasting.append(lasting)
        self._in_life(self._is_over_soon, lasting)

    async def _is_over_soon(self, lasting: Disturbance) -> None:
        await trio.sleep(DISTURBED_S)
        self._is_over(lasting)

    def _is_over(self, lasting: Disturbance) -> None:
        self._lasting.remove(lasting)
        span = Span(lasting.span.asked, self._book.moment())
        self._book.disturbances.append(attrs.evolve(lasting, span=span))

    def _point_fault(self, kind: Kind) -> Fault:
        match kind:
            case Kind.DIE:
                return Raise(self._death)
            case Kind.STALL:
                return Delay(STALL_S)
            case Kind.ENOSPC | Kind.EIO:
                return Raise(partial(_os_error, kind))
            case _:
                return Raise(partial(InjectedCrash, "a fault of the script"))

    def _death(self) -> BaseException:
        assert self._daemon is not None
        return self._daemon.disk.die()


def _os_error(kind: Kind) -> OSError:
    code = errno.ENOSPC if kind is Kind.ENOSPC else errno.EIO
    return OSError(code, os.strerror(code))

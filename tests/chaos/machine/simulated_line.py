"""``SimulatedLine``: a simulated agent's process with the interface of ``LineProcess``.

The guard is modelled too: it ends the tree of an agent a moment after the daemon was killed, unless
it was killed with it (``SimulatedHost.guard``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol
from unittest import mock

import attrs
import trio

from aegis.agents.directory.programs import Programs
from aegis.agents.directory.roster import Member
from aegis.agents.drivers.harness import Frame
from aegis.agents.drivers.tui import TuiPlan
from aegis.agents.sessions.session import Owner
from aegis.processes.guarded.guarded_process import Launch
from aegis.processes.guarded.line_process import LineSettings
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import ROUNDS, SHORT_ROUNDS, Round, end_processes
from tests.chaos.machine.simulated_agent import AgentWorld, SimulatedClaude, agents_on, session_of
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_processes import SimulatedProcess
from tests.chaos.machine.simulated_tty import Bell

START_S = 0.05
"""The longest time, in seconds, that the start of a process takes."""

RESUME = "--resume="


class LineProgram(Protocol):
    """A simulated program that speaks frames."""

    output: deque[Frame]
    has_output: Bell

    def take(self, frame: Frame) -> None:
        """Take a frame of the daemon."""

    def end_input(self) -> None:
        """Learn that no further frame comes."""


class SimulatedLine:
    """A running program, as ``LineProcess`` documents it."""

    def __init__(
        self,
        agent: LineProgram,
        process: SimulatedProcess,
        cookie: str,
        scan: ProcessScan,
        on_over: trio.Event,
    ) -> None:
        self._agent = agent
        self._process = process
        self._cookie = cookie
        self._scan = scan
        self._on_over = on_over
        self.position = 0
        self.noise = 0

    @property
    def exit_code(self) -> int | None:
        """The status of the process."""
        return self._process.status

    def stderr_tail(self) -> str:
        """Return nothing: no simulated agent writes to standard error."""
        return ""

    def end_reason(self, agent: str) -> str:
        """Return one sentence on why the process ended."""
        return f"{agent} ended with the status {self._process.status}"

    async def run(self) -> None:
        """Wait for the end of the process."""
        await self._process.ended.wait()
        self._on_over.set()

    async def read(self) -> list[Frame] | None:
        """Return the next frames; None at the end."""
        while not self._agent.output:
            if not self._process.is_alive:
                return None
            with trio.CancelScope() as waiting:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_cancel_after, self._process.ended, waiting)
                    await self._agent.has_output.wait()
                    waiting.cancel()
        frames = list(self._agent.output)
        self._agent.output.clear()
        self.position += len(frames)
        return frames

    async def read_whole(self) -> list[Frame] | None:
        """Return as ``read``: no simulated frame is too large."""
        return await self.read()

    def put(self, frame: Frame) -> None:
        """Write a frame, unless the process has ended."""
        host = self._scan.host
        assert isinstance(host, SimulatedHost)
        if self._process.is_alive and not host.is_dead:
            self._agent.take(frame)

    async def flushed(self) -> None:
        """Wait for nothing: the program has every frame at once."""
        await trio.lowlevel.checkpoint()

    async def close(self, eof_s: float) -> tuple[str, ...]:
        """End the agent and its processes, by the end of its input if there is time."""
        if eof_s > 0:
            self._agent.end_input()
            with trio.move_on_after(eof_s):
                await self._process.ended.wait()
        return await self._end(ROUNDS)

    async def end_at_once(self) -> None:
        """Kill all processes."""
        await self._end(SHORT_ROUNDS)
        await self.release()

    async def _end(self, rounds: Sequence[Round]) -> tuple[str, ...]:
        left = await end_processes([], [self._cookie], rounds, self._scan)
        return tuple(map(str, left))

    async def release(self) -> None:
        """Reap the process."""
        await trio.lowlevel.checkpoint()
        if not self._process.is_alive:
            self._process.machine.reap(self._process)


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _start(
    world: AgentWorld, launch: Launch, settings: LineSettings, scan: ProcessScan, over: trio.Event
) -> SimulatedLine:
    host = scan.host
    assert isinstance(host, SimulatedHost)
    machine = host.machine
    with trio.CancelScope(shield=True):
        await trio.sleep(machine.chance.uniform(0, START_S))
    if host.is_dead:
        await trio.sleep_forever()
    resumed = [each.removeprefix(RESUME) for each in launch.argv if each.startswith(RESUME)]
    session = session_of(launch.cookie)
    is_fork = "--fork-session" in launch.argv
    agent = SimulatedClaude(world, session, resumed[0] if resumed else None, is_fork=is_fork)
    agent.starts(tuple(str(each.info) for each in agents_on(machine, session)))
    process = machine.start(agent.main, launch.argv, cwd=str(launch.cwd), cookie=launch.cookie)
    host.guard(launch.cookie)
    return SimulatedLine(agent, process, launch.cookie, scan, over)


@attrs.frozen(kw_only=True)
class _SimulatedPlan(TuiPlan):
    """A plan whose command is the same in each run: that of the scratch directory is not."""

    @property
    def command(self) -> str:
        return f"sh {self.directory.name}"


@contextmanager
def simulated_agents(world: AgentWorld, scratch: Path | None = None) -> Iterator[None]:
    """Start agents on simulated machines inside the block.

    ``scratch`` is a real directory for what a take-over's program reads, if there are any: a
    session's own directory is on a simulated disk.
    """
    plan = Programs.tui_of

    async def tui_of(
        self: Programs,
        member: Member,
        cwd: str,
        directory: Path,
        launch: int,
        conversation: str,
        owner: Owner | None,
    ) -> TuiPlan:
        assert scratch is not None
        real = scratch / directory.name
        real.mkdir(exist_ok=True)
        made = await plan(self, member, cwd, real, launch, conversation, owner)
        return _SimulatedPlan(**attrs.asdict(made, recurse=False))

    with (
        mock.patch("aegis.agents.drivers.driver.start_process", partial(_start, world)),
        mock.patch.object(Programs, "tui_of", tui_of),
    ):
        yield

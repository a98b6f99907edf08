"""Short scripts for a real or simulated bash, with the resulting marks, outputs and exit."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs
import trio

from actors.simulate import Simulation, simulate
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_host import ProcessHost, ShellProcess
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import COOKIE_VARIABLE
from aegis.processes.reaper import end_processes
from aegis.terminals.hooks import bash
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.parse.osc133 import Mark, MarkParser, Text
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_processes import Machine

HANG_S = 60

LOST_S = 5.0
"""The time in seconds after which a Ctrl-C without effect counts as lost."""

PLAY = Path(__file__).with_name("play.sh")


@attrs.frozen
class Run:
    """Submit a text, and wait for the next prompt."""

    text: str


@attrs.frozen
class Submit:
    """Submit a text."""

    text: str


@attrs.frozen
class Keys:
    """Type keys."""

    keys: bytes


@attrs.frozen
class Until:
    """Wait for this text in the output after the last match."""

    text: bytes


@attrs.frozen
class Prompt:
    """Wait for the end mark and the next prompt."""


@attrs.frozen
class Begun:
    """Wait for the mark of a command's start."""


@attrs.frozen
class Exit:
    """Wait until the shell has ended."""


@attrs.frozen
class Drop:
    """Clear the line with Ctrl-C."""


Step = Run | Submit | Keys | Until | Prompt | Begun | Exit | Drop


@attrs.frozen(kw_only=True)
class Course:
    """The result of a script.

    ``marks`` are all marks in order, without their secret; ``outputs`` the text between the first C
    and the D of each command; ``status`` the exit status of the shell, if it ended.
    """

    marks: Sequence[bytes]
    outputs: Sequence[bytes]
    status: int | None


class ScriptedShell:
    """The player of scripts at one shell, with the results."""

    def __init__(self, process: ShellProcess, adapter: ShellAdapter) -> None:
        self.process = process
        self._adapter = adapter
        self._parser = MarkParser(adapter.secret)
        self._marks: list[Mark] = []
        self._outputs: list[bytes] = []
        self._output: bytes | None = None
        self._everything = b""
        self._places: list[int] = []
        self._seen = 0
        self._marks_seen = 0
        self._grew = trio.Event()
        self._at_end = trio.Event()
        self._status: int | None = None
        self.cuts: list[tuple[float, int]] = []

    async def pump(self) -> None:
        try:
            while data := await self.process.read():
                self.cuts.append((trio.current_time(), len(data)))
                for event in self._parser.feed(data):
                    self._take(event)
                self._grew.set()
                self._grew = trio.Event()
        except trio.ClosedResourceError:
            return
        finally:
            self._at_end.set()

    def _take(self, event: object) -> None:
        if isinstance(event, Text):
            self._everything += event.data
            if self._output is not None:
                self._output += event.data
        elif isinstance(event, Mark):
            self._marks.append(event)
            self._places.append(len(self._everything))
            if event.kind == "C" and self._output is None:
                self._output = b""
            elif event.kind == "D" and self._output is not None:
                self._outputs.append(self._output)
                self._output = None

    async def play(self, script: Sequence[Step]) -> Course:
        with trio.fail_after(HANG_S):
            await self._prompted()
            for step in script:
                await self._do(step)
        # The simulated shell does not offer to do without the submit key (``e=1``).
        marks = [re.sub(rb";h=[0-9]+|;e=1", _without_number, mark.visible) for mark in self._marks]
        return Course(marks=marks, outputs=self._outputs, status=self._status)

    async def _do(self, step: Step) -> None:
        match step:
            case Run(text):
                await self.process.write(self._adapter.encode(text))
                await self._prompted()
            case Submit(text):
                await self.process.write(self._adapter.encode(text))
            case Keys(keys):
                self._adapter.want_typed(wanted=True)
                await self.process.write(keys)
            case Until(text):
                await self._until(lambda: text in self._everything[self._seen :])
                self._seen = self._everything.index(text, self._seen) + len(text)
            case Prompt():
                await self._prompted()
            case Begun():
                await self._marked("C")
            case Exit():
                self._status = await self.process.wait()
                await self._at_end.wait()  # its last marks may not have been read yet
            case Drop():
                await self._drop_line()

    async def _prompted(self) -> None:
        await self._marked("D")
        await self._marked("B")

    async def _drop_line(self) -> None:
        """Press Ctrl-C until the line is dropped: a real bash may lose one that comes too soon."""
        while not self._at_end.is_set():
            await self.process.write(b"\x03")
            with trio.move_on_after(LOST_S):
                await self._prompted()
                return

    async def _marked(self, kind: str) -> None:
        """Wait for the next mark of this kind, after the last match."""
        kinds = [mark.kind for mark in self._marks]
        while kind not in kinds[self._marks_seen :]:
            await self._grew.wait()
            kinds = [mark.kind for mark in self._marks]
        self._marks_seen = kinds.index(kind, self._marks_seen) + 1
        self._seen = self._places[self._marks_seen - 1]

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            await self._grew.wait()


def _without_number(found: re.Match[bytes]) -> bytes:
    return b";h" if found.group().startswith(b";h") else b""


async def play_at(
    host: ProcessHost, directory: Path, script: Sequence[Step], env: Mapping[str, str]
) -> tuple[Course, list[tuple[float, int]]]:
    """Play a script at a new bash of ``host``, and remove its files.

    Return the result, and the moments of its reads with their numbers of bytes.
    """
    hook = directory / "hook"
    hook.mkdir(mode=0o700)
    adapter = bash.prepare("bash", hook)
    process = await host.open_pty_process(
        adapter.argv, cwd=str(directory), env=env, rows=24, cols=80, open_files=None
    )
    shell = ScriptedShell(process, adapter)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shell.pump)
            course = await shell.play(script)
            nursery.cancel_scope.cancel()
        return course, shell.cuts
    finally:
        process.close()
        with trio.CancelScope(shield=True):
            cookies, scan = [env[COOKIE_VARIABLE]], ProcessScan(host)
            assert await end_processes([process.pid], cookies, scan=scan) == []
            await process.wait()


def play_real(directory: Path, script: Sequence[Step]) -> Course:
    programs, home = directory / "bin", directory / "home"
    for each in (programs, home):
        each.mkdir(parents=True)
    (programs / "play").symlink_to(PLAY)
    (home / ".bashrc").write_text("PS1='$ '\n")
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "HERE": "t0",
        COOKIE_VARIABLE: f"{directory}/real/life",
    }
    course, _ = trio.run(play_at, OsProcessHost(), home, script, env)
    return course


async def _play_simulated(
    directory: Path, script: Sequence[Step], simulation: Simulation
) -> tuple[Course, list[tuple[float, int]]]:
    async with trio.open_nursery() as nursery:
        host = SimulatedHost(Machine(nursery, simulation.chance))
        env = {"HERE": "t0", COOKIE_VARIABLE: "/root/build/life"}
        played = await play_at(host, directory, script, env)
        assert host.machine.alive == []
        nursery.cancel_scope.cancel()
    return played


def play_simulated(directory: Path, script: Sequence[Step], *, seed: int) -> Course:
    directory.mkdir(parents=True)
    return simulate(partial(_play_simulated, directory, script), seed=seed).value[0]


def cuts_of(directory: Path, script: Sequence[Step], *, seed: int) -> list[tuple[float, int]]:
    """Return the moments and sizes of the reads of a simulated bash that plays a script."""
    directory.mkdir(parents=True)
    return simulate(partial(_play_simulated, directory, script), seed=seed).value[1]

"""A real shell on a real PTY, driven through the real hook, parser and boundaries."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any, TypeAlias, TypeVar

import attrs
import pytest
import trio

from aegis.processes.foreground import program_of
from aegis.processes.pty import PtyProcess, open_pty_process
from aegis.processes.reaper import end_processes
from aegis.terminals.hooks import bash, zsh
from aegis.terminals.hooks.adapter import PROBE_S, ShellAdapter
from aegis.terminals.hooks.submission import HEED_KEY
from aegis.terminals.parse.boundaries import (
    AcceptedLine,
    Boundaries,
    BoundaryEvent,
    CommandBegin,
    CommandEnd,
    LineReport,
    NoCommand,
    OutputEnded,
    OutputResumed,
    PromptShown,
    ShellPhase,
)
from aegis.terminals.parse.osc133 import Event, Mark, MarkParser, PasteMode, Text

T = TypeVar("T")

_POLLS = {"7", "271"} if platform.machine() == "x86_64" else {"73"}

HANG_S = 60.0
"""A guard against hanging, far above what anything here takes."""


@attrs.frozen
class Outcome:
    """How one submission ended: its last event, and what was printed for it."""

    end: BoundaryEvent
    output: str

    @property
    def exit(self) -> int | None:
        assert isinstance(self.end, CommandEnd | NoCommand)
        return self.end.exit


class LiveShell:
    """What a shell's owner does, in small: pump, submit, type, and look at what happened."""

    def __init__(self, process: PtyProcess, adapter: ShellAdapter) -> None:
        self.process = process
        self.adapter = adapter
        self.secret = adapter.secret
        self.directory = adapter.directory
        self.boundaries = Boundaries()
        self.everything = b""
        self.marks: list[Mark] = []
        self.submits_by_key = False
        self._parser = MarkParser(adapter.secret)
        self.output = ""
        self._output = b""
        self._of_earlier_lines = b""
        self._output_has_ended = False
        self._grew = trio.Event()
        self._send, self._receive = trio.open_memory_channel[BoundaryEvent](100_000)

    async def pump(self) -> None:
        with suppress(trio.ClosedResourceError):
            while data := await self.process.read():
                for event in self._parser.feed(data):
                    self._take(event)
                self._grew.set()
                self._grew = trio.Event()
        self._send.close()

    def _take(self, event: Event) -> None:
        if isinstance(event, Text):
            self.everything += event.data
            self._output += event.data
        elif isinstance(event, PasteMode):
            self._happened(self.boundaries.paste_mode(event.on))
        else:
            self.marks.append(event)
            self._happened(self.boundaries.mark(event))

    def _happened(self, events: list[BoundaryEvent]) -> None:
        for event in events:
            if isinstance(event, CommandBegin | AcceptedLine):
                self._output = b""
            if isinstance(event, CommandBegin | PromptShown):
                self._output_has_ended = False
            if isinstance(event, CommandEnd | NoCommand | OutputEnded):
                if not self._output_has_ended:
                    self.output = self._read_output()
                self._output_has_ended = isinstance(event, OutputEnded)
                self._of_earlier_lines = self._output
            if isinstance(event, OutputResumed):
                self._output, self._output_has_ended = self._of_earlier_lines, False
            if isinstance(event, NoCommand):
                self.output = self.output.removeprefix("\n")  # the line editor's own
            self._send.send_nowait(event)

    def _read_output(self) -> str:
        return re.sub("\r+\n", "\n", self._output.decode()).lstrip("\r")

    async def expect(self, *kinds: type[T]) -> T:
        """The next event of one of these kinds; others before it are passed over."""
        with trio.fail_after(HANG_S):
            while True:
                event = await self._receive.receive()
                if isinstance(event, kinds):
                    return event

    async def reads(self) -> None:
        """Wait until the shell itself waits for keys: zsh may forget a Ctrl-C that comes before."""
        tty = self.process.line_discipline()
        assert tty is not None
        with trio.fail_after(HANG_S):
            while True:
                found = program_of(self.process.pid, tty.name)
                if found is not None and (found.reads or _polls(self.process.pid)):
                    return
                await trio.sleep(0.01)

    def happened_so_far(self) -> list[BoundaryEvent]:
        events: list[BoundaryEvent] = []
        while True:
            try:
                events.append(self._receive.receive_nowait())
            except trio.WouldBlock:
                return events

    async def submit(self, cmd: str) -> None:
        # Where both keys are right, they are used in turn.
        is_plain = self.boundaries.is_plain and not self.submits_by_key
        self.submits_by_key = not self.submits_by_key
        self.boundaries.submitted()
        if is_plain:
            self.adapter.want_typed(wanted=False)
        encode = self.adapter.encode_on_plain_line if is_plain else self.adapter.encode
        await self._write(encode(cmd))

    async def run(self, cmd: str) -> Outcome:
        """Submit ``cmd`` and wait for its end and the next prompt."""
        await self.submit(cmd)
        end: CommandEnd | NoCommand = await self.expect(CommandEnd, NoCommand)
        while isinstance(end, NoCommand) and not end.submitted:
            end = await self.expect(CommandEnd, NoCommand)
        outcome = Outcome(end, self.output)
        await self.expect(PromptShown)
        return outcome

    async def type(self, keys: str, writer: str = "human:ann") -> None:
        self.adapter.want_typed(wanted=True)
        self.boundaries.keys(writer, keys.encode())
        await self._write(keys.encode())

    async def probe(self) -> LineReport:
        self.boundaries.probed()
        await self._write(self.adapter.probe_key)
        return await self.expect(LineReport)

    async def settle(self) -> None:
        """What an owner does before it submits after uncertain keys.

        A Ctrl-C may take a probe with it that came close behind: it is sent again.
        """
        with trio.fail_after(HANG_S):
            while not self.boundaries.can_submit():
                await trio.sleep(self.adapter.probe_delay_s)
                if (
                    self.boundaries.phase is ShellPhase.PROMPT
                    and self.boundaries.uncertain is not None
                ):
                    self.boundaries.probed()
                    await self._write(self.adapter.probe_key)
                with trio.move_on_after(PROBE_S):
                    if not self.boundaries.can_submit():
                        await self.expect(PromptShown, LineReport)
        self.happened_so_far()

    async def interrupt(self) -> None:
        """What an owner does about text that the shell cannot finish reading."""
        self.boundaries.probed()
        await self._write(self.adapter.interrupt_line)

    async def drop(self) -> None:
        """Drop an incomplete text: the key that enables Ctrl-C, if there is one, then Ctrl-C."""
        self.boundaries.probed()
        keys = self.adapter.interrupts
        if keys[0] == HEED_KEY:
            await self._write(keys[0])
            await self.expect(LineReport)
            keys = keys[1:]
        await self._write(keys[0])

    async def _write(self, data: bytes) -> None:
        with trio.fail_after(HANG_S):
            await self.process.write(data)

    async def drawn(self) -> None:
        """Wait until the prompt is drawn to its end: paste mode is switched on before."""
        with trio.fail_after(HANG_S):
            while not self.marks or self.marks[-1].kind != "B":
                await self._grew.wait()

    async def seen(self, text: str) -> None:
        """Wait until ``text`` came out of the terminal."""
        with trio.fail_after(HANG_S):
            while text.encode() not in self.everything:
                await self._grew.wait()


def _polls(pid: int) -> bool:
    """Whether it sleeps in ``poll``, as the editor of zsh does that watches descriptors."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[0] in _POLLS


StartBash: TypeAlias = Callable[..., Awaitable[LiveShell]]
StartShell: TypeAlias = Callable[..., Awaitable[LiveShell]]


@pytest.fixture
async def start_shell(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[StartShell]:
    """Starts a shell as ``prepare`` of its kind says; ends everything of it afterwards.

    ``files`` are put into its home directory before.
    """
    started: list[LiveShell] = []

    async def start(
        prepare: Callable[[str, Path], ShellAdapter],
        program: str,
        files: Mapping[str, str] | None = None,
        *,
        env: dict[str, str] | None = None,
        prompt: bool = True,
    ) -> LiveShell:
        home = tmp_path / "home"
        for name, text in (files or {}).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        home.mkdir(exist_ok=True)
        state = tmp_path / f"it's a state{len(started)}"
        state.mkdir(mode=0o700)
        adapter = prepare(program, state)
        inherited = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            **(env or {}),
        }
        process = await open_pty_process(
            adapter.argv, cwd=str(home), env=adapter.environment(inherited), rows=24, cols=80
        )
        shell = LiveShell(process, adapter)
        started.append(shell)
        nursery.start_soon(shell.pump)
        if prompt:
            await shell.expect(PromptShown)
        return shell

    yield start
    for shell in started:
        await _end(shell)


async def _end(shell: LiveShell) -> None:
    shell.process.close()
    with trio.fail_after(HANG_S):
        # More than once: the kernel of a busy machine may be late to end what was killed.
        while await end_processes([shell.process.pid], []):
            pass
        await shell.process.wait()


@pytest.fixture
async def start_bash(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[StartBash]:
    """Starts a bash with the given ``.bashrc``; ends everything of it afterwards."""
    started: list[LiveShell] = []

    async def start(
        bashrc: str = "PS1='$ '\n",
        *,
        env: dict[str, str] | None = None,
        directory: str = "state",
        hook: Callable[[str], str] | None = None,
        prompt: bool = True,
    ) -> LiveShell:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / ".bashrc").write_text(bashrc)
        state = tmp_path / directory
        state.mkdir(mode=0o700)
        adapter = bash.prepare("bash", state)
        if hook is not None:
            init = state / bash.INIT_FILE
            init.write_text(hook(init.read_text()))
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        process = await open_pty_process(
            adapter.argv, cwd=str(home), env=variables | (env or {}), rows=24, cols=80
        )
        shell = LiveShell(process, adapter)
        started.append(shell)
        nursery.start_soon(shell.pump)
        if prompt:
            await shell.expect(PromptShown)
        return shell

    yield start
    for shell in started:
        await _end(shell)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment without pip."""
    directory = tmp_path / "a venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    return directory


needs_zsh = pytest.mark.skipif(which("zsh") is None, reason="zsh is not installed")


@pytest.fixture(params=["bash", pytest.param("zsh", marks=needs_zsh)])
def start(request: pytest.FixtureRequest, start_shell: StartShell) -> StartShell:
    """Starts a bash or a zsh with the given start-up file; a test with it runs once on each."""
    prepare, name = {"bash": (bash.prepare, ".bashrc"), "zsh": (zsh.prepare, ".zshrc")}[
        request.param
    ]

    async def start(startup: str = "PS1='$ '\n", **arguments: Any) -> LiveShell:
        return await start_shell(prepare, request.param, {name: startup}, **arguments)

    return start

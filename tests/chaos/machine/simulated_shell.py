"""A bash with the hook, simulated: its line editor, its prompts and marks, its jobs.

The model follows an interactive bash 5.2:

- The hook's file of the secret is read and removed. Without one there are no marks.
- At a prompt: the end mark, paste mode on, the prompt between its marks. A key of the hook draws
  the prompt anew. Enter: paste mode off, one C for each line of the text that holds a command.
- An open quote brings the secondary prompt. Ctrl-C drops the line; where keys wait already, it may
  be kept until the next one, which is lost then (by chance).
- A command runs in a foreground group of its own, the terminal in canonical mode. A death by a
  signal is reported; after a Ctrl-C the rest of its line is dropped. A stopped command is a job,
  and ``exit`` warns of it.
- HUP goes to all jobs, and ends the shell. TERM is ignored.

- ``$NAME``, in capitals, is a variable of its environment; one that is not set stays as it is.

The builtins are ``:``, ``true``, ``false``, ``echo``, ``cd``, ``exit`` and ``kill -s SIGNAL $$``.
Not modelled: the user's own start-up files, editing in the middle of a line, searches, completion,
``!``, notices of background jobs that ended, ``PROMPT_COMMAND`` of others, split standard error.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from tests.chaos.machine.line_editor import Accepted, HookKey, Inserted, Left, LineEditor
from tests.chaos.machine.shell_language import Command, Incomplete, Line, SyntaxFault, read_text
from tests.chaos.machine.shell_marks import ShellMarks
from tests.chaos.machine.simulated_processes import SimulatedProcess
from tests.chaos.machine.simulated_programs import program
from tests.chaos.machine.simulated_tty import SimulatedTty

PROMPT = b"$ "
_SECONDARY = b"> "
_PASTE_ON, _PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l\r"
_REDRAW = b"\r\x1b[K\r"

THINKS_S = 0.003
"""The longest delay, in seconds, before a prompt is drawn, and before a command is run."""

_VARIABLE = re.compile(r"\$([A-Z]+)")

_SUBMITS, _PROBES, _ENABLES_INTERRUPT = (1, 3), (2, 4), 7

_DEATHS = {
    signal.SIGHUP: "Hangup",
    signal.SIGQUIT: "Quit",
    signal.SIGKILL: "Killed",
    signal.SIGUSR1: "User defined signal 1",
    signal.SIGUSR2: "User defined signal 2",
    signal.SIGALRM: "Alarm clock",
    signal.SIGTERM: "Terminated",
}
"""The messages about a command that died by a signal. INT and PIPE have none."""


class _Interrupted(Exception):
    """A Ctrl-C: the shell returns to the prompt."""


class _Leave(Exception):
    """The end of the shell, with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@attrs.frozen
class _Job:
    process: SimulatedProcess
    text: str


class SimulatedBash:
    """One bash, started with its hook in ``directory``; ``main`` is the program of its process."""

    def __init__(
        self, directory: Path, tty: SimulatedTty, variables: Mapping[str, str] | None = None
    ) -> None:
        self._directory = directory
        self._tty = tty
        self._variables = variables or {}
        self._editor = LineEditor()
        self._marks = ShellMarks(b"")
        self._history: list[str] = []
        self._jobs: list[_Job] = []
        self._status = 0
        self._was_interrupted = False
        self._warned = False
        self._leaves_with: int | None = None
        self._builtins: dict[str, Callable[[Sequence[str]], bytes]] = {
            ":": self._true,
            "true": self._true,
            "false": self._false,
            "echo": self._echo,
            "cd": self._cd,
            "exit": self._exit,
            "kill": self._kill,
        }

    async def main(self, process: SimulatedProcess) -> int:
        """Read and run lines until the end of the shell."""
        self._process = process
        process.ignore(signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP)
        process.ignore(signal.SIGTTIN, signal.SIGTTOU)
        process.handle(signal.SIGINT, self._interrupt)
        process.handle(signal.SIGHUP, self._hang_up)
        await self._think()
        self._marks.secret = self._read_secret()
        try:
            while True:
                await self._read_and_run()
        except _Leave as leave:
            return leave.status

    def _read_secret(self) -> bytes:
        path = self._directory / "init.secret"
        try:
            secret = path.read_bytes().strip()
        except OSError:
            return b""
        path.unlink(missing_ok=True)
        return secret

    async def _think(self) -> None:
        await self._process.sleep(self._process.machine.chance.uniform(0, THINKS_S))

    # Signals.

    def _interrupt(self) -> None:
        self._was_interrupted = True
        self._process.changed.ring()
        self._tty.stir()

    def _hang_up(self) -> None:
        for job in self._jobs:
            self._process.machine.signal_group(job.process.group, signal.SIGHUP)
            self._process.machine.signal_group(job.process.group, signal.SIGCONT)
        self._process.die(signal.SIGHUP)

    # Reading.

    async def _read_and_run(self) -> None:
        await self._prompt()
        try:
            text = await self._read_text()
            await self._run_text(text)
        except _Interrupted:
            self._status = 130

    async def _prompt(self) -> None:
        await self._think()
        self._reap_jobs()
        history = len(self._history) + 1
        if self._marks.secret and self._marks.is_typed(history):
            self._keep_typed(history)
        await self._print(self._marks.ended(self._status, history if self._history else 0))
        self._tty.take_keys()
        await self._print(_PASTE_ON + self._marks.prompt(PROMPT))

    def _reap_jobs(self) -> None:
        ended = [job for job in self._jobs if not job.process.is_alive]
        for job in ended:
            self._process.machine.reap(job.process)
            self._jobs.remove(job)

    def _keep_typed(self, history: int) -> None:
        path = self._directory / f"typed.{history}"
        entries = self._history[-1].split("\n")  # as without `cmdhist`: an entry per line
        count = len(entries)
        header = f"1 {count} {count} {self._marks.begun} 0\n"
        lines = [f"{number}\t {entry}\n" for number, entry in enumerate(entries, 1)]
        path.write_text(header + "".join(lines), encoding="utf-8")

    async def _read_text(self) -> list[Line | SyntaxFault]:
        text = await self._read_line(is_first=True)
        while True:
            try:
                return read_text(text)
            except Incomplete:
                await self._print(_PASTE_ON + self._marks.goes_on() + _SECONDARY)
                text = f"{text}\n{await self._read_line(is_first=False)}"

    async def _read_line(self, *, is_first: bool) -> str:
        """Return the next line. Raises ``_Interrupted`` and ``_Leave``."""
        self._tty.take_keys()
        while True:
            await self._heed_interrupt()
            meaning = self._editor.next()
            match meaning:
                case None:
                    await self._read_keys()
                case Inserted(text):
                    await self._print(text.replace(b"\n", b"\n\r"))
                case HookKey(number):
                    await self._hook_key(number, is_first=is_first)
                case Left():
                    await self._print(b"exit\n")
                    raise _Leave(self._status)
                case Accepted(line):
                    await self._print(b"\n" + _PASTE_OFF)
                    return self._remember(line.decode(errors="replace"), is_first=is_first)

    async def _read_keys(self) -> None:
        keys = await self._process.read_unless(lambda: self._was_interrupted)
        if keys is None:
            return
        if not keys:
            raise _Leave(self._status)
        self._editor.feed(keys)

    async def _heed_interrupt(self) -> None:
        if not self._was_interrupted:
            return
        self._was_interrupted = False
        if self._tty.has_input and self._process.machine.chance.random() < 0.5:
            await self._lose_a_key()
        self._editor.drop()
        await self._print(b"^C" + _PASTE_OFF + b"\r\n")
        raise _Interrupted

    async def _lose_a_key(self) -> None:
        """Lose the next key, with the Ctrl-C that was kept until then."""
        self._editor.drop()
        while self._tty.has_input and not self._tty.is_hung_up:
            self._editor.feed(await self._process.read(1))
            if self._editor.next() is not None or not self._editor.has_keys:
                return

    async def _hook_key(self, number: int, *, is_first: bool) -> None:
        if number in _SUBMITS:
            self._marks.submitting()
            self._editor.line = b""
        await self._print(_REDRAW)
        if number == _ENABLES_INTERRUPT:
            await self._print(self._marks.line_report(0))
        if number in _PROBES:
            length = len(self._editor.line.decode(errors="replace"))
            await self._print(self._marks.line_report(length))
        shown = self._marks.prompt(PROMPT) if is_first else self._marks.goes_on() + _SECONDARY
        await self._print(shown + self._editor.line)

    def _remember(self, line: str, *, is_first: bool) -> str:
        if is_first and line:
            self._history.append(line)
        elif line and self._history:
            self._history[-1] = f"{self._history[-1]}\n{line}"
        return line

    # Running.

    async def _run_text(self, lines: Sequence[Line | SyntaxFault]) -> None:
        self._tty.unread(self._editor.give_back())
        self._tty.take_lines()
        await self._think()
        for line in lines:
            if isinstance(line, SyntaxFault):
                await self._print(f"bash: {line}\n".encode())
                self._status = 2
                continue
            await self._print(self._marks.begins())
            try:
                await self._run_line(line)
            except _Interrupted:
                self._status = 130  # the other lines of the text go on

    async def _run_line(self, line: Line) -> None:
        before = ";"
        for command in line:
            await self._stop_if_interrupted()
            if (before == "&&" and self._status) or (before == "||" and not self._status):
                before = command.after
                continue
            await self._run(command)
            before = command.after

    async def _stop_if_interrupted(self) -> None:
        if self._was_interrupted:
            self._was_interrupted = False
            await self._print(b"\n")
            raise _Interrupted

    def _expanded(self, word: str) -> str:
        return _VARIABLE.sub(lambda found: self._variables.get(found[1], found[0]), word)

    async def _run(self, command: Command) -> None:
        command = attrs.evolve(command, words=tuple(map(self._expanded, command.words)))
        name = command.words[0]
        builtin = self._builtins.get(name)
        self._warned = self._warned and name == "exit"
        if builtin is not None:
            await self._print(builtin(command.words[1:]))
            await self._process.pause()
            if self._leaves_with is not None:
                raise _Leave(self._leaves_with)
            return
        main = program(command.words, self._process.machine)
        if main is None:
            await self._print(f"bash: {name}: command not found\n".encode())
            self._status = 127
            return
        child = self._process.machine.fork(
            self._process, main, command.words, in_new_group=True, ignored=()
        )
        if command.after == "&":
            self._jobs.append(_Job(child, str(command)))
            await self._print(f"[{len(self._jobs)}] {child.pid}\n".encode())
            self._status = 0
        else:
            await self._follow(_Job(child, str(command)))

    async def _follow(self, job: _Job) -> None:
        """Keep a command in the foreground until it has ended, or is stopped."""
        self._tty.foreground = job.process.group
        self._jobs.append(job)
        status = await self._process.wait_for(job.process)
        self._tty.foreground = self._process.group
        self._tty.take_lines()
        if status is None:
            await self._stopped(job)
            return
        self._jobs.remove(job)
        if status >= 0:
            self._status = status
            return
        died_by = signal.Signals(-status)
        self._status = 128 + died_by
        if died_by == signal.SIGINT:
            await self._print(b"\n")
            raise _Interrupted
        if died_by in _DEATHS:
            await self._print(f"{_DEATHS[died_by]}\n".encode())

    async def _stopped(self, job: _Job) -> None:
        stopped_by = job.process.stopped_by or signal.SIGTSTP
        self._status = 128 + stopped_by
        number = self._jobs.index(job) + 1
        await self._print(f"\n[{number}]+  Stopped                 {job.text}\n".encode())

    # Builtins: each returns its output, and sets the status.

    def _true(self, words: Sequence[str]) -> bytes:
        self._status = 0
        return b""

    def _false(self, words: Sequence[str]) -> bytes:
        self._status = 1
        return b""

    def _echo(self, words: Sequence[str]) -> bytes:
        self._status = 0
        return " ".join(words).encode() + b"\n"

    def _cd(self, words: Sequence[str]) -> bytes:
        to = Path(self._process.cwd, *words[:1])
        if not to.is_dir():
            self._status = 1
            return f"bash: cd: {words[0]}: No such file or directory\n".encode()
        self._process.cwd, self._status = str(to.resolve()), 0
        return b""

    def _exit(self, words: Sequence[str]) -> bytes:
        stopped = [job for job in self._jobs if job.process.stopped_by is not None]
        if stopped and not self._warned:
            self._warned, self._status = True, 1
            return b"exit\nThere are stopped jobs.\n"
        self._leaves_with = int(words[0]) if words else self._status
        return b"exit\n"

    def _kill(self, words: Sequence[str]) -> bytes:
        """Signal the shell itself: ``-s NAME $$``."""
        self._status = 0
        if len(words) == 3 and words[0] == "-s" and words[2] == "$$":
            self._process.take(signal.Signals[f"SIG{words[1]}"])
            return b""
        self._status = 2
        return b"kill: usage: kill -s SIGNAL $$\n"

    async def _print(self, data: bytes) -> None:
        if data:
            await self._process.write(data)

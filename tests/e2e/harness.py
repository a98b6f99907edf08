"""A real daemon in a process of its own, and what talks to it from outside."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from aegis.client.line import CommandFailed
from aegis.doctor import examination
from aegis.doctor.finding import Finding
from aegis.path_text import text_of_path
from aegis.protocol.table import CALL_AGAIN
from aegis.state.root import open_seals
from aegis.state.sealing import sealed_document
from tests.chaos.real.processes import first_environment
from tests.chaos.real.scratch import ScratchDaemon, wait_readable

KILL_SEEDS = range(int(os.environ.get("AEGIS_KILL_SEEDS", "1")))
"""The seeds of the tests that kill again and again; ``just crash`` has eight of each."""

GUARD_S = 60.0
"""A guard against hanging, far above what anything here takes."""

STOP_WAS_SLOW = '"event": "terminals did not end in time"'

PROGRAM = Path(sys.executable).with_name("aegis-actors")

PLAIN_BASHRC = "PS1='$ '\n"

STARTUP_FILES = {"bash": ".bashrc", "zsh": ".zshrc"}
"""The start-up file that a user has, by shell."""


class DaemonProcess(ScratchDaemon):
    """``aegis-actors up``, by default on a free port.

    Forked from a process that has imported it; with ``is_installed`` the installed program is
    started, which takes a second of CPU.
    """

    startup_files = tuple(STARTUP_FILES.values())
    is_installed = False
    expected: frozenset[str] = frozenset()
    """The subjects of what ``doctor`` may find after a stop: a test has damaged these."""
    patch = ""
    """A statement for the interpreter of the daemon and its clients: other limits, say."""

    def __init__(self, directory: Path, bashrc: str = PLAIN_BASHRC) -> None:
        super().__init__(directory, bashrc)
        self._sent: list[Pending] = []

    @property
    def environment(self) -> dict[str, str]:
        """What the daemon and its clients are started with."""
        path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
        return {**super().environment, "PATH": path, **self.variables}

    @property
    def may_be_forked(self) -> bool:
        # Variables may be for the interpreter itself, or are looked for in /proc.
        is_plain = self.program == [str(PROGRAM)] and not self.variables
        return is_plain and not self.is_installed

    @property
    def program(self) -> list[str]:
        """``aegis-actors``, as it was installed, or the same after ``patch``."""
        if not self.patch:
            return [str(PROGRAM)]
        return [
            sys.executable,
            "-P",
            "-c",
            f"{self.patch}; from aegis.cli.main import main; main()",
        ]

    def launch(self, *options: str, faults: str = "", tracer: Sequence[str] = ()) -> None:
        """Start it, with ``faults`` (as AEGIS_FAULT has them) armed, and do not wait."""
        super().launch(*(options or ("--port", "0")), faults=faults, tracer=tracer)

    def sign(self, path: Path, document: dict[str, Any]) -> None:
        """Write a file of the state as the daemon would."""
        seal = open_seals(str(self.root)).of(str(path))
        path.write_text(json.dumps(sealed_document(document, seal)))

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> int:
        """Stop it in order; then ``doctor`` has nothing to say about what it has written.

        Only in tests of ``tests/e2e``: attacks and harnesses damage the state on purpose.
        """
        code = super().stop(signum)
        if code == 0 and os.environ.get("PYTEST_CURRENT_TEST", "").startswith("tests/e2e/"):
            found = [each for each in examination.examine_state(self.state) if each.remedy]
            unexpected = [each for each in found if each.subject not in self.expected]
            assert not unexpected, unexpected
        return code

    def check_left_nothing(self) -> None:
        """After a stop in order: no process, no endpoint, no failure in the log."""
        assert self.shell_processes() == []
        assert not self.state.endpoint.exists()
        failures = self.failures()
        assert not failures, "\n".join(failures)

    def failures(self) -> list[str]:
        """The lines of the log that tell of an error inside the daemon."""
        # On a machine that is busy with other things a stop gives up waiting for processes to end,
        # says so, and kills them; that none is left is looked at in any case.
        lines = [line for line in self.log.splitlines() if STOP_WAS_SLOW not in line]
        return [line for line in lines if '"error"' in line or not line.startswith("{")]

    def shell_processes(self, name: str = "") -> list[str]:
        """The live processes of the terminal ``name``, or of all of them, by their cookie."""
        return processes_with(f"AEGIS_TERMINAL={text_of_path(self.root)}/{name}")

    def send(self, command: str, /, **arguments: object) -> Pending:
        """One command over a connection of its own, not waited for."""
        self._sent.append(Pending(self.endpoint.socket, command, arguments))
        return self._sent[-1]

    def hang_up(self) -> None:
        """Let go of what was sent and never waited for."""
        while self._sent:
            self._sent.pop().hang_up()

    def look(self, command: str, /, **arguments: object) -> dict[str, Any]:
        """Call a command that only reads, again if the actor of a session has just ended."""
        while True:
            try:
                return self.call(command, **arguments)
            except CommandFailed as error:
                if CALL_AGAIN not in str(error):
                    raise

    def refusal(self, command: str, /, **arguments: object) -> CommandFailed:
        """The error that a command must end with."""
        try:
            reply = self.call(command, **arguments)
        except CommandFailed as error:
            return error
        raise AssertionError(f"{command} was carried out: {reply}")

    def terminal(self, name: str) -> LiveTerminal:
        """The terminal ``name``, spawned unless it is open already: restored, say."""
        infos = {info["name"]: info for info in self.call("term_list")["result"]}
        return LiveTerminal(self, name, infos.get(name) or self.call("term_spawn", name=name))

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``aegis-actors`` with these words, in the root; it fails with a sentence if it fails."""
        done = subprocess.run(
            [*self.program, *words],
            env=self.environment,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        for sign in ("Traceback", "the daemon is of another version"):
            assert sign not in done.stderr, done.stderr
        return done

    def json(self, *words: str) -> Any:
        """What ``aegis-actors WORDS --json`` printed."""
        done = self.cli(*words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def examine(self, *, repair: bool = False) -> dict[str, Finding]:
        """What ``doctor`` finds in the root, by subject; the last of each.

        It leaves out the shells of the machine: they need a daemon of their own.
        """
        with mock.patch.object(examination, "examine_shells", tuple):
            repaired = [*examination.repair(self.state)] if repair else []
            return {each.subject: each for each in (*repaired, *examination.examine(self.state))}


def contents_of(directory: Path) -> dict[Path, bytes]:
    """The contents of all files below a directory, at which a daemon may be at work."""
    while True:
        # A file may be renamed or deleted while it is looked for: its new name must be found.
        with contextlib.suppress(FileNotFoundError):
            return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def processes_with(variable: str) -> list[str]:
    """The live processes whose first environment has an entry that begins with this."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if any(entry.startswith(variable.encode()) for entry in first_environment(process)):
            found.append(f"{process.name} {words.decode(errors='replace')}")
    return found


def command_of(pid: int) -> str:
    """The words of a process; none if it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_ended(pids: Iterable[int]) -> None:
    """Wait until none of these processes runs."""
    deadline = time.monotonic() + GUARD_S
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.01)


class Pending:
    """A request that is under way, on a connection of its own."""

    def __init__(self, path: str, command: str, arguments: dict[str, object]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)  # waits for its place: with a time limit it would not
        self._socket.settimeout(GUARD_S)
        self._lines = self._socket.makefile("rb")
        self._answer: dict[str, Any] | None = None
        self._send(type="request", id=1, command=command, arguments=arguments)

    def _send(self, **frame: object) -> None:
        self._socket.sendall(json.dumps(frame).encode() + b"\n")

    def has_arrived(self) -> Pending:
        """Wait until the daemon has taken the request: a later one was answered before it."""
        self.has_arrived_or_answered()
        assert self._answer is None, self._answer
        return self

    def has_arrived_or_answered(self) -> Pending:
        """Wait until the daemon has taken the request; it may even have answered it."""
        self._send(type="request", id=2, command="term_list", arguments={})
        while (frame := self._next_frame())["id"] == 1:
            self._answer = frame
        assert (frame["id"], frame["type"]) == (2, "reply"), frame
        return self

    def _next_frame(self) -> dict[str, Any]:
        line = self._lines.readline()
        assert line, "the daemon closed the connection"
        frame: dict[str, Any] = json.loads(line)
        return frame

    def result(self) -> dict[str, Any]:
        """Wait for the answer. Raises ``CommandFailed``."""
        frame = self._answer or self._next_frame()
        self.hang_up()
        assert frame["id"] == 1
        if frame["type"] == "error":
            raise CommandFailed(frame["code"], frame["message"])
        result: dict[str, Any] = frame["result"]
        return result

    def result_of_stop(self) -> dict[str, Any] | None:
        """Wait for the answer while the daemon stops; None if there was none.

        That is so if the machine is so busy that the stop gives up waiting for the terminals.
        """
        line = self._lines.readline()
        self.hang_up()
        frame: dict[str, Any] = json.loads(line or '{"type": "lost"}')
        return frame.get("result")

    def outcome(self) -> tuple[str, str]:
        """How it ended: "reply", "error" with its code, or "lost" with the connection."""
        frame = self._answer or json.loads(self._lines.readline() or '{"type": "lost"}')
        self.hang_up()
        return frame["type"], frame.get("code", "")

    def cancel(self) -> None:
        """Tell the daemon that the request is given up; it confirms that."""
        self._send(type="cancel", id=1)
        frame = self._next_frame()
        assert (frame["type"], frame["code"]) == ("error", "cancelled")
        self.hang_up()

    def hang_up(self) -> None:
        """Go away, as a client that was killed."""
        self._lines.close()
        self._socket.close()


class LiveTerminal:
    """A terminal of a daemon, as its clients use it."""

    def __init__(self, daemon: DaemonProcess, name: str, info: dict[str, Any]) -> None:
        self.daemon = daemon
        self.name = name
        self.info = info

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return self.daemon.state.terminals / self.name

    def run(self, cmd: str, timeout: float = GUARD_S, **arguments: object) -> dict[str, Any]:
        return self.daemon.call("term_run", name=self.name, cmd=cmd, timeout=timeout, **arguments)

    def start(self, cmd: str, timeout: float = GUARD_S, **arguments: object) -> Pending:
        """A run that is not waited for."""
        return self.daemon.send("term_run", name=self.name, cmd=cmd, timeout=timeout, **arguments)

    def refusal(self, cmd: str, timeout: float = GUARD_S, **arguments: object) -> CommandFailed:
        """The error that a run must end with."""
        return self.daemon.refusal(
            "term_run", name=self.name, cmd=cmd, timeout=timeout, **arguments
        )

    def keys(self, keys: str, **arguments: object) -> None:
        assert self.daemon.call("term_keys", name=self.name, keys=keys, **arguments) == {"ok": True}

    def wait_editing(self) -> None:
        """Wait until the shell edits a line.

        Before, the tty takes some keys for itself: Ctrl-D, Ctrl-R, Ctrl-V.
        """
        descriptor = os.open(f"/proc/{self.described()['pid']}/fd/0", os.O_RDONLY | os.O_NOCTTY)
        try:
            deadline = time.monotonic() + GUARD_S
            while termios.tcgetattr(descriptor)[3] & termios.ICANON:
                assert time.monotonic() < deadline, "the shell edits no line"
                time.sleep(0.01)
        finally:
            os.close(descriptor)

    def wait_prompt(self) -> bytes:
        """Wait until its log has a prompt behind the newest end of a command; gives the log.

        A run is answered with the end mark of its command: the prompt comes a moment later.
        """
        deadline = time.monotonic() + GUARD_S
        while True:
            raw = self.raw()
            if b"\x1b]133;B" in raw[max(raw.rfind(b"\x1b]133;D"), 0) :]:
                return raw
            assert time.monotonic() < deadline, raw[-300:]
            time.sleep(0.02)

    def read(self, **arguments: object) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self.daemon.call("term_read", name=self.name, **arguments)[
            "result"
        ]
        return result

    def records(self) -> list[dict[str, Any]]:
        """All of its records."""
        return self.read(since_seq=-1)

    def described(self) -> dict[str, Any]:
        """How the list shows it."""
        infos = self.daemon.call("term_list")["result"]
        [info] = [info for info in infos if info["name"] == self.name]
        assert isinstance(info, dict)
        return info

    def subscribe(self, handle: str) -> Wakes:
        self.daemon.call("term_subscribe", name=self.name, from_handle=handle)
        return Wakes(self.daemon, handle)

    def close(self, **arguments: object) -> None:
        closed = self.daemon.call("term_close", name=self.name, **arguments)
        assert closed == {"ok": True, "leftover": []}

    def raw(self) -> bytes:
        """The bytes of its PTY, as the log keeps them."""
        return (self.directory / "raw.log").read_bytes()

    def has_printed(self, line: str) -> None:
        """Wait until its log has this line, which from then on survives a kill of the daemon.

        There is no event to wait for: the log is written in its own time.
        """
        deadline = time.monotonic() + GUARD_S
        while f"{line}\r\n".encode() not in self.raw():
            assert time.monotonic() < deadline, f"{line!r} was not printed"
            time.sleep(0.01)


class Wakes:
    """What comes to the inbox of ``handle``, acknowledged as it is read."""

    def __init__(self, daemon: DaemonProcess, handle: str) -> None:
        self.handle = handle
        self._daemon = daemon
        self._next: str | None = None
        self._waiting: list[dict[str, Any]] = []

    def next(self, timeout: float = GUARD_S) -> dict[str, Any]:
        """The next message."""
        if not self._waiting:
            reply = self._daemon.call("inbox_wait", timeout=timeout, **self._who())
            self._waiting, self._next = reply["messages"], reply["next"]
        assert self._waiting, f"{self.handle} was not woken"
        return self._waiting.pop(0)

    def unread(self) -> list[dict[str, Any]]:
        """Everything that came since."""
        reply = self._daemon.call("inbox_read", **self._who())
        messages: list[dict[str, Any]] = self._waiting + reply["messages"]
        self._waiting, self._next = [], reply["next"] or self._next
        return messages

    def _who(self) -> dict[str, object]:
        after = {} if self._next is None else {"after": self._next}
        return {"from_handle": self.handle, **after}


class Gate:
    """Lets a test decide how long a command runs, without looking at any clock.

    ``reach`` is shell text that says that it runs; ``hold`` waits for ``open`` after that.
    """

    _numbers = itertools.count()

    def __init__(self, directory: Path) -> None:
        number = next(self._numbers)
        paths = [directory / f"{what}{number}" for what in ("reached", "open")]
        for path in paths:
            os.mkfifo(path)
        # Opened for both directions a pipe has always a reader and a writer: nobody blocks.
        self._reached, self._opened = (os.open(path, os.O_RDWR) for path in paths)
        reached, opened = (shlex.quote(str(path)) for path in paths)
        self.reach = f"echo >{reached}"
        self.hold = f"{self.reach}; read -r _ <{opened}"

    def wait_reached(self) -> None:
        """Wait until the command runs."""
        wait_readable(self._reached)
        os.read(self._reached, 1)

    def open(self) -> None:
        """Let the command go on."""
        os.write(self._opened, b"\n")

    def close(self) -> None:
        os.close(self._reached)
        os.close(self._opened)

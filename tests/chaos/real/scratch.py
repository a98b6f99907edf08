"""A real daemon in a process and a directory of its own, to be killed and started again."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aegis.client.line import LineClient, connect
from aegis.faults import VARIABLE
from aegis.state.endpoint import Endpoint, read_endpoint
from aegis.state.registry import StateRegistry
from aegis.state.root import StatePaths
from tests.chaos.checking.outcome_rules import PROMPT
from tests.chaos.real.fork_server import STACKS_SIGNAL, ForkedProcess, fork_server

GUARD_S = 60.0
"""A timeout against hanging, far above the duration of any call here."""

PROGRAM = (sys.executable, "-P", "-c", "from aegis.cli.main import main; main()")
"""``aegis-actors`` as one process from its first instruction on, independent of PATH."""

STACKS_S = 2.0
"""Seconds that a process which does not end has to write its stacks."""

QUIET_PORTS = range(20_000, 30_000)
MOST_PORTS = 100

READY = b"aegis-actors down"
"""The last words of the banner of a daemon that is ready."""


class ScratchError(Exception):
    """A scratch daemon did not behave as planned; the sentence describes its behaviour."""


class ScratchDaemon:
    """``aegis-actors up`` for the root ``directory / "root"``, in an environment of its own.

    Its processes see nothing of the user's home: its shells read the ``startup`` file.
    ``variables`` are in the environment from the next start on. ``log`` is its standard error,
    ``banner`` its output when it was ready.
    """

    startup_files: tuple[str, ...] = (".bashrc",)
    is_reached_by_port = True
    """Whether clients here can use its port; they can use its socket in any case."""

    last_words = READY
    """The last words of its banner."""

    def __init__(self, directory: Path, startup: str = f"PS1='{PROMPT}'\n") -> None:
        self.root = directory / "root"
        self.home = directory / "home"
        for made in (self.root, self.home):
            made.mkdir()
        for name in self.startup_files:
            (self.home / name).write_text(startup)
        self.state = StatePaths(self.root)
        self.banner = ""
        self.variables: dict[str, str] = {}
        self._log = directory / "log"
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None

    @property
    def may_be_forked(self) -> bool:
        """Whether a fork server may start it, with an imported program."""
        return False

    @property
    def process(self) -> subprocess.Popen[bytes] | ForkedProcess:
        """The newest process; raises ``ScratchError`` before the first start."""
        if self._process is None:
            raise ScratchError("the daemon was never started")
        return self._process

    @property
    def is_running(self) -> bool:
        """Return whether the newest process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def endpoint(self) -> Endpoint:
        """The address of the daemon; raises ``ScratchError`` without one."""
        endpoint = read_endpoint(self.state)
        if endpoint is None:
            raise ScratchError(f"the daemon of {self.root} has no endpoint file")
        return endpoint

    @property
    def log(self) -> str:
        """The standard error of all its processes."""
        return self._log.read_text(errors="replace")

    @property
    def program(self) -> list[str]:
        """The command line of ``aegis-actors``."""
        return list(PROGRAM)

    @property
    def verb(self) -> list[str]:
        """The arguments that make a process serve a root."""
        return ["up"]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the daemon."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            # It shares the registry of this process, which is its client.
            "XDG_STATE_HOME": os.path.dirname(StateRegistry.of_user().directory),
            **self.variables,
        }

    def start(self, *options: str, faults: str = "") -> None:
        """Start it and wait until it is ready.

        Raises ``ScratchError``, and leaves no process then.
        """
        self.launch(*options, faults=faults)
        is_ready = False
        try:
            is_ready = self.wait_ready()
        finally:
            if not is_ready:
                self.kill()
        if not is_ready:
            raise ScratchError(f"the daemon did not start: {self.log[-2000:]}")

    def launch(self, *options: str, faults: str = "", tracer: Sequence[str] = ()) -> None:
        """Start it without waiting; ``faults`` is the value of AEGIS_FAULT.

        ``tracer`` are the words of a program that runs it and leaves it the process: ``strace -D``.
        """
        words = [*self.verb, "--root", str(self.root), *options]
        environment = self.environment | ({VARIABLE: faults} if faults else {})
        with self._log.open("ab") as log:
            if not tracer and self.may_be_forked:
                self._process = fork_server().fork(words, environment, self.root, log.fileno())
                return
            self._process = subprocess.Popen(
                [*tracer, *self.program, *words],
                env=environment,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                process_group=0,  # Ctrl-C goes to the process that started it
            )

    def wait_ready(self) -> bool:
        """Wait until it is ready; return False if it ended before.

        Raises ``ScratchError`` at a timeout.
        """
        stdout = self.process.stdout
        if stdout is None:
            raise ScratchError("the daemon's standard output is not a pipe")
        output = b""
        while self.last_words not in output:
            try:
                wait_readable(stdout.fileno())
            except ScratchError:
                raise self._stuck("the daemon did not become ready") from None
            data = os.read(stdout.fileno(), 65_536)
            if not data:
                return False
            output += data
        self.banner = output.decode()
        return True

    def wait_dead(self, seconds: float) -> bool:
        """Wait at most so many seconds for the end of its process; return whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return not self.is_running

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.process.kill()
        self.wait_stopped()

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> int:
        """Stop it in order by a signal; return its exit code."""
        self.process.send_signal(signum)
        return self.wait_stopped()

    def wait_stopped(self) -> int:
        """Wait until its process has ended; return its exit code.

        Raises ``ScratchError`` at a timeout.
        """
        try:
            code = self.process.wait(GUARD_S)
        except subprocess.TimeoutExpired:
            raise self._stuck("the daemon did not end") from None
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def _stuck(self, what: str) -> ScratchError:
        """Kill it; return an error with its log, and with the stacks of a forked process."""
        if isinstance(self.process, ForkedProcess):
            self.process.send_signal(STACKS_SIGNAL)
        self.wait_dead(STACKS_S)
        self.process.kill()
        return ScratchError(f"{what}: {self.log[-20_000:]}")

    def connect(self) -> LineClient:
        """Return a connection of the line protocol. Raises ``ClientError``."""
        return connect(self.root)

    def call(self, command: str, /, **arguments: object) -> dict[str, Any]:
        """Send one command over a connection of its own. Raises ``ClientError``."""
        with self.connect() as client:
            return client.call(command, arguments)


def wait_readable(descriptor: int) -> None:
    """Wait for readable data. Raises ``ScratchError`` at a timeout."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    if not waiting.poll(GUARD_S * 1000):
        raise ScratchError(f"nothing came for {GUARD_S:.0f} s")


def free_port(chance: random.Random) -> int:
    """Return a free port outside the kernel's range of automatic ports."""
    for port in chance.sample(QUIET_PORTS, MOST_PORTS):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise ScratchError(f"none of {MOST_PORTS} ports is free")

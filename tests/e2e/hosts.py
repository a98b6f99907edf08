"""``aegis-actors join`` as a process of its own: a host whose terminals a daemon has."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.real.scratch import free_port
from tests.e2e.harness import GUARD_S, DaemonProcess, processes_with


def start_with_nodes(daemon: DaemonProcess, *options: str) -> str:
    """Start the daemon where hosts may join it; gives the address."""
    address = f"127.0.0.1:{free_port(random.Random())}"
    daemon.start("--port", "0", "--nodes", address, *options)
    return address


def until(holds: Callable[[], bool]) -> None:
    """Wait until it is so, looked at from outside."""
    deadline = time.monotonic() + GUARD_S
    while not holds():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


class HostProcess:
    """The host ``name`` with its own root, joined to ``daemon`` at ``address``."""

    def __init__(
        self, directory: Path, daemon: DaemonProcess, address: str, name: str = "gpu1"
    ) -> None:
        self.root = directory / name
        self.root.mkdir()
        self.name = name
        self._daemon = daemon
        self.address = address
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.key_file: Path | None = None
        """The key that it has; None: that of the daemon."""

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def start(self) -> None:
        """Start it, and wait until the daemon knows what it has."""
        self.launch()
        self.wait_state("up")

    def launch(self) -> None:
        """Start it, and do not wait."""
        key = str(self.key_file or self._daemon.cli("node", "key").stdout.strip())
        where = [self.address, "--name", self.name, "--root", str(self.root), "--key-file", key]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._daemon.program, "join", *where],
                env=self._daemon.environment,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def wait_state(self, state: str) -> None:
        """Wait until the daemon says so."""
        until(lambda: self.status().get("state") == state)

    def status(self) -> dict[str, Any]:
        """What the daemon says of it; nothing if it does not know it."""
        nodes = self._daemon.call("status")["nodes"]
        found: dict[str, Any] = next((each for each in nodes if each["name"] == self.name), {})
        return found

    def pause(self) -> None:
        """Let it fall silent."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(GUARD_S)

    def stop(self) -> int | None:
        """Stop it in order; gives its exit code, None if it did not run. Nothing of it is left."""
        if self._process is None or self._process.poll() is not None:
            return None
        self.resume()
        self.signal(signal.SIGTERM)
        code = self._process.wait(GUARD_S)
        assert processes_with(f"AEGIS_TERMINAL={self.root}/") == []
        return code

"""A daemon and a host that joins it, each a process, on two hosts of one machine or on one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aegis.client.line import CommandFailed
from tests.chaos.real.processes import processes_of
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.netns import Host

PORT = 8777
"""Where nodes come in: nobody else is on that host."""

LOOK_S = 0.05


class Tidy(DaemonProcess):
    """A process that leaves nothing, whatever becomes of the test."""

    def clean_up(self) -> None:
        """Leave no process."""
        self.hang_up()
        if self.is_running:
            self.kill()
        for process in processes_of(self.root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


class Placing(Tidy):
    """A daemon with nodes; says how they and their terminals stand."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._killed: dict[str, int] = {}

    def node(self, name: str) -> dict[str, Any]:
        """How the node stands, as the status tells; empty if it is not known."""
        nodes = self.call("status").get("nodes", [])
        return next((each for each in nodes if each["name"] == name), {})

    def wait_node(self, name: str, state: str) -> None:
        """Wait until the node is in this state. There is no event of that for clients."""
        deadline = time.monotonic() + GUARD_S
        while self.node(name).get("state") != state:
            assert time.monotonic() < deadline, f"{name} is not {state}: {self.call('status')}"
            time.sleep(LOOK_S)

    def kill_worker(self, name: str) -> None:
        """With -9."""
        self._killed[name] = self._wait_pid(name)
        os.kill(self._killed[name], signal.SIGKILL)

    def _wait_pid(self, name: str) -> int:
        """Wait until the status has the process: not while the worker is too busy to answer."""
        deadline = time.monotonic() + GUARD_S
        while (pid := self.node(name).get("pid")) is None:
            assert time.monotonic() < deadline, f"{name} does not answer: {self.call('status')}"
            time.sleep(LOOK_S)
        return int(pid)

    def wait_worker(self, name: str) -> None:
        """Wait until there is another process in the place of the one that was killed."""
        deadline = time.monotonic() + GUARD_S
        while self.node(name).get("pid") in (None, self._killed[name]):
            assert time.monotonic() < deadline, f"{name} is not up again: {self.call('status')}"
            time.sleep(LOOK_S)

    def wait_listed(self, state: str, *names: str) -> None:
        """Wait until the list shows these terminals in this state."""
        deadline = time.monotonic() + GUARD_S
        while not self._are_listed(state, names):
            assert time.monotonic() < deadline, f"not {state}: {self.call('term_list')}"
            time.sleep(LOOK_S)

    def _are_listed(self, state: str, names: Sequence[str]) -> bool:
        infos = {info["name"]: info for info in self.call("term_list")["result"]}
        return all(name in infos and infos[name]["state"] == state for name in names)

    def wait_back(self, *names: str) -> None:
        """Wait until each of the terminals answers a call."""
        for name in names:
            self._wait_answer(name)

    def _wait_answer(self, name: str) -> None:
        deadline = time.monotonic() + GUARD_S
        while not self._answers(name):
            assert time.monotonic() < deadline, f"{name} does not answer: {self.call('status')}"
            time.sleep(LOOK_S)

    def _answers(self, name: str) -> bool:
        try:
            self.call("term_read", name=name, last_n=1)
        except CommandFailed:
            return False
        return True


class DaemonOn(Placing):
    """``aegis-actors up`` on ``host``, reached from here by its socket; it takes nodes."""

    is_reached_by_port = False

    def __init__(self, directory: Path, host: Host) -> None:
        directory.mkdir()
        super().__init__(directory)
        self.host = host

    def launch(self, *options: str, faults: str = "", tracer: Sequence[str] = ()) -> None:
        """Start it and do not wait."""
        come_in = ("--nodes", f"{self.host.address}:{PORT}")
        on_host = self.host.command(*tracer)
        super().launch("--port", "0", *come_in, *options, faults=faults, tracer=on_host)


class JoinedNode(Tidy):
    """``aegis-actors join`` on ``host``: the terminals of a root directory of its own."""

    last_words = b"until it joins again\n"

    def __init__(self, directory: Path, host: Host, *, name: str, to: str, key_file: Path) -> None:
        directory.mkdir()
        super().__init__(directory)
        self.host = host
        self._words = ["join", to, "--name", name, "--key-file", str(key_file)]

    @property
    def verb(self) -> list[str]:
        """The words behind the program."""
        return self._words

    def launch(self, *options: str, faults: str = "", tracer: Sequence[str] = ()) -> None:
        """Start it and do not wait."""
        on_host = self.host.command(*tracer)
        super(DaemonProcess, self).launch(*options, faults=faults, tracer=on_host)

    def wait_said(self, words: str) -> None:
        """Wait until its log has these words."""
        deadline = time.monotonic() + GUARD_S
        while words not in self.log:
            assert time.monotonic() < deadline, f"{words!r} is not in {self.log}"
            time.sleep(LOOK_S)

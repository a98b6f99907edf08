"""Terminal agents under ``kill -9``: of the program, its shell and the daemon, at any moment."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from aegis.client.line import ClientError
from tests.e2e.harness import KILL_SEEDS, DaemonProcess, command_of, is_alive
from tests.e2e.test_terminal_agents import TUI, Launcher
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.long]

KILLS = 25
"""Of each seed."""

POINTS = (
    *("agent.launch.before", "agent.launch.after"),
    *("shell.start.before", "shell.start.after"),
    *("ledger.append.before", "ledger.append.after"),
)
KEYS = ("ask make\r", "y", "work 0.2\r", "exit 1\r", "child\r", "\x03")
ORDERS = (
    *("keys", "keys", "keys", "keys", "agent_restart", "agent_restart", "agent_restart"),
    *("agent_resume", "close", "term_close", "agent_show"),
)
HANDLES = ("pm", "dev")
SETTLE_S = 2.0
RESTARTS = 3
"""Of each agent in the end: on a busy machine the kills may leave no time for orders."""


class Ordeal:
    """A daemon with two terminal agents, orders to them, and kills at the same time."""

    def __init__(self, daemon: DaemonProcess, seed: int) -> None:
        self.launcher = Launcher(daemon)
        self.daemon = daemon
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.is_over = False
        for handle in HANDLES:
            self.launcher.launch(handle=handle)

    # Orders: their replies are lost with the daemon.

    def call(self, command: str, /, **arguments: object) -> dict[str, Any] | None:
        with suppress(ClientError, OSError, ValueError):
            return self.daemon.call(command, **arguments)
        return None

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self.is_over:
            handle, order = chance.choice(HANDLES), chance.choice(ORDERS)
            match order:
                case "keys":
                    self.call("term_keys", name=handle, keys=chance.choice(KEYS))
                case "term_close":
                    self.call(order, name=handle)
                case _:
                    self.call(order, handle=handle)
            time.sleep(chance.uniform(0, 0.1))

    @contextmanager
    def load(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.work, args=[number]) for number in range(3)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over = True
            for thread in threads:
                thread.join()

    # Kills.

    def kill_one(self) -> None:
        time.sleep(self.chance.uniform(0.05, 0.6))
        kind = self.chance.choice(["program", "shell", "daemon", "point"])
        match kind:
            case "program":
                self.kill_processes(str(TUI))
            case "shell":
                self.kill_processes("bash")
            case _:
                self.daemon.kill()
                faults = f"{self.chance.choice(POINTS)}@{self.chance.randint(1, 3)}=kill"
                self.restart(faults if kind == "point" else "")
        self.kills[kind] += 1

    def kill_processes(self, words: str) -> None:
        pids = [int(each.split()[0]) for each in self.daemon.shell_processes()]
        victims = [pid for pid in pids if words in command_of(pid)]
        if victims:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(victims), signal.SIGKILL)

    def restart(self, faults: str) -> None:
        """Start the daemon; once more without faults if it dies of them."""
        if faults:
            self.daemon.launch("--port", "0", "--trust", faults=faults)
            if self.daemon.wait_ready() and not self.daemon.wait_dead(SETTLE_S):
                self.daemon.kill()
            self.daemon.kill()
        self.daemon.start("--port", "0", "--trust")

    # What must hold afterwards.

    def check(self) -> None:
        for handle in HANDLES:
            self.daemon.call("agent_resume", handle=handle)
            until(partial(self.is_settled, handle), f"{handle} is settled")
            for _ in range(RESTARTS):
                self.daemon.call("agent_restart", handle=handle)
                self.launcher.is_ready(handle)
            self.check_ledger(handle)
        ids = [each["id"] for each in self.all_messages()]
        assert len(ids) == len(set(ids))
        for handle in HANDLES:
            pids = self.launcher.processes(handle)
            self.daemon.call("close", handle=handle)
            assert not any(map(is_alive, pids))
        assert self.daemon.shell_processes() == []

    def is_settled(self, handle: str) -> bool:
        """Whether the state agrees with the processes."""
        info = self.launcher.info(handle)
        programs = [pid for pid in self.launcher.processes(handle) if str(TUI) in command_of(pid)]
        return (info["state"] == "exited") != bool(programs) and len(programs) <= 1

    def check_ledger(self, handle: str) -> None:
        """Each launch has one record; only the newest may run."""
        records = self.daemon.call("term_read", name=handle, since_seq=-1)["result"]
        assert [each["seq"] for each in records] == sorted({each["seq"] for each in records})
        launches = [each for each in records if each["cmd"] and "tui.py" in each["cmd"]]
        assert len(launches) > RESTARTS, "each launch has a record"
        assert all(each["end"] is not None for each in launches)

    def all_messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.daemon.call("inbox_read", limit=1000, unread=False)[
            "messages"
        ]
        return found


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_a_terminal_agent_survives_kills_of_everything(
    own_daemon: DaemonProcess, seed: int
) -> None:
    ordeal = Ordeal(own_daemon, seed)
    with ordeal.load():
        for _ in range(KILLS):
            ordeal.kill_one()
    ordeal.check()
    # Here, because a list of terminals that meets the end of one is in the log as a warning.
    own_daemon.stop()
    assert own_daemon.shell_processes() == []
    assert sum(ordeal.kills.values()) == KILLS

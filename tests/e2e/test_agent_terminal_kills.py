"""Commands of ACP agents under ``kill -9``: of the agent, the command, its guard and the daemon."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from aegis.client.line import ClientError
from tests.e2e.harness import KILL_SEEDS, DaemonProcess, command_of
from tests.e2e.test_agents import STAND_IN, Team, agents_of
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.long]

KILLS = 25
"""Of each seed."""

PROMPTS = (
    "TERM echo a; sleep 0.1",
    "TERM (trap '' TERM; sleep 1000 & sleep 0.1)",
    "OPEN sleep 1000\nOPEN yes | head -c 200000; sleep 1000",
    "OPEN (env -i setsid sleep 1000 &); sleep 1000\nHANG",
    "SAY x",
)
POINTS = (
    *("agent.start.before", "agent.start.after", "turn.send.before", "turn.send.after"),
    *("frame.write.before", "ledger.append.before", "ledger.append.after"),
)
WORDS = {"agent": "main.py acp", "command": "sleep", "guard": "guard.py"}
SETTLE_S = 2.0


class Ordeal:
    """A daemon with two ACP agents, prompts to them, and kills at the same time."""

    def __init__(self, daemon: DaemonProcess, seed: int) -> None:
        profile = {
            "provider": "acp",
            "permission": "full",
            "command": [sys.executable, str(STAND_IN), "acp"],
        }
        self.team = Team(daemon, more={"acp": profile})
        self.daemon = daemon
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.is_over = False
        self.handles = [self.team.spawn("SAY x", profile="acp") for _ in range(2)]

    def call(self, command: str, /, **arguments: object) -> dict[str, Any] | None:
        with suppress(ClientError, OSError, ValueError):
            return self.daemon.call(command, **arguments)
        return None

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self.is_over:
            handle = chance.choice(self.handles)
            if chance.random() < 0.7:
                context = chance.choice(PROMPTS)
                self.call("handoff", target_handle=handle, context=context)
            else:
                self.call("interrupt", handle=handle)
            time.sleep(chance.uniform(0, 0.2))

    @contextmanager
    def load(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.work, args=[number]) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over = True
            for thread in threads:
                thread.join()

    def kill_one(self) -> None:
        time.sleep(self.chance.uniform(0.05, 0.6))
        kind = self.chance.choice([*WORDS, "daemon", "point"])
        if kind in WORDS:
            victims = [pid for pid in agents_of(self.daemon) if WORDS[kind] in command_of(pid)]
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(victims), signal.SIGKILL)
        else:
            self.daemon.kill()
            point = f"{self.chance.choice(POINTS)}@{self.chance.randint(1, 3)}=kill"
            self.restart(point if kind == "point" else "")
        self.kills[kind] += 1

    def restart(self, faults: str) -> None:
        """Start the daemon; once more without faults if it dies of them."""
        if faults:
            self.daemon.launch("--port", "0", "--trust", faults=faults)
            if self.daemon.wait_ready() and not self.daemon.wait_dead(SETTLE_S):
                self.daemon.kill()
            self.daemon.kill()
        self.daemon.start("--port", "0", "--trust")

    def check(self) -> None:
        for handle in self.handles:
            until(partial(self.is_idle, handle), f"{handle} is idle")
            until(partial(self.has_run, handle), "the next one runs")
            self.daemon.call("close", handle=handle)
        assert self.daemon.call("term_list")["of_agents"] == []
        until(lambda: agents_of(self.daemon) == [], "no process is left")

    def is_idle(self, handle: str) -> bool:
        """Whether no message waits and no turn runs; interrupt one that does."""
        # One that is opened, and not sent yet, is no idle state either.
        waited = self.call("agent_wait", handle=handle, timeout=0.3)
        info = self.team.info(handle)
        is_idle = info["state"] in ("idle", "dormant") and not info["waiting"]
        if waited is None or waited["outcome"] == "timeout" or not is_idle:
            self.call("interrupt", handle=handle)
            return False
        return True

    def has_run(self, handle: str) -> bool:
        """Have a command run; return False if its turn was interrupted instead.

        The daemon may not have seen the last kill of the agent yet when it sends the turn.
        """
        said, ended = f"the-end-of-{handle}", len(self.team.outcomes(handle))
        self.daemon.call("handoff", target_handle=handle, context=f"TERM echo {said}")
        try:
            until(lambda: self.has_said(handle, said) or self.was_lost(handle, ended), "it ends")
        except AssertionError as error:
            read = self.daemon.call("session_read", handle=handle, last_n=60)["result"]
            lines = "\n".join(f"{each['seq']} {each['kind']} {each['fields']}" for each in read)
            raise AssertionError(f"{error}: {self.team.info(handle)}\n{lines}") from None
        return self.has_said(handle, said)

    def was_lost(self, handle: str, ended: int) -> bool:
        return "interrupted" in self.team.outcomes(handle)[ended:]

    def has_said(self, handle: str, text: str) -> bool:
        return text in "\n".join(self.team.texts(handle))


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_no_command_outlives_a_kill_and_the_next_one_runs(
    own_daemon: DaemonProcess, seed: int
) -> None:
    ordeal = Ordeal(own_daemon, seed)
    with ordeal.load():
        for _ in range(KILLS):
            ordeal.kill_one()
    ordeal.check()
    own_daemon.stop()
    assert sum(ordeal.kills.values()) == KILLS

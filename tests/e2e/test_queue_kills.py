"""Queues under ``kill -9``: of agents and of the daemon, at any moment and at the fault points."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import pytest

from aegis.client.line import ClientError
from aegis.queues import faults
from tests.e2e.harness import KILL_SEEDS, DaemonProcess
from tests.e2e.test_agents import agents_of
from tests.e2e.test_queues import Queued
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.long]

KILLS = 50
"""Of each seed."""

POINTS = (
    *sorted(point.name for point in faults.QUEUES),
    *("turn.send.before", "turn.send.after", "inbox.append.after", "ledger.sync.before"),
)
QUEUES = ("build", "wide", "twice")
SENDERS = ("pm", "dev")
TASKS = 60
SETTLE_S = 1.0


@attrs.define
class Sent:
    """A task that was acknowledged; its agent writes ``key`` into the evidence when it begins."""

    id: str
    queue: str
    key: str
    sender: str


class Ordeal:
    """A daemon with queues, clients that enqueue, and kills at the same time."""

    def __init__(self, daemon: DaemonProcess, seed: int) -> None:
        self.daemon = daemon
        self.queued = Queued(daemon)
        self.evidence = daemon.root / "evidence"
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self.is_over = False

    # The load: what is not acknowledged is sent again with the same key.

    def work(self, sender: str, seed: int) -> None:
        chance = random.Random(seed)
        for number in range(TASKS // len(SENDERS)):
            key = f"{sender}-{number}"
            more = chance.choice(["", "WAIT 0.2\n", "WAIT 0.5\n"])
            payload = f"RUN echo {key} >>{self.evidence}\n{more}SAY did {key}"
            queue = chance.choice(QUEUES)
            sent = self.enqueue(queue, payload, key, sender)
            if sent is None:
                return
            self.sent.append(sent)
            if chance.random() < 0.1:
                with suppress(ClientError, OSError, ValueError):
                    self.daemon.call("cancel", task_id=sent.id, from_handle=sender)
            time.sleep(chance.uniform(0, 0.4))

    def enqueue(self, queue: str, payload: str, key: str, sender: str) -> Sent | None:
        given = {"queue": queue, "payload": payload, "key": key, "from_handle": sender}
        while True:
            with suppress(ClientError, OSError, ValueError):
                reply = self.daemon.call("enqueue", **given)
                return Sent(reply["task_id"], queue, key, sender)
            if self.is_over:
                return None
            time.sleep(0.05)

    @contextmanager
    def load(self, seed: int) -> Iterator[None]:
        threads = [
            threading.Thread(target=self.work, args=[sender, seed + number])
            for number, sender in enumerate(SENDERS)
        ]
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
        time.sleep(self.chance.uniform(0.02, 0.5))
        kind = self.chance.choice(["agent", "daemon", "point", "point"])
        if kind == "agent":
            pids = agents_of(self.daemon)
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(pids), signal.SIGKILL)
        else:
            self.daemon.kill()
            faults = f"{self.chance.choice(POINTS)}@{self.chance.randint(1, 4)}=kill"
            self.restart(faults if kind == "point" else "")
        self.kills[kind] += 1

    def restart(self, faults: str) -> None:
        """Start the daemon; once more without faults if it dies of them."""
        if faults:
            self.daemon.launch("--port", "0", "--trust", faults=faults)
            if self.daemon.wait_ready() and not self.daemon.wait_dead(SETTLE_S):
                self.daemon.kill()
            self.daemon.kill()
        self.queued.start()

    # What must hold afterwards.

    def check(self) -> None:
        until(lambda: self.unended() == [], "every task ends")
        ended = {each.id: self.queued.task(each.id) for each in self.sent}
        self.check_evidence(ended)
        self.check_ledgers()
        self.check_messages(ended)
        until(lambda: self.daemon.call("list_sessions")["result"] == [], "all workers are closed")
        until(lambda: agents_of(self.daemon) == [], "no agent is left")

    def unended(self) -> list[str]:
        listed = self.daemon.call("task_list", limit=1000)["result"]
        return [each["task_id"] for each in listed if each["ended"] is None]

    def check_evidence(self, ended: dict[str, dict[str, Any]]) -> None:
        """A task began at most once for each attempt, and a completed one did."""
        begun = Counter(self.evidence.read_text().split())
        for sent in self.sent:
            task = ended[sent.id]
            assert begun[sent.key] <= task["max_attempts"], task
            assert task["attempt"] <= task["max_attempts"], task
            if task["status"] != "cancelled":  # it may begin while its cancellation is stored
                assert begun[sent.key] <= task["attempt"], task
            if task["status"] == "completed":
                assert begun[sent.key] >= 1, task
                assert task["result"] == f"did {sent.key}"

    def check_ledgers(self) -> None:
        for path in (self.daemon.state.directory / "queues").iterdir():
            lines = [json.loads(line) for line in path.read_bytes().splitlines()]
            for field in ("ended", "is_notified"):
                counts = Counter(each["id"] for each in lines if field in each["set"])
                assert set(counts.values()) <= {1}, f"{field} once"
            tasks = [each["set"] for each in lines if "number" in each["set"]]
            keys = [(each["sender"], each["key"]) for each in tasks]
            assert len(keys) == len(set(keys))

    def check_messages(self, ended: dict[str, dict[str, Any]]) -> None:
        """Each sender gets one message for each of its tasks, with the right outcome."""

        def messages(sender: str) -> list[dict[str, Any]]:
            reply = self.daemon.call("inbox_read", from_handle=sender, limit=1000)
            return [each for each in reply["messages"] if each["task_id"]]

        def are_there() -> bool:
            return sum(len(messages(each)) for each in SENDERS) >= len(self.sent)

        until(are_there, "all are notified")
        for sender in SENDERS:
            wanted = Counter(each.id for each in self.sent if each.sender == sender)
            found = messages(sender)
            assert Counter(each["task_id"] for each in found) == wanted
            for each in found:
                is_ok = ended[each["task_id"]]["status"] == "completed"
                assert each["status"] == ("ok" if is_ok else "error")


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_kills_lose_no_task_and_repeat_none(own_daemon: DaemonProcess, seed: int) -> None:
    ordeal = Ordeal(own_daemon, seed)
    with ordeal.load(seed):
        for _ in range(KILLS):
            ordeal.kill_one()
    ordeal.check()
    assert len(ordeal.sent) > TASKS // 4, "tasks were enqueued"
    assert sum(ordeal.kills.values()) == KILLS

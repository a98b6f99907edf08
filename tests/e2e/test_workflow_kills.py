"""Workflows under ``kill -9``: of processes, agents and the daemon, at any moment and at points."""

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
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.client.line import ClientError
from tests.e2e.harness import KILL_SEEDS, DaemonProcess
from tests.e2e.test_agents import agents_of
from tests.e2e.test_workflows import Working, is_child, workflow_processes
from tests.resources.waiting import until
from tests.test_fault_points import ONLY_REAL

pytestmark = [pytest.mark.real, pytest.mark.long]

KILLS = 30
"""Of each seed."""

POINTS = (
    *sorted(each for each in ONLY_REAL if each.startswith("workflow.")),
    *(
        "ledger.append.after[requests.jsonl]",
        "request.apply.after",
        "queue.spawn.after",
        "turn.send.after",
    ),
)
RUNS = 14
SETTLE_S = 1.0

PLUGIN = '''
import os
from pathlib import Path

from aegis import StepInterrupted, workflow

EVIDENCE = Path(os.getcwd()) / "evidence"


def did(key, what):
    with EVIDENCE.open("a") as file:
        file.write(f"{key} {what}\\n")
    return what


@workflow
async def ordeal(engine, *, key: str):
    """Steps, an interruptible step, agents, a task, a question, branches: what a kill may hit."""
    found = []
    for number in range(3):
        found.append(await once(engine, key, f"step {number}"))
    handle = await engine.spawn("asks")
    found.append(await engine.send(handle, f"RUN echo {key} agent >>{EVIDENCE}\\nSAY {key} said"))
    task = f"RUN echo {key} task >>{EVIDENCE}\\nSAY {key} did"
    found.append(await engine.delegate("build", task))
    found += await engine.parallel([once(engine, key, f"branch {each}") for each in range(2)])
    found.append(await engine.ask_human(f"{key}?", options=["yes"]))
    found.append(await once(engine, key, "last"))
    return found


async def once(engine, key, what):
    """Do a step; where it was interrupted, say so and do not do it again."""
    try:
        return await engine.step(what, lambda: did(key, what))
    except StepInterrupted:
        return "interrupted"
'''


@attrs.define
class Sent:
    """A run that was acknowledged."""

    id: str
    key: str


class Ordeal:
    """A daemon with workflows, a client that starts them, a person, and kills at the same time."""

    def __init__(self, daemon: DaemonProcess, seed: int) -> None:
        self.daemon = daemon
        self.working = Working(daemon)
        self.working.plugin("ordeal", PLUGIN)
        self.working.call("workflow_trust")
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self.is_over = False

    # The load: what is not acknowledged is started again with the same key.

    def start_all(self) -> None:
        for number in range(RUNS):
            key = f"run-{number}"
            while not self.is_over:
                with suppress(ClientError, OSError, ValueError):
                    reply = self.daemon.call(
                        "run_workflow",
                        name="ordeal",
                        kwargs={"key": key},
                        key=key,
                        from_handle="pm",
                    )
                    self.sent.append(Sent(reply["workflow_id"], key))
                    break
                time.sleep(0.05)
            time.sleep(0.3)

    def answer_all(self) -> None:
        while not self.is_over:
            with suppress(ClientError, OSError, ValueError):
                self.answer_open()
            time.sleep(0.2)

    def answer_open(self) -> None:
        for each in self.daemon.call("request_list")["requests"]:
            [question] = each["input"]["questions"]
            self.daemon.call(
                "request_answer",
                id=each["id"],
                digest=each["digest"],
                answer="allow",
                values={question["question"]: "yes"},
            )

    @contextmanager
    def load(self) -> Iterator[None]:
        threads = [threading.Thread(target=each) for each in (self.start_all, self.answer_all)]
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
        time.sleep(self.chance.uniform(0.05, 0.8))
        kind = self.chance.choice(["process", "agent", "daemon", "point", "point"])
        if kind in ("process", "agent"):
            processes = [each for each in workflow_processes(self.daemon) if is_child(each)]
            pids = processes if kind == "process" else agents_of(self.daemon)
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(pids), signal.SIGKILL)
        else:
            self.daemon.kill()
            faults = f"{self.chance.choice(POINTS)}@{self.chance.randint(1, 6)}=kill"
            self.restart(faults if kind == "point" else "")
        self.kills[kind] += 1

    def restart(self, faults: str) -> None:
        """Start the daemon; once more without faults if it dies of them."""
        if faults:
            self.daemon.launch("--port", "0", "--trust", faults=faults)
            if self.daemon.wait_ready() and not self.daemon.wait_dead(SETTLE_S):
                self.daemon.kill()
            self.daemon.kill()
        self.working.start()

    # What must hold afterwards.

    def check(self) -> None:
        while (left := self.unended()) != []:
            # All give tasks to one queue, which does one after another: each needs a while.
            until(partial(self.has_moved, left), f"one of these goes on: {self.details(left)}")
        for sent in self.sent:
            self.check_run(sent, self.working.status(sent.id))
        self.check_keys()
        self.check_messages()
        until(lambda: self.daemon.call("list_sessions")["result"] == [], "all sessions are closed")
        until(lambda: workflow_processes(self.daemon) == [], "no process is left")

    def details(self, left: list[dict[str, Any]]) -> list[object]:
        crashed = [line for line in self.daemon.log.splitlines() if '"crashed"' in line]
        ledgers = [self.working.journal(each["workflow_id"])[-6:] for each in left]
        processes = [shown(each) for each in workflow_processes(self.daemon)]
        tree = str(self.daemon.call("tree"))
        at = tree.find("workflow-processes")
        return [left, ledgers, processes, crashed[-3:], tree[at : at + 1_500]]

    def has_moved(self, left: list[dict[str, Any]]) -> bool:
        return self.unended() != left

    def unended(self) -> list[dict[str, Any]]:
        self.answer_open()
        infos = [self.working.status(each.id) for each in self.sent]
        return [each for each in infos if not each["ended"]]

    def check_run(self, sent: Sent, ended: dict[str, Any]) -> None:
        """A step was done at most once; in a completed run each was, or was interrupted."""
        lines = (self.daemon.root / "evidence").read_text().splitlines()
        done = Counter(
            each.removeprefix(f"{sent.key} ") for each in lines if self.is_of(each, sent)
        )
        assert max(done.values(), default=0) <= 1, (sent, done)
        succeeded: set[str] = set()
        for position, changes in self.working.journal(sent.id):
            if "process" in changes:
                assert position not in succeeded, "a finished call begins no second time"
            if changes.get("end") == "value":
                succeeded.add(position)
        phases = [each["phase"] for each in self.working.changes(sent.id) if "phase" in each]
        assert phases == [ended["status"]]
        if ended["status"] == "completed":
            result = json.loads(ended["result"])
            assert result[5:7] != [], result
            assert (result[3], result[4], result[7]) == (
                f"{sent.key} said",
                f"{sent.key} did",
                "yes",
            )
            for what in ("agent", "task"):
                assert done[what] == 1
        else:
            # An agent whose turn was interrupted has not answered; its task has failed.
            assert "TaskFailed" in ended["error"] or "did not answer" in ended["error"], ended

    @staticmethod
    def is_of(line: str, sent: Sent) -> bool:
        return line.startswith(f"{sent.key} ")

    def check_keys(self) -> None:
        """Nothing runs that was not acknowledged, or twice under one key."""
        listed = self.daemon.call("workflow_list", limit=1000)["result"]
        keys = Counter(each["key"] for each in listed)
        assert set(keys.values()) <= {1}
        assert {each.key for each in self.sent} <= set(keys)

    def check_messages(self) -> None:
        def found() -> list[dict[str, Any]]:
            reply = self.daemon.call("inbox_read", from_handle="pm", limit=1000)
            return [each for each in reply["messages"] if each["id"].startswith("workflow:")]

        until(lambda: len(found()) >= len(self.sent), "the starter is notified of all")
        ids = Counter(each["task_id"] for each in found())
        assert all(ids[each.id] == 1 for each in self.sent), "once of each"


def shown(pid: int) -> str:
    """A process, for a failure of the test."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text().split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        descriptors = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
        wchan = Path(f"/proc/{pid}/wchan").read_text()
        return f"{pid} {stat[2]} parent {stat[3]} {wchan} {words} {descriptors}"
    return f"{pid} is gone"


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_kills_forget_no_workflow_and_repeat_no_finished_step(
    own_daemon: DaemonProcess, seed: int
) -> None:
    ordeal = Ordeal(own_daemon, seed)
    with ordeal.load():
        for _ in range(KILLS):
            ordeal.kill_one()
    ordeal.check()
    assert len(ordeal.sent) > RUNS // 4, "workflows were started"
    assert sum(ordeal.kills.values()) == KILLS

"""Workflows in random lives: kills of daemon and processes, a refusing disk, cancels, resumes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import attrs
import pytest

from aegis.workflows import events as e
from aegis.workflows.calls import Outcome, is_failure, value
from aegis.workflows.records import Call
from tests.aegis.workflows.machine import Machine

SEEDS = range(250)
EVENTS = 160

NAMES = ("step", "bash", "send", "delegate", "ask_human", "checkpoint", "spawn")
REPEATABLE = {"send", "delegate", "spawn", "ask_human"}


@attrs.define
class Process:
    """A process of a workflow: it makes the calls of its script, and is what a kill ends.

    ``journal`` is what it was started with; ``waits`` is the call that it has made.
    """

    journal: dict[str, Call]
    at: int = 0
    waits: bool = False
    acts: bool = False


@attrs.define
class World:
    """Workflows with their scripts, processes, effects and messages."""

    chance: random.Random
    machine: Machine = attrs.field(factory=lambda: Machine(syncs=False))
    scripts: dict[str, list[str]] = attrs.field(factory=dict)
    processes: dict[str, Process] = attrs.field(factory=dict)
    performing: dict[tuple[str, str], e.Perform] = attrs.field(factory=dict)
    settling: list[str] = attrs.field(factory=list)
    effects: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    reopened: Counter[str] = attrs.field(factory=Counter)
    messages: set[str] = attrs.field(factory=set)

    # What follows from the rules.

    def take(self, actions: list[e.Action]) -> None:
        for action in actions:
            self._take(action)

    def _take(self, action: e.Action) -> None:
        match action:
            case e.Launch(workflow=workflow):
                assert not workflow.has_ended
                assert workflow.id not in self.processes
                journal = self.machine.journal(workflow.id)
                self.processes[workflow.id] = Process(journal)
            case e.Proceed(id=id_, position=position):
                self._check_begun(id_, position)
                self.processes[id_].acts = True
            case e.Perform(workflow=workflow, position=position):
                self._check_begun(workflow.id, position)
                self.performing[workflow.id, position] = action
            case e.Deliver(id=id_, position=position, outcome=outcome):
                self._deliver(id_, position, outcome)
            case e.EndRun(id=id_):
                self.processes.pop(id_, None)
                self._stop_calls(id_)
            case e.Settle(workflow=workflow):
                kinds = self.machine.kinds(workflow.id)
                assert "returned" in kinds, "its end is durable"
                self.settling.append(workflow.id)

    def _check_begun(self, id_: str, position: str) -> None:
        call = self.machine.journal(id_)[position]
        assert call.outcome is None, "a call that has ended does not act"

    def _deliver(self, id_: str, position: str, outcome: Outcome) -> None:
        assert self.machine.journal(id_)[position].outcome == outcome, "it is durable"
        process = self.processes.get(id_)
        if process is not None and process.waits and str(process.at + 1) == position:
            process.journal[position] = self.machine.journal(id_)[position]
            process.waits = process.acts = False

    def _stop_calls(self, id_: str) -> None:
        for each in [key for key in self.performing if key[0] == id_]:
            del self.performing[each]

    # What happens.

    def happen(self) -> None:
        kind = self.chance.choices(
            ("start", "sync", "process", "perform", "settle", "die", "kill", "refuse", "cancel",
             "reopen", "time"),
            (6, 40, 40, 20, 10, 4, 2, 3, 3, 8, 10),
        )[0]  # fmt: skip
        getattr(self, f"_{kind}")()

    def _start(self) -> None:
        if len(self.scripts) < 4:
            script = [self.chance.choice(NAMES) for _ in range(self.chance.randint(1, 6))]
            id_ = self.machine.start()
            self.scripts[id_] = script
            self.take(self.machine.done)

    def _sync(self) -> None:
        if self.machine.unsynced:
            self.take(self.machine.sync())

    def _process(self) -> None:
        if self.processes:
            id_ = self.chance.choice(sorted(self.processes))
            self._step(id_, self.processes[id_])

    def _step(self, id_: str, process: Process) -> None:
        """Let a process make its next call, or do what it may do, or return."""
        if process.acts:
            position = str(process.at + 1)
            self._affect(id_, position)
            process.acts = False
            self.machine.does(id_, position)
        elif process.waits:
            return
        else:
            while self._is_kept(process):
                process.at += 1
            script, position = self.scripts[id_], str(process.at + 1)
            kept = process.journal.get(position)
            if kept is not None and kept.outcome is not None:
                failed = e.Returned(
                    id=id_, run=self.machine.run(id_), end="failed", error="its call failed"
                )
                self.machine.send(failed)
            elif process.at == len(script):
                self.machine.returns(id_)
            else:
                process.waits = True
                name = script[process.at]
                given = {"name": position, "payload": 1, "handle": "h", "question": "q"}
                self.machine.calls(id_, position, name, **given)
        self.take(self.machine.done)

    @staticmethod
    def _is_kept(process: Process) -> bool:
        kept = process.journal.get(str(process.at + 1))
        return kept is not None and kept.outcome is not None and not is_failure(kept.outcome)

    def _affect(self, id_: str, position: str) -> None:
        call = self.machine.journal(id_)[position]
        assert call.outcome is None, "a finished call is not done again"
        self.effects[id_, position] += 1

    def _perform(self) -> None:
        if not self.performing:
            return
        id_, position = self.chance.choice(sorted(self.performing))
        call = self.performing.pop((id_, position))
        if call.name == "ask_human":
            self.machine.answers(call.workflow.call_id(position), "did")
        else:
            self.machine.does(id_, position)
        self.take(self.machine.done)

    def _settle(self) -> None:
        if self.settling:
            id_ = self.settling.pop(self.chance.randrange(len(self.settling)))
            self.messages.add(self.machine.workflow(id_).end_id)
            self.machine.settles(id_)
            self.take(self.machine.done)

    def _die(self) -> None:
        if self.processes:
            id_ = self.chance.choice(sorted(self.processes))
            del self.processes[id_]
            self.machine.dies(id_)
            self.take(self.machine.done)

    def _kill(self) -> None:
        self.processes.clear()
        self.performing.clear()
        self.settling.clear()
        for id_ in [each for each in self.scripts if each not in self.machine.metas]:
            del self.scripts[id_]  # it was not acknowledged
        self.take(self.machine.begin())

    def _refuse(self) -> None:
        ids = sorted({each.id for each in self.machine.unsynced if isinstance(each, e.Write)})
        if ids:
            self.take(self.machine.refuse(self.chance.choice(ids)))

    def _cancel(self) -> None:
        if self.machine.metas:
            self.machine.cancel(self.chance.choice(sorted(self.machine.metas)))
            self.take(self.machine.done)

    def _reopen(self) -> None:
        settled = self.machine.rules.store.settled
        failed = [each.id for each in settled.values() if each.phase != "completed"]
        if failed:
            id_ = self.chance.choice(failed)
            self.reopened[id_] += 1
            self.machine.reopen(id_)
            self.take(self.machine.done)

    def _time(self) -> None:
        self.machine.passes(10)
        self.take(self.machine.done)

    # The end.

    def calm(self) -> None:
        """Let everything come to its end, without further faults."""
        for _ in range(2_000):
            if not self.machine.rules.store.live and not self.machine.unsynced:
                return
            for happening in (self._sync, self._process, self._perform, self._settle, self._time):
                happening()
        raise AssertionError("a workflow never ends")

    def check(self) -> None:
        for id_, script in self.scripts.items():
            workflow = self.machine.workflow(id_)
            assert workflow.has_ended
            assert workflow.end_id in self.messages, "its starter was notified"
            self._check_ledger(id_)
            for position, name in self._done(id_, script):
                allowed = 1 + self.reopened[id_]
                assert self.effects[id_, position] <= allowed, (name, self.machine.ledgers[id_])

    def _done(self, id_: str, script: list[str]) -> Iterator[tuple[str, str]]:
        completed = self.machine.workflow(id_).phase == "completed"
        journal = self.machine.journal(id_)
        for number, name in enumerate(script, 1):
            if completed:
                assert journal[str(number)].outcome is not None
            if name not in REPEATABLE:
                yield str(number), name

    def _check_ledger(self, id_: str) -> None:
        """No call begins again after it has succeeded, and each end has one line."""
        succeeded: set[str] = set()
        ends = 0
        for line in self.machine.ledgers[id_]:
            match line:
                case {"kind": "begun", "position": str(position)}:
                    assert position not in succeeded
                case {"kind": "ended", "position": str(position), "outcome": dict(outcome)}:
                    if not is_failure(outcome):
                        succeeded.add(position)
                case {"kind": "returned"}:
                    ends += 1
                case {"kind": "resumed"}:
                    spawned = {str(number) for number in self._spawned(id_)}
                    succeeded -= spawned
                    ends = 0
            assert ends <= 1

    def _spawned(self, id_: str) -> list[int]:
        script = self.scripts[id_]
        return [number for number, name in enumerate(script, 1) if name == "spawn"]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_finished_call_is_carried_out_again_and_each_workflow_is_reported_once(
    seed: int,
) -> None:
    world = World(random.Random(seed))
    for _ in range(EVENTS):
        world.happen()
    world.calm()
    world.check()


def test_the_worlds_see_kills_resumptions_and_every_end() -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        world = World(random.Random(seed))
        for _ in range(EVENTS):
            world.happen()
        world.calm()
        seen.update(each.phase for each in world.machine.rules.store.settled.values())
        seen["resumed"] += sum(world.reopened.values())
        seen["repeated"] += sum(
            each.starts > 1 for id_ in world.scripts for each in world.machine.journal(id_).values()
        )
    assert {"completed", "failed", "cancelled"} <= {each for each, count in seen.items() if count}
    assert seen["resumed"] > 5
    assert value(1) == {"value": 1}

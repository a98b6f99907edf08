"""Random events for the rules of queues, with crashes and a disk that refuses, against promises."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from aegis.protocol.queues import Enqueued
from aegis.queues import events as e
from aegis.queues.tasks import QueueSettings
from tests.aegis.queues.machine import Machine

STEPS = 250

QUEUES = (
    QueueSettings(name="one", agent="claude", account="claude"),
    QueueSettings(name="wide", agent="claude", account="claude", max_parallel=3, max_attempts=2),
    QueueSettings(name="other", agent="codex", account="codex", max_parallel=2),
)


class World:
    """The machine with workers that begin and end at random; what it did is counted."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.machine = Machine(*QUEUES, syncs=False)
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self.sessions: Counter[str] = Counter()
        self.turns: set[tuple[str, str]] = set()
        self.watched: dict[str, str] = {}
        self.settling: set[str] = set()
        self.sent: list[tuple[int, str]] = []

    # What the actor does with the actions.

    def take(self, actions: list[e.Action]) -> None:
        for action in actions:
            match action:
                case e.Open(task=task, is_new=is_new):
                    assert task.worker is not None
                    self.sessions[task.worker] += is_new
                    self.watched[task.id] = task.worker
                case e.Settle(task=task):
                    assert self.is_stored(task.id, "ended"), "its end is durable"
                    self.settling.add(task.id)
                case e.Return(value=Enqueued(task_id=task)):
                    assert self.is_stored(task, "enqueued"), "it is durable"
                    self.acknowledged.add(task)
                case _:
                    pass

    def is_stored(self, task: str, kind: str) -> bool:
        lines = (each for ledger in self.machine.ledgers.values() for each in ledger)
        return any(
            line["kind"] == kind and (line.get("id") or line["task"]["id"]) == task  # type: ignore[index]
            for line in lines
        )

    # One random step.

    def step(self) -> None:
        machine, chance = self.machine, self.chance
        match chance.randrange(12):
            case 0 | 1:
                after = chance.sample([*self.acknowledged], min(2, len(self.acknowledged)))
                given = after if chance.random() < 0.3 else []
                queue = chance.choice(QUEUES).name
                key, priority = chance.choice("abcdefgh"), chance.randint(-1, 1)
                machine.enqueue(queue=queue, after=given, priority=priority, key=key)
            case 2 | 3 | 4:
                for _ in range(min(len(machine.unsynced), chance.randint(1, 4))):
                    self.take(machine.sync())
                return
            case 5 if self.acknowledged:
                machine.cancel(chance.choice([*self.acknowledged]))
            case 6 if self.settling:
                done = self.settling.pop()
                machine.settles(done)
            case 7:
                machine.passes(chance.choice([1, 6, 15, 400]))
            case 8 if chance.random() < 0.3:
                machine.refuse(chance.choice(QUEUES).name)
            case 9 if chance.random() < 0.2:
                self.crash()
                return
            case _ if self.watched:
                self.play_worker()
            case _:
                return
        self.take(machine.done)

    def play_worker(self) -> None:
        task, worker = self.chance.choice([*self.watched.items()])
        names = {"id": task, "worker": worker}
        if (task, worker) not in self.turns:
            if self.chance.random() < 0.2:
                del self.watched[task]
                self.machine.send(e.Idle(reason="no program", **names))
                return
            self.turns.add((task, worker))
            self.machine.send(e.Began(**names))
            return
        match self.chance.randrange(4):
            case 0:
                del self.watched[task]
                self.machine.send(e.Lost(reason="its turn failed", **names))
            case 1:
                self.machine.send(e.Limited(until=self.machine.now + 300, **names))
            case _:
                del self.watched[task]
                self.machine.send(e.Done(text="done", **names))

    def crash(self) -> None:
        self.watched, self.settling = {}, set()
        self.take(self.machine.begin())

    # What must always hold.

    def check(self) -> None:
        state = self.machine.rules.state
        for settings in QUEUES:
            assert len(state.queues[settings.name].places) <= settings.max_parallel
        assert all(count <= 1 for count in self.sessions.values()), "one session per dispatch"
        for task in self.acknowledged:
            assert state.tasks.is_known(task), "nothing acknowledged is lost"
        begun = Counter(task for task, _ in self.turns)
        for task, count in begun.items():
            known = state.tasks.get(task)
            assert known is None or count <= known.max_attempts

    def finish(self) -> None:
        """Let everything end, without further faults."""
        for _ in range(5_000):
            while self.machine.unsynced:
                self.take(self.machine.sync())
            if self.watched:
                self.play_worker()
            elif self.settling:
                self.machine.settles(self.settling.pop())
            elif all(each.is_notified for each in self.machine.rules.state.tasks):
                return
            else:
                self.machine.passes(400)
            self.take(self.machine.done)
        raise AssertionError("a task never ends")


@pytest.mark.parametrize("seed", range(150))
def test_each_task_ends_once_and_begins_at_most_once_per_attempt(seed: int) -> None:
    world = World(seed)
    world.take(world.machine.begin())
    for _ in range(STEPS):
        world.step()
        world.check()
    world.crash()
    world.finish()
    world.check()
    for queue, ledger in world.machine.ledgers.items():
        ends = Counter(each["id"] for each in ledger if each["kind"] == "ended")
        assert set(ends.values()) <= {1}
        tasks = world.machine.fold(queue).tasks
        assert all(each.has_ended and each.is_notified for each in tasks)
    assert world.acknowledged

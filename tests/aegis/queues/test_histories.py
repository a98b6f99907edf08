"""Random histories of queues: clients, workers, a disk that refuses, kills and losses of power."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pytest

from aegis.journal.archive import Keep
from aegis.protocol.queues import (
    CancelTask,
    Delegate,
    Enqueue,
    MoveTask,
    PauseQueue,
    ResumeQueue,
    RetryTask,
)
from aegis.queues.tasks import QueueSettings
from tests.aegis.queues.office import Office, play
from tests.aegis.simulated_daemon import WRITES, Answer

STEPS = 120

QUEUES = (
    QueueSettings(name="one", agent="claude", account="claude"),
    QueueSettings(name="wide", agent="claude", account="claude", max_parallel=3, max_attempts=2),
    QueueSettings(name="other", agent="codex", account="codex", max_parallel=2),
)
PLACES = {each.name: each.max_parallel for each in QUEUES}


class History:
    """The clients and workers of an office, which act at random; what was promised is kept.

    ``ends`` has the ends that clients or senders were notified of, by task and number of retries.
    """

    def __init__(self, office: Office) -> None:
        self.office = office
        self.chance = office.chance
        self.acked: dict[str, str] = {}
        self.keys: dict[tuple[str, str], str] = {}
        self.cancelled: set[str] = set()
        self.retried: Counter[str] = Counter()
        self.after: dict[str, list[str]] = {}
        self.asked: list[tuple[Any, Answer[Any]]] = []
        office.agents.spawned = lambda request: self.check_places(request.queue or "")

    def check_places(self, queue: str) -> None:
        open_now = [h for h in self.office.agents.sessions if h.startswith(f"{queue}-")]
        begun = [h for h in open_now if self.office.agents.sessions[h].state == "working"]
        assert len(begun) <= PLACES[queue], f"too many sessions of {queue} work at once"

    async def step(self) -> None:
        office, chance = self.office, self.chance
        match chance.randrange(17):
            case 0 | 1 | 2:
                self.enqueue()
            case 3 if self.acked:
                self.ask(CancelTask(task_id=chance.choice([*self.acked])))
            case 4 if self.acked:
                self.ask(RetryTask(task_id=chance.choice([*self.acked])))
            case 5:
                command = chance.choice([PauseQueue, ResumeQueue, ResumeQueue])
                self.ask(command(queue=chance.choice(QUEUES).name))
            case 6:
                self.ask(Delegate(queue=chance.choice(QUEUES).name, payload="work", timeout=50))
            case 7:
                await office.passes(chance.choice([1, 6, 15, 400]))
            case 8 if chance.random() < 0.4:
                office.plan.refuses = chance.choice([WRITES, {"fdatasync"}, {"write"}])
            case 9:
                office.plan.refuses = ()
            case 10 if chance.random() < 0.3:
                await self.restart()
            case 11:
                await office.passes(chance.uniform(0, 0.02))
            case 12 if self.acked:
                self.move()
            case _:
                self.work()
        self.collect()

    def enqueue(self) -> None:
        chance = self.chance
        after = chance.sample([*self.acked], min(2, len(self.acked)))
        self.ask(
            Enqueue(
                queue=chance.choice(QUEUES).name,
                payload="work",
                key=chance.choice([None, *"abcdefgh"]),
                after=after if chance.random() < 0.3 else [],
                priority=chance.randint(-1, 1),
            )
        )

    def move(self) -> None:
        chance = self.chance
        task, other = chance.choice([*self.acked]), chance.choice([*self.acked])
        place: Any = chance.choice([{"to": "first"}, {"to": "last"}, {"before": other}])
        self.ask(MoveTask(queue=self.acked[task], task_id=task, **place))

    def ask(self, request: Any) -> None:
        self.asked.append((request, self.office.ask_soon(request)))

    def collect(self) -> None:
        """Note what was promised by the answers that have come."""
        for request, answer in self.asked:
            if answer.value is None:
                continue
            match request:
                case Enqueue() | Delegate():
                    self.acked[answer.value.task_id] = request.queue
                    if request.key is not None:
                        known = self.keys.setdefault(
                            (request.queue, request.key), answer.value.task_id
                        )
                        assert known == answer.value.task_id, "a key has one task"
                    if isinstance(request, Enqueue) and request.key is None:
                        self.after[answer.value.task_id] = request.after
                case CancelTask():
                    assert answer.value.status == "cancelled"
                    self.cancelled.add(request.task_id)
                case RetryTask():
                    self.retried[request.task_id] += 1
                    self.cancelled.discard(request.task_id)
        self.asked = [(r, a) for r, a in self.asked if a.value is None and a.error is None]

    def work(self) -> None:
        """Let one open session begin, or end its turn in some way."""
        agents, chance = self.office.agents, self.chance
        handles = [each for each in agents.sessions if agents.is_open(each)]
        if not handles:
            return
        handle = chance.choice(handles)
        session = agents.sessions[handle]
        if session.state != "working":
            if session.turn == 0 or session.limited_until is not None:
                session.limited_until = None
                agents.begin(handle)
            return
        match chance.randrange(6):
            case 0:
                agents.end(handle, "failed", "")
            case 1:
                agents.limit(handle, self.office.in_seconds(300))
            case 2:
                agents.close(handle)
            case _:
                agents.end(handle)

    async def restart(self) -> None:
        office = self.office
        self.collect()
        self.asked = []  # their callers may get an answer of either kind
        office.plan.refuses = ()
        await office.restart(power_fails=self.chance.random() < 0.5)
        await self.check()

    async def check(self) -> None:
        """Check what holds whenever the disk accepts."""
        for task in self.acked:
            info = await self.office.show(task)
            if task in self.cancelled:
                assert info.status == "cancelled", "an acknowledged cancellation holds"
            assert info.attempt <= info.max_attempts
            if info.started is not None:
                for each in self.after.get(task, []):
                    assert (await self.office.show(each)).status == "completed"
        opened = Counter(self.office.agents.opened)
        assert not opened or max(opened.values()) == 1, "one session per dispatch"

    async def finish(self) -> None:
        """Let everything end, without further faults."""
        office, agents = self.office, self.office.agents
        office.plan.refuses = ()
        await office.passes(10)
        for each in QUEUES:
            await office.ask(ResumeQueue(queue=each.name))
        for _ in range(400):
            self.collect()
            statuses = Counter(each.status for each in await office.listed())
            if not statuses.keys() - {"completed", "failed", "cancelled"}:
                break
            for handle in [each for each in agents.sessions if agents.is_open(each)]:
                session = agents.sessions[handle]
                if session.state != "working":
                    session.limited_until = None
                    agents.begin(handle)
                agents.end(handle)
            await office.passes(20)
        else:
            raise AssertionError(f"a task never ends: {statuses}")
        await office.passes(100)
        assert not [each for each in agents.sessions if agents.is_open(each)], "sessions are closed"


SEEDS = [*range(60), *(pytest.param(each, marks=pytest.mark.long) for each in range(60, 1_060))]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_task_ends_once_and_begins_at_most_once_per_attempt(seed: int) -> None:
    async def story(office: Office) -> None:
        history = History(office)
        for _ in range(STEPS):
            await history.step()
        await history.restart()
        await history.finish()
        await history.check()
        before = {each.task_id: attrs.evolve(each, waits="") for each in await office.listed()}
        await office.restart(power_fails=True)
        after = {each.task_id: attrs.evolve(each, waits="") for each in await office.listed()}
        assert before == after, "a restart changes nothing that clients see"
        for name in PLACES:
            info = await office.queue(name)
            assert (info.running, info.pending, info.waiting, info.problem) == (0, 0, 0, "")

    # In half of them nearly all that is over is in the archive.
    play(story, *QUEUES, seed=seed, keep=Keep(newest=2, days=0) if seed % 2 else Keep())

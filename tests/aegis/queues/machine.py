"""The rules of queues without a disk and without sessions: a test syncs lines and plays workers."""

from __future__ import annotations

from typing import Any, TypeVar

from aegis.protocol.queues import Delegate, Enqueue
from aegis.queues import events as e
from aegis.queues.ledger import Fold
from aegis.queues.rules import Queues
from aegis.queues.tasks import QueueSettings, Task

A = TypeVar("A")

NOW = 1_779_458_605.0
BUILD = QueueSettings(name="build", agent="claude", account="claude")


def task_id(number: int) -> str:
    return f"{number:026d}"


class Machine:
    """The rules, with the ledgers of their queues and the actions of the last event.

    With ``syncs`` each line is durable at once.
    """

    def __init__(self, *queues: QueueSettings, syncs: bool = True) -> None:
        self.settings = queues or (BUILD,)
        self.syncs = syncs
        self.now = NOW
        self.count = 0
        self.ledgers: dict[str, list[dict[str, object]]] = {each.name: [] for each in self.settings}
        self.unsynced: list[e.Write] = []
        self.done: list[e.Action] = []
        self.begin()

    def begin(self) -> list[e.Action]:
        """Begin a life of the daemon with what is in the ledgers."""
        self.rules, self.unsynced = Queues(), []
        loaded = []
        for each in self.settings:
            fold = self.fold(each.name)
            loaded.append(
                e.Loaded(
                    settings=each,
                    tasks=[*fold.tasks],
                    dropped=fold.tasks.dropped,
                    numbers=fold.numbers,
                    paused=fold.paused,
                )
            )
        return self.send(e.Recovering(queues=loaded))

    def fold(self, queue: str) -> Fold:
        fold = Fold()
        for line in self.ledgers[queue]:
            fold.apply(line)
        assert fold.skipped == 0
        return fold

    def send(self, event: e.Event) -> list[e.Action]:
        """Send an event; return its actions, and those of the lines that are synced with it."""
        self.done = [*self._sent(event)]
        while self.syncs and self.unsynced:
            self.done += self.sync()
        return self.done

    def _sent(self, event: e.Event) -> list[e.Action]:
        actions = self.rules.handle(event, self.now)
        self.unsynced += [each for each in actions if isinstance(each, e.Write)]
        return actions

    def sync(self) -> list[e.Action]:
        """Make the oldest line durable."""
        write = self.unsynced.pop(0)
        self.ledgers[write.queue].append(dict(write.append.line))
        return self._sent(e.Synced(number=write.append.number))

    def refuse(self, queue: str) -> list[e.Action]:
        """Let the disk refuse all lines of a queue that are not synced."""
        self.unsynced = [each for each in self.unsynced if each.queue != queue]
        self.done = self._sent(e.Refused(queue=queue, sentence="the disk is full"))
        return self.done

    def enqueue(self, payload: str = "work", *, sender: str = "human", **fields: Any) -> str:
        """Enqueue a task; return the id that it has if it is new."""
        self.count += 1
        request = Enqueue(queue=fields.pop("queue", "build"), payload=payload, **fields)
        self._ask(request, sender)
        return task_id(self.count)

    def delegate(self, *, by: str | None = None, queue: str = "build") -> str:
        self.count += 1
        sender = "human" if by is None else f"agent:{by}"
        self._ask(Delegate(queue=queue, payload="work", from_handle=by), sender)
        return task_id(self.count)

    def _ask(self, request: Enqueue | Delegate, sender: str) -> None:
        caller = self.count
        self.send(e.Enqueuing(request=request, id=task_id(caller), sender=sender, caller=caller))

    def cancel(self, task: str, by: str | None = None) -> None:
        self.count += 1
        self.send(e.Cancelling(id=task, by=by, caller=self.count))

    def retry(self, task: str) -> None:
        self.count += 1
        self.send(e.Retrying(id=task, caller=self.count))

    def begins(self, task: str) -> None:
        self.send(e.Began(id=task, worker=self.worker(task)))

    def completes(self, task: str, text: str = "done") -> None:
        self.send(e.Done(id=task, worker=self.worker(task), text=text))

    def loses(self, task: str, reason: str = "its turn failed", text: str = "") -> None:
        self.send(e.Lost(id=task, worker=self.worker(task), reason=reason, text=text))

    def is_idle(self, task: str, reason: str = "no program") -> None:
        self.send(e.Idle(id=task, worker=self.worker(task), reason=reason))

    def is_limited(self, task: str, seconds: float) -> None:
        until = self.now + seconds
        self.send(e.Limited(id=task, worker=self.worker(task), until=until))

    def settles(self, task: str) -> None:
        self.send(e.Settled(id=task))

    def passes(self, seconds: float) -> None:
        """Let time pass, with the tick at its end."""
        self.now += seconds
        self.send(e.Tick())

    def worker(self, task: str) -> str:
        return self.task(task).worker or ""

    def task(self, task: str) -> Task:
        return self.rules.state.tasks[task]

    def status(self, task: str) -> str:
        return self.rules.state.info(task).status

    def actions(self, kind: type[A]) -> list[A]:
        """Return the actions of this kind that followed from the last event."""
        return [each for each in self.done if isinstance(each, kind)]

    def opened(self) -> list[str]:
        """Return the tasks for which the last event opened a session."""
        return [each.task.id for each in self.actions(e.Open)]

    def refusal(self) -> str:
        """Return why the last client was refused."""
        [failed] = self.actions(e.Fail)
        return str(failed.error)

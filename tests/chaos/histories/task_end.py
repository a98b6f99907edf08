"""The undisturbed end of a history with queues: every task ends, and everything is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import trio

from aegis.journal.disk import read_file
from aegis.journal.ledger import scan
from aegis.protocol import agents
from aegis.protocol import queues as api
from aegis.protocol.derived.wire import to_plain
from tests.chaos.histories import script as s
from tests.chaos.histories.asking import Asker
from tests.chaos.histories.tree import STATE
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.notebook import Notebook

MOST_BYTES = 2**24
"""The most bytes of a ledger that are read."""

PATIENCE_S = 900.0
LOOK_S = 1.0


class TaskEnd:
    """The reader of everything about tasks, as the client behind ``asker``."""

    def __init__(
        self, asker: Asker, book: Notebook, sound_disk: Callable[[], SimulatedDisk]
    ) -> None:
        self._asker = asker
        self._book = book
        self._sound_disk = sound_disk

    async def settle(self) -> None:
        """Resume the queues, and wait until all tasks have ended and no worker is left."""
        for queue in s.QUEUES:
            await self._asker.ask(api.ResumeQueue(queue=queue))
        left = await self._left()
        for _ in range(round(PATIENCE_S / LOOK_S)):
            if not left:
                break
            await trio.sleep(LOOK_S)
            left = await self._left()
        self._book.tasks.stuck += left

    async def _left(self) -> list[str]:
        """Return a sentence for each task without an end, and each worker that is open."""
        found = [
            f"{each['task_id']} is {each['status']}: {each['error']}"
            for each in await self._tasks()
            if not each["ended"]
        ]
        listed = await self._asker.ask(agents.ListSessions())
        found += [
            f"the worker {info.handle} is {info.state}"
            for info in (() if listed.value is None else listed.value.result)
            if info.spawned_by.startswith("queue:")
        ]
        if not found and not self._are_notified():
            found.append("an end is not noted as notified")
        return found

    def _are_notified(self) -> bool:
        """Return whether nothing follows from any end any more, as far as the disk says."""
        for ledger in self._ledgers().values():
            kinds = [line["kind"] for line in ledger]
            if kinds.count("ended") > kinds.count("notified"):
                return False
        return True

    async def _tasks(self) -> list[Any]:
        listed = await self._asker.ask(api.ListTasks(limit=1000))
        return [] if listed.value is None else [to_plain(each) for each in listed.value.result]

    def _ledgers(self) -> dict[str, tuple[Any, ...]]:
        found = {}
        for queue in s.QUEUES:
            path = STATE.queues / f"{queue}.jsonl"
            data = read_file(self._sound_disk(), path, max_bytes=MOST_BYTES) or b""
            found[queue] = tuple(each for line in scan(data).lines for each in _steps(line.fields))
        return found

    async def read(self) -> None:
        """Read the tasks and the ledgers."""
        self._book.tasks.tasks += await self._tasks()
        self._book.tasks.ledgers = self._ledgers()


def _steps(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the steps of a task that a line of its queue's ledger stores."""
    changes = line["set"]
    kinds = {
        "ended": changes.get("ended") is not None,
        "notified": changes.get("is_notified") is True,
        "retried": "retries" in changes,
    }
    yield from ({"kind": kind, "id": line["id"]} for kind, holds in kinds.items() if holds)

"""Queues of tasks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Literal

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import Gap, StatesKind
from aegis.client.streams import Stream
from aegis.protocol.queue_streams import QueueItem, QueuesItem
from aegis.protocol.queues import (
    DELEGATE_S,
    CancelTask,
    Delegate,
    Enqueue,
    Enqueued,
    GetTask,
    ListQueues,
    ListTasks,
    MoveTask,
    PauseQueue,
    QueueInfo,
    QueueList,
    ResumeQueue,
    RetryTask,
    TaskInfo,
    TaskList,
)

TaskIds = list[str]


QueuesValue = QueuesItem | QueueItem | Gap


class Queues(Noun):
    """Queues of tasks."""

    async def enqueue(
        self,
        queue: str,
        payload: str,
        *,
        callback: bool = True,
        key: str | None = None,
        after: TaskIds | None = None,
        priority: int = 0,
        not_before: str | None = None,
        max_attempts: int | None = None,
        max_runtime_s: float | None = None,
    ) -> Enqueued:
        """Give a task to a queue; durable on return. The same ``key`` returns the same task.

        ``after`` are the ids of tasks that must complete before; ``not_before`` is an ISO time.
        With ``callback`` a message comes to the inbox when the task has ended.
        """
        return await self._call(
            Enqueue,
            queue=queue,
            payload=payload,
            callback=callback,
            key=key,
            after=after,
            priority=priority,
            not_before=not_before,
            max_attempts=max_attempts,
            max_runtime_s=max_runtime_s,
        )

    async def delegate(
        self, queue: str, payload: str, *, timeout: float = DELEGATE_S, key: str | None = None
    ) -> TaskInfo:
        """Give a task to a queue and wait at most ``timeout`` seconds for its end."""
        return await self._call(Delegate, queue=queue, payload=payload, timeout=timeout, key=key)

    async def task(self, task_id: str) -> TaskInfo:
        """Return the status of a task, and its result."""
        return await self._call(GetTask, task_id=task_id)

    async def tasks(self, *, queue: str | None = None, limit: int = 50) -> TaskList:
        """List the tasks of a queue, or of all: running, pending, waiting, then ended ones."""
        return await self._call(ListTasks, queue=queue, limit=limit)

    async def cancel(self, task_id: str) -> TaskInfo:
        """Cancel a task that has not ended."""
        return await self._call(CancelTask, task_id=task_id)

    async def retry(self, task_id: str) -> TaskInfo:
        """Enqueue a failed or cancelled task again."""
        return await self._call(RetryTask, task_id=task_id)

    async def move(
        self,
        queue: str,
        task_id: str,
        *,
        before: str | None = None,
        to: Literal["first", "last"] | None = None,
    ) -> TaskInfo:
        """Move a task that has not begun directly before another one, or to an end of the queue."""
        return await self._call(MoveTask, queue=queue, task_id=task_id, before=before, to=to)

    async def list(self) -> QueueList:
        """List the queues with the numbers of their tasks."""
        return await self._call(ListQueues)

    async def pause(self, queue: str) -> QueueInfo:
        """Start no further task of a queue."""
        return await self._call(PauseQueue, queue=queue)

    async def resume(self, queue: str) -> QueueInfo:
        """Start the tasks of a paused queue again."""
        return await self._call(ResumeQueue, queue=queue)

    def follow(self) -> AbstractAsyncContextManager[Stream[QueuesValue]]:
        """Open the stream of queues, with ``async with``: all of them, then changes."""
        session = self._session
        kind = StatesKind[QueuesValue](session.handle, "queues", QueuesItem, QueueItem)
        return session.watch(Stream(session, kind))

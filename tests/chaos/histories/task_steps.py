"""The steps of a simulated client on queues and their tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aegis.protocol import queues as api
from tests.chaos.checking.task_evidence import Enqueued, TaskOrdered
from tests.chaos.histories import script as s
from tests.chaos.histories.asking import Answered, Asker
from tests.chaos.notebook import Notebook

KEYED = 70_000
"""The first number of the orders of tasks with a key: the same key has the same order."""


class TaskSteps:
    """The steps on tasks of the client behind ``asker``, called ``handle``."""

    def __init__(self, handle: str, asker: Asker, book: Notebook) -> None:
        self._handle = handle
        self._ask = asker.ask
        self._book = book

    async def do(self, step: s.Step) -> None:
        """Do one step."""
        await DOERS[type(step)](self, step)

    def _caller(self, by: str | None) -> str | None:
        """Return the handle of the caller; a session calls only once it is known."""
        known = {each.handle for each in self._book.agents.spawned if each.done}
        return None if by == s.HUMAN else by if by in known else self._handle

    async def enqueue(self, step: s.EnqueueStep) -> None:
        """Enqueue a task; one with a key may have been enqueued before."""
        by = self._caller(step.by)
        number, key = step.number, None
        if step.key is not None:
            place = 100 * s.QUEUES.index(step.queue) + 10 * step.client + step.key
            number, key = KEYED + place, f"k{step.key}.{step.kind}"
        names = sorted({each.id for each in self._book.tasks.enqueued if each.id is not None})
        after = () if not names else tuple(names[each % len(names)] for each in step.after)
        token = f"@work.{number}.{step.kind}@"
        request = api.Enqueue(
            queue=step.queue,
            payload=token,
            callback=step.callback or key is not None,
            key=key,
            after=[*dict.fromkeys(after)],
            priority=step.priority,
            from_handle=by,
        )
        await self._ask(request, partial(self._enqueued, request, token))

    async def delegate(self, step: s.DelegateStep) -> None:
        """Enqueue a task and wait for its end."""
        token = f"@work.{step.number}.{step.kind}@"
        by = self._caller(step.by)
        request = api.Delegate(
            queue=step.queue, payload=token, timeout=step.timeout_s, from_handle=by
        )
        await self._ask(request, partial(self._enqueued, request, token))

    def _enqueued(self, request: Any, token: str, answered: Answered) -> None:
        value, only = answered.value, isinstance(request, api.Enqueue)
        self._book.tasks.enqueued.append(
            Enqueued(
                queue=request.queue,
                token=token,
                sender=request.from_handle or s.HUMAN,
                span=answered.span,
                id=None if value is None else value.task_id,
                key=request.key,
                callback=request.callback if only else True,
                after=tuple(request.after) if only else (),
                ended=value.status if value is not None and not only and value.ended else None,
            )
        )

    async def order(self, step: s.OrderTaskStep) -> None:
        """Cancel a task, or retry it."""
        names = [each.id for each in self._book.tasks.enqueued if each.id is not None]
        if not names:
            return
        name = names[step.draw % len(names)]
        request = (api.CancelTask if step.what == "cancel" else api.RetryTask)(task_id=name)
        await self._ask(request, partial(self._ordered, step.what, name))

    def _ordered(self, what: Any, name: str, answered: Answered) -> None:
        self._book.tasks.ordered.append(
            TaskOrdered(kind=what, id=name, span=answered.span, done=answered.is_done)
        )

    async def pause(self, step: s.PauseQueueStep) -> None:
        """Pause a queue, or resume it."""
        form = api.PauseQueue if step.is_paused else api.ResumeQueue
        await self._ask(form(queue=step.queue))

    async def read(self, step: s.ReadTasksStep) -> None:
        """Read the queues, and the tasks of one."""
        await self._ask(api.ListQueues())
        listed = await self._ask(api.ListTasks(queue=step.queue, limit=5))
        for each in () if listed.value is None else listed.value.result[:1]:
            await self._ask(api.GetTask(task_id=each.task_id))


DOERS: dict[type[s.Step], Callable[[TaskSteps, Any], Awaitable[None]]] = {
    s.EnqueueStep: TaskSteps.enqueue,
    s.DelegateStep: TaskSteps.delegate,
    s.OrderTaskStep: TaskSteps.order,
    s.PauseQueueStep: TaskSteps.pause,
    s.ReadTasksStep: TaskSteps.read,
}

"""The pane of queues: each with its tasks, as they are dispatched and end."""

from __future__ import annotations

from typing import ClassVar

import trio
from textual.binding import Binding, BindingType

from aegis.agents.render import StyledSegment
from aegis.client.client import Client
from aegis.protocol.queues import QueueInfo, TaskInfo
from aegis.shown_text import escape_line, escape_text
from aegis.tui.model.times import counted, since
from aegis.tui.panes.pane import Desk
from aegis.tui.panes.subjects import SubjectsPane
from aegis.tui.widgets.parts_view import Passage

MAX_TASKS = 100
REFRESH_S = 0.5
"""Shortest time between two reads of the tasks."""

TASK_DOTS = {
    "running": "🟢",
    "limited": "🟡",
    "completed": "✅",
    "failed": "🔴",
    "cancelled": "⚪",
    "pending": "⚪",
    "waiting": "⚪",
}


class QueuesPane(SubjectsPane):
    """The queues and their tasks; keys act on the selected one."""

    name_ = "queues"
    hint = "↑↓ p pause · x cancel · r retry"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause or resume the queue", show=False),
        Binding("x", "cancel", "cancel the task", show=False),
        Binding("r", "retry", "enqueue the task again", show=False),
    ]

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self._wake: trio.Event | None = None
        self._tasks: list[TaskInfo] = []

    async def show_stream(self, client: Client) -> None:
        while True:
            self._wake = trio.Event()
            self._tasks = (await client.queues.tasks(limit=MAX_TASKS)).result
            self._draw()
            await trio.sleep(REFRESH_S)
            await self._wake.wait()

    def changed(self) -> None:
        if self._wake is not None:
            self._wake.set()
        if self._is_shown:
            self._draw()

    def _draw(self) -> None:
        queues = [*self.desk.world.queues.values()]
        passages = []
        for queue in sorted(queues, key=lambda each: each.queue):
            passages.append(_queue_passage(queue))
            tasks = [each for each in self._tasks if each.queue == queue.queue]
            passages += [_task_passage(each, self.desk.now()) for each in tasks]
        if not queues:
            text = "no queue: add `queues:` to .aegis.yaml, then restart the daemon"
            passages.append(Passage([StyledSegment(text, "dim")]))
        self.show(passages)
        running, pending = (
            sum(getattr(q, name) for q in queues) for name in ("running", "pending")
        )
        self.set_status(f"{counted(len(queues), 'queue')} · {running} running · {pending} pending")

    def _selected_task(self) -> TaskInfo | None:
        """Return the selected task."""
        found = (each for each in self._tasks if each.task_id == self.selected)
        return next(found, None)

    def action_pause(self) -> None:
        task = self._selected_task()
        name = self.selected if task is None else task.queue
        queue = self.desk.world.queues.get(name)
        if queue is None:
            return

        async def switch(client: Client) -> None:
            queues = client.queues
            await (queues.resume(name) if queue.paused else queues.pause(name))

        self.act(name, switch)

    def action_cancel(self) -> None:
        task = self._selected_task()
        if task is None:
            self.desk.show_remark("select a task: it is cancelled")
            return
        number = task.task_id

        async def cancel(client: Client) -> None:
            await client.queues.cancel(number)

        self.act(f"task {number[-6:]}", cancel, confirms="cancel")

    def action_retry(self) -> None:
        task = self._selected_task()
        if task is None:
            self.desk.show_remark(
                "select a task that failed or was cancelled: it is enqueued again"
            )
            return
        number = task.task_id

        async def retry(client: Client) -> None:
            lost = (await client.queues.retry(number)).failed_with
            if lost:
                self.desk.show_remark(f"failed with it, and not retried: {', '.join(lost)}")

        self.act(f"task {number[-6:]}", retry)


def _queue_passage(queue: QueueInfo) -> Passage:
    words = [f"{queue.running}/{queue.max_parallel} running", f"{queue.pending} pending"]
    words += [f"{queue.waiting} waiting"] if queue.waiting else []
    words += [f"{queue.ended} ended", f"agent {escape_line(queue.agent)}"]
    heading = [("▣ ", "cyan"), (escape_line(queue.queue), "bold"), ("  ", "")]
    heading.append((" · ".join(words), "dim"))
    if queue.paused:
        heading.append(("  PAUSED", "bold yellow"))
    if queue.limited_until:
        heading.append((f"  usage limit until {queue.limited_until[11:16]}", "yellow"))
    problem = [StyledSegment(escape_line(queue.problem), "red")] if queue.problem else []
    return Passage(problem, edge=(" ", ""), heading=heading, gap=0, key=queue.queue)


def _task_passage(task: TaskInfo, now: float) -> Passage:
    at = since(task.ended or task.started or task.enqueued, now)
    place = "" if task.queued_position is None else f" · {task.queued_position} before it"
    heading = [
        (f"{TASK_DOTS[task.status]} ", ""),
        (f"{task.status:<10}", "bold"),
        (escape_line(task.payload.split("\n")[0][:80]), ""),
        (f"  {escape_line(task.worker or '')}{place}", "dim"),
        (f"waits {task.waits}" if task.waits else "", "yellow"),
    ]
    text = task.error or task.result or ""
    style = "red" if task.error else "dim"
    shown = escape_text("\n".join(text.split("\n")[:3]))
    return Passage(
        [StyledSegment(shown, style)] if shown else [],  # type: ignore[arg-type]
        edge=("   ", ""),
        heading=heading,
        right=at,
        copied=task.result or task.payload,
        gap=0,
        key=task.task_id,
    )

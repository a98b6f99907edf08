"""``Workers``: opens the sessions of tasks, follows them, and closes them.

Each call runs in a task of the desk's actor.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import attrs
import trio

from actors import AskError, System
from aegis.clock import utc_now
from aegis.errors import AegisError, NotFound, Unavailable
from aegis.protocol.agents import AgentInfo, SpawnWorker
from aegis.protocol.feeds import SessionPlace
from aegis.protocol.inboxes import MAX_BODY_CHARS, Deliver
from aegis.protocol.requests import ASK_HUMAN, ListRequests
from aegis.protocol.terminals import ListTerminals
from aegis.queues import events as e
from aegis.queues import faults
from aegis.queues.tasks import Task, earlier_workers
from aegis.queues.worker import (
    HOLD_S,
    LIMIT_S,
    IsDone,
    IsIdle,
    IsLimited,
    IsLost,
    Verdict,
    Waits,
    WorkerWatch,
)
from aegis.turns.services import Services
from aegis.turns.sessions import CLOSE_S, Sessions

SPAWN_S = 120.0
LIST_S = 10.0
"""Seconds that the calls may take before they are repeated."""

GO_ON = (
    "The usage limit that stopped you has ended. Continue your task where you were; its text is "
    "above."
)

Report = Callable[[e.Event], None]


@attrs.frozen
class Workers:
    """The workers of all queues; ``report`` takes the events of a worker, ``now`` is the clock."""

    system: System
    report: Report = attrs.field(repr=False)
    now: Callable[[], float]
    _sessions: Sessions = attrs.field(init=False, repr=False)
    _opening: dict[str, trio.Event] = attrs.field(factory=dict, init=False)

    @_sessions.default
    def _of_system(self) -> Sessions:
        return Sessions(Services(self.system))

    async def run(self, task: Task, agent: str, *, is_new: bool) -> None:
        """Open the session of a task, unless it is open, and follow it until its end."""
        assert task.worker is not None
        opened = self._opening[task.worker] = trio.Event()
        try:
            await self._open(task, agent, is_new=is_new)
        except AegisError as error:
            self.report(e.Idle(id=task.id, worker=task.worker, reason=str(error)))
            return
        finally:
            opened.set()
            self._opening.pop(task.worker, None)
        watch = WorkerWatch()
        try:
            self.report(await self._followed(task, watch))
        except AegisError as error:  # it was purged
            self.report(e.Lost(id=task.id, worker=task.worker, reason=str(error)))

    async def close(self, worker: str) -> None:
        """Close a session, if it is open or being opened."""
        if worker in self._opening:
            await self._opening[worker].wait()
        with contextlib.suppress(NotFound):  # it was never opened
            await self._sessions.close(worker)

    async def settle(self, task: Task, *, notify: bool) -> None:
        """Close the workers of an ended task, and notify its sender if ``notify``."""
        for worker in [*earlier_workers(task), task.worker]:
            if worker is not None:
                await self.close(worker)
        if notify:
            faults.NOTIFY_BEFORE.hit(task.queue)
            await self._sessions.deliver(end_message(task))
            faults.NOTIFY_AFTER.hit(task.queue)
        self.report(e.Settled(id=task.id))

    async def go_on(self, task: Task) -> None:
        """Have the worker continue after a usage limit."""
        assert task.worker is not None
        info = await self._sessions.show(task.worker)
        message = attrs.evolve(
            _payload(task, info), id=f"task:{task.id}/go-on/{info.turn}", body=GO_ON
        )
        await self._sessions.deliver(message)

    # Opening.

    async def _open(self, task: Task, agent: str, *, is_new: bool) -> None:
        """Open the task's session with its payload, if it is not open. Raises ``AegisError``."""
        assert task.worker is not None
        if not is_new and await self._is_open(task):
            return
        request = SpawnWorker(
            profile=agent,
            prompt=task.payload,
            handle=task.worker,
            queue=task.queue,
            task_id=task.id,
        )
        faults.SPAWN_BEFORE.hit(task.queue)
        try:
            await self._sessions.services.ask("agents", request, SPAWN_S)
        except AskError as error:
            if not await self._is_open(task):
                raise Unavailable(str(error)) from error
        faults.SPAWN_AFTER.hit(task.queue)

    async def _is_open(self, task: Task) -> bool:
        """Return whether the task has a session; it has the payload then."""
        assert task.worker is not None
        try:
            info = await self._sessions.show(task.worker)
        except NotFound:
            return False
        if info.state != "closed":
            # The daemon may have ended before the payload was stored; it is stored once.
            await self._sessions.deliver(_payload(task, info))
        return True

    # Following.

    async def _followed(self, task: Task, watch: WorkerWatch) -> e.Event:
        """Report on the worker until it has done the task or will not; return that event."""
        assert task.worker is not None
        place, limited, held_until = SessionPlace(seq=0), 0, math.inf
        while True:
            news = await self._sessions.news(task.worker, place, held_until)
            if news is not None:
                place = news.place
                if watch.take(news.entries):
                    self.report(e.Began(id=task.id, worker=task.worker))
                if place.seq < news.newest:
                    continue
            verdict = await self._verdict(task.worker, watch)
            if isinstance(verdict, IsLimited) and limited < verdict.turn:
                limited = verdict.turn
                self.report(self._limited(task, verdict))
            is_held = isinstance(verdict, Waits) and verdict.is_held
            if is_held and trio.current_time() >= held_until:
                return e.Done(id=task.id, worker=task.worker, text=watch.text)
            held_until = min(held_until, trio.current_time() + HOLD_S) if is_held else math.inf
            if isinstance(verdict, IsIdle) and await self._begins_late(task.worker, place):
                continue
            end = _end(task, verdict)
            if end is not None:
                return end

    async def _begins_late(self, worker: str, place: SessionPlace) -> bool:
        """Close a session that has not begun; return whether it did meanwhile."""
        await self.close(worker)
        news = await self._sessions.news(worker, place, trio.current_time() + CLOSE_S)
        return news is not None and any(each.kind == "turn_opened" for each in news.entries)

    async def _verdict(self, worker: str, watch: WorkerWatch) -> Verdict:
        info = await self._sessions.show(worker)
        verdict = watch.verdict(info, is_busy=False)
        if not isinstance(verdict, IsDone) or info.state == "closed":
            return verdict
        if await self._asks_person(worker):
            return Waits()
        return watch.verdict(info, is_busy=True) if await self._is_busy(worker) else verdict

    async def _asks_person(self, worker: str) -> bool:
        """Return whether a question of the worker is open, whose answer comes as a message."""
        asked = ListRequests(handle=worker)
        listed = await self._sessions.services.answer("requests", asked, LIST_S)
        return any(each.tool == ASK_HUMAN for each in listed.requests)

    async def _is_busy(self, worker: str) -> bool:
        """Return whether a command runs on a terminal that the worker has subscribed to."""
        listed = await self._sessions.services.answer("terminals", ListTerminals(), LIST_S)
        return any(each.state == "running" and worker in each.subscribers for each in listed.result)

    def _limited(self, task: Task, verdict: IsLimited) -> e.Event:
        assert task.worker is not None
        until = self.now() + LIMIT_S
        if verdict.until is not None:
            until = datetime.fromisoformat(verdict.until).timestamp()
        return e.Limited(id=task.id, worker=task.worker, until=until)


def _end(task: Task, verdict: Verdict) -> e.Event | None:
    assert task.worker is not None
    names: dict[str, Any] = {"id": task.id, "worker": task.worker}
    match verdict:
        case IsIdle(reason=reason):
            return e.Idle(reason=reason, **names)
        case IsDone(text=text):
            return e.Done(text=text, **names)
        case IsLost(reason=reason, text=text):
            return e.Lost(reason=reason, text=text, **names)
    return None


def _payload(task: Task, info: AgentInfo) -> Deliver:
    """Return the first message to a worker, with the id that its spawn gives it."""
    assert task.worker is not None
    return Deliver(
        handle=task.worker,
        id=f"spawn:{info.id}",
        sender=f"queue:{task.queue}",
        body=task.payload,
        timestamp=utc_now(),
        task_id=task.id,
    )


def end_message(task: Task) -> Deliver:
    """Return the message about the end of a task to its sender."""
    body = task.result or ""
    if task.phase != "completed":
        said = f"\nits agent's last words:\n{body}" if body else ""
        has = "was cancelled" if task.phase == "cancelled" else "has failed"
        body = f"the task {has}: {task.error}{said}"
    return Deliver(
        handle=task.sender.removeprefix("agent:"),
        id=task.end_id,
        sender=f"queue:{task.queue}",
        body=body[:MAX_BODY_CHARS],
        timestamp=utc_now(),
        task_id=task.id,
        status="ok" if task.phase == "completed" else "error",
    )

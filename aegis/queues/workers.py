"""``TaskWorker``: the session of one task: opened, followed by its transcript, and closed.

``WorkerWatch`` decides what the transcript of a session says of its task; it is pure.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import attrs
import trio

from actors import AskError
from aegis.clock import utc_now
from aegis.errors import NotFound, Unavailable
from aegis.protocol.agents import AgentInfo, SpawnWorker, TranscriptEntry
from aegis.protocol.feeds import SessionPlace
from aegis.protocol.inboxes import MAX_BODY_CHARS, Deliver
from aegis.protocol.requests import ASK_HUMAN, ListRequests
from aegis.protocol.terminals import ListTerminals
from aegis.queues import faults
from aegis.queues.tasks import Task
from aegis.turns.sessions import CLOSE_S, AgentSessions
from aegis.turns.watch import ENDS, FAILED

SPAWN_S = 120.0
LIST_S = 10.0
"""Seconds that the calls may take before they are repeated."""

HOLD_S = 600.0
"""Seconds after its last turn for which a worker may wait for what it has begun."""

LOOK_AGAIN_S = 60.0
"""Seconds after which a time of day is compared with the clock again: the machine may have slept,
or its clock may have been set, and a timer counts neither."""

LIMIT_S = 300.0
"""Seconds until a worker continues after a usage limit without an end."""


@attrs.frozen
class IsIdle:
    """It has not begun, and will not without a person."""

    reason: str


@attrs.frozen
class IsDone:
    """It has done the task."""

    text: str


@attrs.frozen
class IsLost:
    """It will not do the task."""

    reason: str
    text: str


@attrs.frozen
class IsLimited:
    """It has reached a usage limit; ``until`` is UTC, ISO 8601, None if the end is unknown."""

    turn: int
    until: str | None


@attrs.frozen
class IsWaiting:
    """It continues; ``is_held``: its turn has completed, and it waits for what it has begun."""

    is_held: bool = False


Verdict = IsIdle | IsDone | IsLost | IsLimited | IsWaiting


@attrs.define
class WorkerWatch:
    """The transcript so far: whether a turn ``began``, and the end of the last one.

    ``turn`` is the number of the last turn, ``end`` the fields of its end, None while it runs.
    """

    turn: int = 0
    end: dict[str, Any] | None = None

    @property
    def began(self) -> bool:
        """Whether a turn has been opened."""
        return self.turn > 0

    @property
    def text(self) -> str:
        """The last message of the last turn that has ended."""
        return "" if self.end is None else str(self.end.get("text") or "")

    def take(self, entries: Sequence[TranscriptEntry]) -> bool:
        """Take the next entries; return whether they are the first that have a turn."""
        had_begun = self.began
        for entry in entries:
            if entry.kind == "turn_opened":
                self.turn, self.end = int(entry.fields.get("turn", self.turn + 1)), None
            elif entry.kind == "turn_ended":
                # The transcript may have been rotated in a long turn, and not have its beginning.
                number = entry.fields.get("turn")
                self.turn = max(self.turn, number if isinstance(number, int) else 1)
                self.end = entry.fields
        return self.began and not had_begun

    def verdict(self, info: AgentInfo, *, is_busy: bool) -> Verdict:
        """Return the verdict on a session in the state ``info``, which is newer than the entries.

        ``is_busy``: a command runs on a terminal that it has subscribed to.
        """
        is_over = info.state in ("closed", "error")
        if not self.began:
            return IsIdle(_reason(info)) if is_over else IsWaiting()
        if self.end is None or info.turn > self.turn:
            return IsLost(_reason(info), "") if is_over else IsWaiting()
        outcome, text = str(self.end.get("outcome")), self.text
        if outcome == "limited" and not is_over:
            return IsLimited(self.turn, info.limited_until)
        if info.blocked is not None and info.blocked.kind == "limit":
            return IsLost(info.blocked.title, text)
        if info.waiting and not is_over:
            return IsWaiting()
        if outcome != "completed":
            why = str(self.end.get("reason") or "no reason is known")
            _, ended = ENDS.get(outcome, FAILED)
            return IsLost(f"{ended}: {why}", text)
        if not is_over and (is_busy or info.blocked is not None or info.tools or info.terminals):
            return IsWaiting(is_held=True)
        return IsDone(text)


def _reason(info: AgentInfo) -> str:
    return info.reason or f"its session {info.handle!r} is {info.state}"


GO_ON = (
    "The usage limit that stopped you has ended. Continue your task where you were; its text is "
    "above."
)


class TaskAbandoned(Exception):
    """The session will not do its task; ``text`` is what it said last.

    Unless it ``has_begun``, it did nothing, is closed, and will not begin.
    """

    def __init__(self, reason: str, text: str = "", *, has_begun: bool = True) -> None:
        super().__init__(reason)
        self.text, self.has_begun = text, has_begun


@attrs.frozen
class TaskWorker:
    """The session ``handle`` of a task."""

    sessions: AgentSessions
    task: Task
    handle: str

    async def open(self, agent: str, payload: str, *, is_new: bool) -> None:
        """Open the session with its payload, if it is not open. Raises ``AegisError``.

        ``is_new``: no daemon has opened it before.
        """
        if not is_new and await self._is_open(payload):
            return
        request = SpawnWorker(
            profile=agent,
            prompt=payload,
            handle=self.handle,
            queue=self.task.queue,
            task_id=self.task.id,
        )
        faults.SPAWN_BEFORE.hit(self.task.queue)
        try:
            await self.sessions.services.ask("agents", request, SPAWN_S)
        except AskError as error:
            if not await self._is_open(payload):
                raise Unavailable(str(error)) from error
        faults.SPAWN_AFTER.hit(self.task.queue)

    async def _is_open(self, payload: str) -> bool:
        """Return whether there is a session; it has the payload then."""
        try:
            info = await self.sessions.show(self.handle)
        except NotFound:
            return False
        if info.state != "closed":
            # The daemon may have ended before the payload was stored; it is stored once.
            await self.sessions.deliver(self._message(f"spawn:{info.id}", payload))
        return True

    async def done(
        self, *, began: Callable[[], None], limited: Callable[[float | None], None]
    ) -> str:
        """Return the last message of the worker once it has done the task.

        ``began`` is called when its first turn was opened, ``limited`` with the end of a usage
        limit that it has reached, and with None when it continues.

        Raises ``TaskAbandoned`` if it will not, ``AegisError`` if its transcript is gone.
        """
        watch, place = WorkerWatch(), SessionPlace(seq=0)
        held_until = limit_ends = math.inf  # moments of Trio's clock
        until = math.inf  # the end of the limit in seconds since 1970
        limited_turn = 0
        while True:
            look = math.inf if until == math.inf else trio.current_time() + LOOK_AGAIN_S
            news = await self.sessions.news(self.handle, place, min(held_until, limit_ends, look))
            if news is not None:
                place = news.place
                if watch.take(news.entries):
                    began()
                if place.seq < news.newest:
                    continue
            if trio.current_time() >= limit_ends or time.time() >= until:
                limit_ends = until = math.inf
                limited(None)
                await self._continue_turn()
            verdict = await self._verdict(watch)
            if isinstance(verdict, IsLimited) and limited_turn < verdict.turn:
                limited_turn = verdict.turn
                until = time.time() + LIMIT_S
                if verdict.until is not None:
                    until = datetime.fromisoformat(verdict.until).timestamp()
                limited(until)
                limit_ends = trio.current_time() + max(0.0, until - time.time())
            is_held = isinstance(verdict, IsWaiting) and verdict.is_held
            if is_held and trio.current_time() >= held_until:
                return watch.text
            held_until = min(held_until, trio.current_time() + HOLD_S) if is_held else math.inf
            match verdict:
                case IsDone(text=text):
                    return text
                case IsLost(reason=reason, text=text):
                    raise TaskAbandoned(reason, text)
                case IsIdle(reason=reason) if not await self._begins_late(place):
                    raise TaskAbandoned(reason, has_begun=False)

    async def _begins_late(self, place: SessionPlace) -> bool:
        """Close a session that has not begun; return whether it did meanwhile."""
        with contextlib.suppress(NotFound):  # it was purged
            await self.sessions.close(self.handle)
        news = await self.sessions.news(self.handle, place, trio.current_time() + CLOSE_S)
        return news is not None and WorkerWatch().take(news.entries)

    async def _verdict(self, watch: WorkerWatch) -> Verdict:
        info = await self.sessions.show(self.handle)
        verdict = watch.verdict(info, is_busy=False)
        if not isinstance(verdict, IsDone) or info.state == "closed":
            return verdict
        if await self._asks_person():
            return IsWaiting()
        return watch.verdict(info, is_busy=True) if await self._is_busy() else verdict

    async def _asks_person(self) -> bool:
        """Return whether a question of the worker is open, whose answer comes as a message."""
        asked = ListRequests(handle=self.handle)
        listed = await self.sessions.services.answer("requests", asked, LIST_S)
        return any(each.tool == ASK_HUMAN for each in listed.requests)

    async def _is_busy(self) -> bool:
        """Return whether a command runs on a terminal that the worker has subscribed to."""
        listed = await self.sessions.services.answer("terminals", ListTerminals(), LIST_S)
        return any(
            each.state == "running" and self.handle in each.subscribers for each in listed.result
        )

    async def _continue_turn(self) -> None:
        info = await self.sessions.show(self.handle)
        await self.sessions.deliver(self._message(f"task:{self.task.id}/go-on/{info.turn}", GO_ON))

    def _message(self, id_: str, body: str) -> Deliver:
        return Deliver(
            handle=self.handle,
            id=id_,
            sender=f"queue:{self.task.queue}",
            body=body,
            timestamp=utc_now(),
            task_id=self.task.id,
        )


def end_message(task: Task, result: str) -> Deliver:
    """Return the message about the end of a task to its sender."""
    body = result
    if task.phase != "completed":
        said = f"\nits agent's last words:\n{result}" if result else ""
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

"""``Reporter``: the ordered, bounded stream of a driver's reports to its session."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import attrs
import trio

from actors import AskError, MailboxFull, Ref
from aegis.agents.messages import DriverEvents, DriverReport
from aegis.protocol.agent_events import AgentEvent, AssistantText, AssistantThinking

BATCH = 256
"""The maximum number of events in one report."""

MAX_PENDING = 1024
"""The number of pending events and reports from which on no further output is read."""

MAX_PENDING_BYTES = 4 * 1024 * 1024
"""The same for the bytes of output that were read while reports were pending."""

GATHER_S = 0.2
"""Seconds for which the parts of one text are gathered: an agent may send it word by word."""

MAX_GATHERED_CHARS = 16 * 1024
"""The parts of a text that become one event."""

RETRY_S = 0.05
"""The pause before a report is sent again to a session whose mailbox was full."""


class Reporter:
    """Sends reports to a session, one at a time. ``run`` must run in a task.

    Events are collected while a report is being handled: batches are small while the session is
    fast, and large while it is slow. The parts of one text that follow each other become one event;
    the first is sent at once, the others some times a second. ``on_lost`` is set when the session
    has stopped or crashed.
    """

    def __init__(self, session: Ref[Any], launch: int, on_lost: trio.Event) -> None:
        self._session = session
        self._launch = launch
        self._pending: deque[AgentEvent | DriverReport] = deque()
        self._changed = trio.Event()
        self._is_sending = False
        self._last: AgentEvent | DriverReport | None = None  # what was sent
        self._sent_at = -math.inf
        self._empty_at = 0  # the position in the output at which nothing was pending
        self.on_lost = on_lost
        self.is_lost = False
        """Whether the session has stopped or crashed: then reports are dropped."""

    async def room(self, position: int) -> None:
        """Wait until few enough reports are pending. A checkpoint only if it waits.

        ``position`` is the number of bytes of output that were read so far.
        """
        while self._is_full(position) and not self.is_lost:
            await self._changed.wait()

    def _is_full(self, position: int) -> bool:
        if not self._pending and not self._is_sending:
            self._empty_at = position
            return False
        is_large = position - self._empty_at >= MAX_PENDING_BYTES
        return is_large or len(self._pending) >= MAX_PENDING

    async def flushed(self) -> None:
        """Wait until the session has taken every report, or is lost."""
        while (self._pending or self._is_sending) and not self.is_lost:
            await self._changed.wait()

    async def run(self) -> None:
        """Send reports until the session is lost."""
        while not self.is_lost:
            while not self._pending:
                await self._changed.wait()
            await self._gather()
            self._is_sending = True
            report = self._next()
            self._notify()
            await self._send(report)
            self._is_sending = False
            self._notify()

    async def _gather(self) -> None:
        """Wait for further parts of a text of which one was sent a moment ago."""
        with trio.move_on_at(self._sent_at + GATHER_S):
            while len(self._pending) == 1 and _joined(self._last, self._pending[0]) is not None:
                await self._changed.wait()

    def add(self, item: AgentEvent | DriverReport) -> None:
        """Report an event, together with those before and after it, or something else."""
        if self.is_lost:
            return
        joined = _joined(self._pending[-1], item) if self._pending else None
        if joined is None:
            self._pending.append(item)
            self._notify()
        else:
            self._pending[-1] = joined

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _next(self) -> DriverReport:
        first = self._last = self._pending.popleft()
        self._sent_at = trio.current_time()
        if isinstance(first, DriverReport):
            return first
        events: list[AgentEvent] = [first]
        while self._pending and len(events) < BATCH:
            item = self._pending[0]
            if isinstance(item, DriverReport):
                break
            events.append(item)
            self._last = self._pending.popleft()
        return DriverEvents(launch=self._launch, events=tuple(events))

    async def _send(self, report: DriverReport) -> None:
        while True:
            try:
                await self._session.ask(report, timeout=math.inf)
            except MailboxFull:
                await trio.sleep(RETRY_S)
            except AskError:
                self._pending.clear()
                self.is_lost = True
                self.on_lost.set()
                return
            else:
                return


def _joined(
    before: AgentEvent | DriverReport | None, item: AgentEvent | DriverReport
) -> AgentEvent | None:
    """Return two parts of one text as one; None if they are not."""
    match before, item:
        case AssistantText(aborted=False), AssistantText(aborted=False):
            is_same = before.message == item.message
        case AssistantThinking(), AssistantThinking():
            is_same = True
        case _:
            return None
    if not is_same or len(before.text) + len(item.text) > MAX_GATHERED_CHARS:
        return None
    return attrs.evolve(before, text=before.text + item.text)

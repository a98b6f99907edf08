"""A simulated client that reads records, output, screens and its inbox, and waits."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs

from aegis.protocol import control
from aegis.protocol import inboxes as box
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.screens import GetScreen
from tests.chaos.checking.evidence import Answer, Handoff
from tests.chaos.checking.observations import OutputRead, RecordsRead, Span, Waited
from tests.chaos.histories import script as s
from tests.chaos.histories.agent_steps import AgentSteps
from tests.chaos.histories.asking import Answered, Asker
from tests.chaos.histories.canvas_steps import CanvasSteps
from tests.chaos.histories.client import Client
from tests.chaos.histories.group_steps import GroupSteps
from tests.chaos.histories.task_steps import TaskSteps
from tests.chaos.histories.workflow_steps import WorkflowSteps
from tests.chaos.notebook import Notebook


class Reading:
    """The steps of ``client`` that change nothing but its inbox and the size of a window."""

    def __init__(self, client: Client, asker: Asker, book: Notebook) -> None:
        self._who = client.handle
        self._places = client.places
        self._trouble = client.trouble
        self._find_id = client.find_id
        self._ask = asker.ask
        self._agents = AgentSteps(client.handle, asker, book)
        self._tasks = TaskSteps(client.handle, asker, book)
        self._groups = GroupSteps(client.handle, asker, book)
        self._canvases = CanvasSteps(asker, book, client.places.revisions, client.model)
        self._workflows = WorkflowSteps(asker, book)
        self._book = book

    async def read_records(self, step: s.ReadRecordsStep) -> None:
        """Read the records after the last that was read."""
        since = self._places.seqs.get(step.terminal, -1)
        request = api.ReadRecords(name=step.terminal, since_seq=since, from_handle=self._who)
        answered = await self._ask(request)
        if answered.value is None:
            self._places.seqs.pop(step.terminal, None)
            return
        document: Any = to_plain(answered.value)
        records = tuple(document["result"])
        self._book.reads.append(
            RecordsRead(
                terminal=step.terminal,
                span=answered.span,
                since_seq=since,
                records=records,
                more=document.get("more", False),
            )
        )
        if records:
            self._places.seqs[step.terminal] = records[-1]["seq"]

    async def read_output(self, step: s.ReadOutputStep) -> None:
        """Read the next output; without a read position, from the beginning of a command."""
        cursor = self._places.cursors.get(step.terminal)
        request = out.ReadOutput(
            name=step.terminal,
            cursor=cursor,
            max_bytes=step.max_bytes,
            wait_s=step.wait_s,
            plain=step.plain,
            from_handle=self._who,
        )
        answered = await self._ask(request)
        if answered.value is None:
            self._places.cursors.pop(step.terminal, None)
            return
        chunk: out.OutputChunk = answered.value
        self._places.cursors[step.terminal] = chunk.next_cursor
        self._book.outputs.append(
            OutputRead(
                terminal=step.terminal,
                span=answered.span,
                from_cursor=cursor,
                cursor=chunk.cursor,
                next_cursor=chunk.next_cursor,
                dropped=chunk.dropped,
                text=chunk.text,
                max_bytes=step.max_bytes,
                plain=step.plain,
            )
        )

    async def wait(self, step: s.WaitStep) -> None:
        """Wait for an event of the terminal."""
        await self._wait(step.terminal, step.timeout_s, pattern=step.pattern, idle_s=step.idle_s)

    async def _wait(
        self,
        terminal: str,
        timeout_s: float,
        *,
        seq: int | None = None,
        pattern: str | None = None,
        idle_s: float | None = None,
    ) -> Answered:
        request = out.WaitTerminal(
            name=terminal,
            seq=seq,
            pattern=pattern,
            idle_s=idle_s,
            timeout=timeout_s,
            from_handle=self._who,
        )
        answered = await self._ask(request)
        if answered.value is not None:
            document: Any = to_plain(answered.value)
            self._book.waits.append(
                Waited(
                    terminal=terminal,
                    span=answered.span,
                    seconds=answered.seconds,
                    timeout_s=timeout_s,
                    reason=document["reason"],
                    record=document["record"],
                    cursor=document["cursor"],
                    match=document["match"],
                    seq=seq,
                    pattern=pattern,
                    idle_s=idle_s,
                )
            )
        return answered

    async def screen(self, step: s.ScreenStep) -> None:
        await self._ask(GetScreen(name=step.terminal, from_handle=self._who))

    async def resize(self, step: s.ResizeStep) -> None:
        await self._ask(
            control.ResizeTerminal(
                name=step.terminal, cols=step.cols, rows=step.rows, from_handle=self._who
            )
        )

    # Inboxes.

    async def hand_off(self, step: s.HandoffStep) -> None:
        """Send a message to another client."""
        to, body = s.handle_of(step.to), f"news @news.{step.number}@"
        request = box.Handoff(target_handle=to, context=body, from_handle=self._who)
        await self._ask(request, partial(self._handed, to, body))

    def _handed(self, to: str, body: str, answered: Answered) -> None:
        receipt = None if answered.value is None else answered.value.id
        self._book.handoffs.append(Handoff(to, body, receipt, sender=self._who, span=answered.span))

    async def inbox(self, step: s.InboxStep) -> None:
        """Read the inbox, or wait for a message."""
        if self._trouble.keeps_from_reading(step.client):
            return
        after = self._places.inbox if step.acknowledges else None
        await self.read_inbox(after, step.wait_s)

    async def read_inbox(self, after: str | None, wait_s: float | None) -> Answered:
        """Read the unread messages; ``after`` acknowledges."""
        request: box.ReadInbox | box.WaitInbox
        if wait_s is None:
            request = box.ReadInbox(after=after, from_handle=self._who)
        else:
            request = box.WaitInbox(after=after, timeout=wait_s, from_handle=self._who)
        return await self._ask(request, partial(self._got, after, request))

    def _got(
        self, after: str | None, request: box.ReadInbox | box.WaitInbox, answered: Answered
    ) -> None:
        if answered.error is not None:
            answered = attrs.evolve(answered, span=Span(answered.span.asked))
        messages: Any = ()
        if answered.value is not None:
            document: Any = to_plain(answered.value)
            messages = tuple(document["messages"])
            self._places.inbox = document["next"] or self._places.inbox
        limit = request.limit if isinstance(request, box.ReadInbox) else None
        self._book.answers[self._who].append(
            Answer(messages, after, span=answered.span, limit=limit)
        )

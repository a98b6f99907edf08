"""The steps of a simulated client on workflows, and their undisturbed end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import trio

from aegis.protocol import agents, queues
from aegis.protocol import requests as req
from aegis.protocol import workflows as api
from tests.chaos.checking.agent_evidence import Entry
from tests.chaos.checking.workflow_evidence import (
    QuestionAnswered,
    WorkflowOrdered,
    WorkflowRun,
    WorkflowShown,
)
from tests.chaos.histories import script as s
from tests.chaos.histories.asking import Answered, Asker
from tests.chaos.machine.simulated_agent import agents_on
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.machine.simulated_workflow import NAME
from tests.chaos.notebook import Notebook

PATIENCE_S = 900.0
LOOK_S = 1.0
NOTIFIED_S = 5.0
"""The time, in seconds, in which the end of a workflow is reported."""

ORDERS: dict[str, Callable[..., Any]] = {
    "cancel": api.CancelWorkflow,
    "resume": api.ResumeWorkflow,
    "retry": api.RetryWorkflow,
}


class WorkflowSteps:
    """The steps on workflows of the client behind ``asker``."""

    def __init__(self, asker: Asker, book: Notebook) -> None:
        self._asker = asker
        self._ask = asker.ask
        self._notes = book.workflows

    async def do(self, step: s.Step) -> None:
        """Do one step."""
        await DOERS[type(step)](self, step)

    async def run(self, step: s.RunWorkflowStep) -> None:
        request = api.RunWorkflow(
            name=NAME,
            kwargs={"orders": [*step.orders]},
            callback=step.callback,
            key=None if step.key is None else f"k{step.key}",
            from_handle=self._asker.handle,
        )
        await self._ask(request, partial(self._ran, request, step.orders))

    def _ran(self, request: api.RunWorkflow, orders: tuple[str, ...], answered: Answered) -> None:
        self._notes.runs.append(
            WorkflowRun(
                orders=orders,
                sender=self._asker.handle,
                id=None if answered.value is None else answered.value.workflow_id,
                key=request.key,
                callback=request.callback,
                span=answered.span,
            )
        )

    def _chosen(self, draw: int) -> str | None:
        known = sorted({each.id for each in self._notes.runs if each.id is not None})
        return known[draw % len(known)] if known else None

    async def order(self, step: s.OrderWorkflowStep) -> None:
        """Cancel, resume or retry a workflow, as a person."""
        chosen = self._chosen(step.draw)
        if chosen is not None:
            note = partial(self._ordered, step.what, chosen)
            await self._ask(ORDERS[step.what](workflow_id=chosen), note)

    def _ordered(self, what: Any, id_: str, answered: Answered) -> None:
        self._notes.ordered.append(
            WorkflowOrdered(kind=what, id=id_, span=answered.span, done=answered.is_done)
        )

    async def answer(self, step: s.AnswerWorkflowStep) -> None:
        """Answer an open question of a workflow, as a person."""
        found = await self._questions()
        if not found:
            return
        texts = (f"a{step.number}", f"b{step.number}") if step.twice else (f"a{step.number}",)
        async with trio.open_nursery() as nursery:
            for text in texts:
                given = None if step.declines and text == texts[0] else text
                nursery.start_soon(self._answer, found[step.draw % len(found)], given)

    async def _questions(self) -> list[req.RequestInfo]:
        """Return the open questions of workflows."""
        listed = await self._ask(req.ListRequests())
        found = [] if listed.value is None else listed.value.requests
        return [each for each in found if each.workflow is not None]

    async def _answer(self, request: req.RequestInfo, text: str | None) -> None:
        assert request.input is not None
        [asked] = request.input["questions"]
        question = asked["question"]
        order = req.AnswerRequest(
            id=request.id,
            digest=request.digest,
            answer="deny" if text is None else "allow",
            values={} if text is None else {question: text},
        )
        await self._ask(order, partial(self._gave, request, question, text))

    def _gave(
        self, request: req.RequestInfo, question: str, text: str | None, answered: Answered
    ) -> None:
        outcome = None if answered.error is None or answered.is_done is None else "refused"
        self._notes.answered.append(
            QuestionAnswered(
                id=request.id,
                workflow=request.workflow or "",
                question=question,
                text=text,
                outcome=outcome if answered.value is None else answered.value.outcome,
                span=answered.span,
            )
        )

    async def read(self, step: s.ReadWorkflowStep) -> None:
        chosen = self._chosen(step.draw)
        if chosen is not None:
            await self._ask(api.GetWorkflow(workflow_id=chosen), self._saw)
        await self._ask(api.ListWorkflows())

    def _saw(self, answered: Answered, *, is_last: bool = False) -> None:
        found = answered.value
        if found is not None:
            self._notes.shown.append(
                WorkflowShown(
                    id=found.workflow_id,
                    status=found.status,
                    result=found.result,
                    is_last=is_last,
                    span=answered.span,
                )
            )

    # The end.

    async def settle(self) -> None:
        """Answer all questions, and wait until no workflow runs; then read all of them."""
        for queue in s.QUEUES:
            await self._ask(queues.ResumeQueue(queue=queue))
        left = await self._left()
        for number in range(round(PATIENCE_S / LOOK_S)):
            if not left:
                break
            for asked in await self._questions():
                await self._answer(asked, f"c{number}.{asked.id}")
            await trio.sleep(LOOK_S)
            left = await self._left()
        self._notes.stuck += left
        await trio.sleep(NOTIFIED_S)
        for each in sorted({run.id for run in self._notes.runs if run.id is not None}):
            await self._ask(api.GetWorkflow(workflow_id=each), partial(self._saw, is_last=True))

    async def _left(self) -> list[str]:
        listed = await self._ask(api.ListWorkflows(limit=100))
        if listed.value is None:
            return ["the workflows are not listed"]
        return [
            f"workflow {each.workflow_id} is {each.status}: {each.problem}"
            for each in listed.value.result
            if each.status == "running" or each.problem
        ] + await self._open_sessions()

    async def _open_sessions(self) -> list[str]:
        listed = await self._ask(agents.ListSessions())
        found = [] if listed.value is None else listed.value.result
        return [
            f"the session {each.handle} of {each.spawned_by} is {each.state}"
            for each in found
            if each.spawned_by.startswith("workflow:")
        ]

    def look_for_programs(self, sessions: Iterable[Entry], machine: Machine) -> None:
        """Record the sessions of workflows whose programs live."""
        self._notes.living += [
            each["handle"]
            for each in sessions
            if each["spawned_by"].startswith("workflow:") and agents_on(machine, each["id"])
        ]


DOERS: dict[type[s.Step], Callable[[WorkflowSteps, Any], Awaitable[None]]] = {
    s.RunWorkflowStep: WorkflowSteps.run,
    s.OrderWorkflowStep: WorkflowSteps.order,
    s.AnswerWorkflowStep: WorkflowSteps.answer,
    s.ReadWorkflowStep: WorkflowSteps.read,
}

"""The steps of a simulated client on agent sessions and requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from aegis.protocol import agents as api
from aegis.protocol import inboxes as box
from aegis.protocol import requests as req
from aegis.protocol import terminals as term
from tests.chaos.checking.agent_evidence import Ordered, OrderKind, Replied, Spawned, Work
from tests.chaos.histories import script as s
from tests.chaos.histories.asking import Answered, Asker
from tests.chaos.machine.simulated_agent import CLEAR
from tests.chaos.notebook import Notebook

OTHER = {"allow": "deny", "deny": "allow", "cancel": "allow"}
"""The second answer of a client that answers twice."""

TAKES_S = 5.0
"""The time, in seconds, that a person waits for the end of a turn that may never end."""

WRONG_DIGEST = "0" * 64


class AgentSteps:
    """The steps on sessions of the client behind ``asker``, called ``handle``."""

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

    async def spawn(self, step: s.SpawnAgentStep) -> None:
        token = None if step.work is None else _token(step.number, step.work)
        handle = None if step.is_unnamed else step.agent
        request = api.SpawnAgent(
            profile="asks", prompt=token, handle=handle, from_handle=self._caller(step.by)
        )
        await self._ask(request, partial(self._spawned, handle, token))

    async def fork(self, step: s.ForkAgentStep) -> None:
        token = None if step.work is None else _token(step.number, step.work)
        request = api.ForkAgent(handle=step.agent, new_handle=step.fork, prompt=token)
        await self._ask(request, partial(self._spawned, step.fork, token, fork_of=step.agent))

    def _spawned(
        self,
        handle: str | None,
        token: str | None,
        answered: Answered,
        *,
        fork_of: str | None = None,
    ) -> None:
        info = answered.value
        name = handle if info is None else info.handle
        self._book.agents.spawned.append(
            Spawned(
                handle=name or "",
                span=answered.span,
                done=answered.is_done,
                id=None if info is None else info.id,
                prompt=token,
                fork_of=fork_of,
            )
        )

    async def work(self, step: s.WorkStep) -> None:
        await self.send(step.agent, _token(step.number, step.kind), self._caller(step.by))

    async def send(self, agent: str, token: str, sender: str | None) -> Answered:
        """Send an order to a session."""
        request = box.Handoff(target_handle=agent, context=token, from_handle=sender)
        return await self._ask(request, partial(self._sent, agent, token, sender))

    def _sent(self, agent: str, token: str, sender: str | None, answered: Answered) -> None:
        self._book.agents.work.append(
            Work(
                to=agent,
                sender=sender or s.HUMAN,
                token=token,
                span=answered.span,
                receipt=None if answered.value is None else answered.value.id,
            )
        )

    async def order(self, step: s.AgentStep) -> None:
        form, kind = ORDERS[type(step)]
        request = form(handle=step.agent, from_handle=self._caller(step.by))
        await self._ask(request, partial(self._ordered, kind, step.agent))

    async def resume(self, step: s.ResumeAgentStep) -> None:
        token = None if step.work is None else _token(step.number, step.work)
        request = api.ResumeSession(handle=step.agent, prompt=token)
        await self._ask(request, partial(self._ordered, "resume", step.agent, prompt=token))

    async def clear(self, step: s.ClearStep) -> None:
        await self._ask(box.PersonHandoff(target_handle=step.agent, context=f"/{CLEAR}"))

    async def take_over(self, step: s.TakeOverStep) -> None:
        request = api.TakeOverAgent(handle=step.agent, interrupt=step.interrupts)
        note = partial(self._ordered, "takeover", step.agent)
        await self._ask(request, note, gone_after_s=TAKES_S)

    async def hand_back(self, step: s.HandBackStep) -> None:
        request = api.HandBackAgent(handle=step.agent)
        await self._ask(request, partial(self._ordered, "handback", step.agent))

    async def purge(self, step: s.PurgeAgentStep) -> None:
        request = api.PurgeAgent(handle=step.agent)
        await self._ask(request, partial(self._ordered, "purge", step.agent))

    def _ordered(
        self, kind: OrderKind, handle: str, answered: Answered, *, prompt: str | None = None
    ) -> None:
        self._book.agents.ordered.append(
            Ordered(
                kind=kind,
                handle=handle,
                span=answered.span,
                done=answered.is_done,
                prompt=prompt,
            )
        )

    async def subscribe(self, step: s.SubscribeAgentStep) -> None:
        request = term.Subscribe(name=step.terminal, from_handle=step.agent)
        if self._caller(step.agent) == step.agent:
            await self._ask(request)

    async def show(self, step: s.ShowAgentStep) -> None:
        await self._ask(api.ShowAgent(handle=step.agent))
        await self._ask(api.ListSessions())

    async def read(self, step: s.ReadSessionStep) -> None:
        by = self._caller(step.by)
        await self._ask(api.ReadSession(handle=step.agent, last_n=20, from_handle=by))

    async def answer(self, step: s.AnswerStep) -> None:
        """Answer a request of the list."""
        listed = await self._ask(req.ListRequests(state="closed" if step.is_late else "open"))
        listed_ones = () if listed.value is None else listed.value.requests
        found = [each for each in listed_ones if each.workflow is None]
        if not found:
            return
        request = found[step.draw % len(found)]
        digest = request.digest if step.is_shown else WRONG_DIGEST
        answers = (step.answer, OTHER[step.answer]) if step.twice else (step.answer,)
        async with trio.open_nursery() as nursery:
            for answer in answers:
                nursery.start_soon(self.reply, request.id, digest, answer)

    async def reply(self, request: str, digest: str, answer: Any) -> None:
        """Answer one request."""
        order = req.AnswerRequest(id=request, digest=digest, answer=answer)
        is_shown = digest != WRONG_DIGEST
        await self._ask(order, partial(self._replied, request, answer, is_shown))

    def _replied(self, request: str, answer: str, is_shown: bool, answered: Answered) -> None:
        outcome = None if answered.error is None else "refused"
        if answered.value is not None:
            outcome = answered.value.outcome
        self._book.agents.replied.append(
            Replied(
                id=request, answer=answer, is_shown=is_shown, span=answered.span, outcome=outcome
            )
        )


def _token(number: int | str, kind: str) -> str:
    return f"@work.{number}.{kind}@"


ORDERS: dict[type[s.Step], tuple[Any, OrderKind]] = {
    s.InterruptAgentStep: (api.InterruptAgent, "interrupt"),
    s.RestartAgentStep: (api.RestartAgent, "restart"),
    s.CloseAgentStep: (api.CloseAgent, "close"),
}

DOERS: dict[type[s.Step], Callable[[AgentSteps, Any], Awaitable[None]]] = {
    s.SpawnAgentStep: AgentSteps.spawn,
    s.WorkStep: AgentSteps.work,
    s.InterruptAgentStep: AgentSteps.order,
    s.RestartAgentStep: AgentSteps.order,
    s.CloseAgentStep: AgentSteps.order,
    s.ResumeAgentStep: AgentSteps.resume,
    s.ClearStep: AgentSteps.clear,
    s.TakeOverStep: AgentSteps.take_over,
    s.HandBackStep: AgentSteps.hand_back,
    s.ForkAgentStep: AgentSteps.fork,
    s.PurgeAgentStep: AgentSteps.purge,
    s.SubscribeAgentStep: AgentSteps.subscribe,
    s.ShowAgentStep: AgentSteps.show,
    s.ReadSessionStep: AgentSteps.read,
    s.AnswerStep: AgentSteps.answer,
}

"""``RequestsOut``: a session's open requests at the desk, and the answers that come from there.

A request's key is unique within the session: the number of the agent's process, and the agent's own
id of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import structlog
import trio

from actors import ActorError, Ref, Reply, describe
from aegis.agents import faults
from aegis.agents import messages as msg
from aegis.agents.drivers.harness import OWN_PREFIX
from aegis.agents.sessions.mail import MailContext
from aegis.agents.sessions.settings import PlanApproved
from aegis.agents.sessions.status import SessionIdentity
from aegis.agents.sessions.steps import AnswerAgent
from aegis.clock import utc_now
from aegis.errors import AegisError
from aegis.names import shorten
from aegis.protocol.agent_events import PermissionAnswer, RequestOpened
from aegis.protocol.agents import Blocked, BlockedKind
from aegis.protocol.inboxes import Deliver
from aegis.protocol.requests import AnswerReceived, ApplyAnswer, OpenRequest, WithdrawRequests

log = structlog.get_logger("aegis.agents")

AGAIN_S = 0.5
"""Seconds after which the desk is asked again if it did not answer."""

ANSWER_S = 10.0
"""Seconds that a driver has to write an answer."""

MAX_OUTCOMES = 256
"""Outcomes of answers that are kept, for a desk that asks again after its crash."""


@attrs.frozen(kw_only=True)
class DeskRefused:
    """The desk refused the request with this key: no person will answer it."""

    key: str


class RequestsOut:
    """The requests of the session ``identity``, whose actor is ``owner``.

    ``on_change`` is called when ``blocked`` has changed while the actor handles no message.
    """

    def __init__(
        self,
        owner: MailContext,
        path: str,
        identity: SessionIdentity,
        on_change: Callable[[], None],
    ) -> None:
        self._on_change = on_change
        self._owner = owner
        self._path = path
        self._identity = identity
        self._open: dict[str, Blocked] = {}
        self._outcomes: dict[str, AnswerReceived] = {}
        self._applying: dict[str, trio.Event] = {}

    @property
    def blocked(self) -> Blocked | None:
        """The request that has waited longest."""
        return next(iter(self._open.values()), None)

    def open(self, event: RequestOpened, turn: int | None, launch: int) -> None:
        """Show a request to people."""
        key = key_of(launch, event.id)
        title = shorten(title_of(event), 200)
        kind: BlockedKind = "auth" if event.kind == "login" else event.kind
        self._open[key] = Blocked(
            kind=kind, request_id="", title=title, since=utc_now(), in_turn=turn is not None
        )
        request = OpenRequest(
            owner=self._path,
            handle=self._identity.handle,
            key=key,
            kind=event.kind,
            session=self._identity.id,
            turn=None if turn is None else str(turn),
            tool=event.tool,
            tool_kind=event.tool_kind,
            title=event.title,
            reason=event.reason,
            input=event.input,
            options=event.options,
            needs_person=event.needs_person,
            default_to_no=event.default_to_no,
            no_session_scope=event.no_session_scope,
            takes_edit=event.takes_edit,
        )
        self._owner.start_soon(self._send_open, request)

    def withdraw(self, requests: Iterable[str], reason: str, launch: int) -> None:
        """Withdraw requests, by the agent's ids."""
        keys = [key_of(launch, each) for each in requests]
        for key in keys:
            self._open.pop(key, None)
        withdrawal = WithdrawRequests(session=self._identity.id, keys=keys, reason=reason)
        self._owner.start_soon(self._ask, withdrawal)

    def close(self, key: str) -> None:
        """Note that a request waits no longer: its answer is there."""
        self._open.pop(key, None)

    def is_repeated(self, answer: ApplyAnswer) -> bool:
        """Whether this answer was handled before, or is being handled."""
        return answer.id in self._outcomes or answer.id in self._applying

    async def apply(
        self,
        answer: ApplyAnswer,
        order: AnswerAgent | None,
        driver: Ref[Any] | None,
        reply: Reply[AnswerReceived],
        is_done: bool,
    ) -> None:
        """Pass an answer to the driver, unless it has acted already; reply with the outcome."""
        self._on_change()
        self._applying[answer.id] = applying = trio.Event()
        reason = "" if is_done else "the agent no longer waits for the answer"
        if order is not None and driver is not None:
            faults.ANSWER_BEFORE.hit(self._identity.handle)
            reason = await self._written(driver, order)
            faults.ANSWER_AFTER.hit(self._identity.handle)
            if order.reason and not reason:
                await self._pass_on(answer, order.reason)
            if order.approves_plan and not reason:
                self._leave_plan(order)
        outcome = AnswerReceived(applied=not reason, reason=reason)
        self._outcomes[answer.id] = outcome
        while len(self._outcomes) > MAX_OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]
        del self._applying[answer.id]
        applying.set()
        reply.send(outcome)

    async def repeat(self, answer: ApplyAnswer, reply: Reply[AnswerReceived]) -> None:
        """Reply as to the first time, once that outcome is known."""
        applying = self._applying.get(answer.id)
        if applying is not None:
            await applying.wait()
        reply.send(self._outcomes[answer.id])

    async def _written(self, driver: Ref[Any], order: AnswerAgent) -> str:
        """Return an empty text once the driver wrote the answer, else the reason why not."""
        request = msg.SendAnswer(request=order.request, answer=order.answer)
        try:
            refused: str | None = await driver.ask(request, timeout=ANSWER_S)
        except ActorError as error:
            return describe(error)
        return refused or ""

    def _leave_plan(self, order: AnswerAgent) -> None:
        """Have the session get the permission that it has after its plan.

        Not before the agent has the approval: after a kill in between it plans on.
        """
        directory = self._owner.system.registry.find("service", "agents")
        if directory is not None:
            assert isinstance(order.answer, PermissionAnswer)
            is_for_edits = order.answer.kind == "allow_session"
            directory.tell(PlanApproved(session=self._identity.id, with_edits=is_for_edits))

    async def _pass_on(self, answer: ApplyAnswer, reason: str) -> None:
        """Send the message of a refusal to the session, durably: an inbox drops an id it has."""
        by = answer.by if answer.by == "human" else f"agent:{answer.by}"
        message = Deliver(
            handle=self._identity.address,
            id=f"request:{answer.id}/reason",
            sender=by,
            body=reason,
            timestamp=utc_now(),
        )
        await self._ask(message, "inboxes")

    async def _send_open(self, request: OpenRequest) -> None:
        if request.key not in self._open:
            return
        opened = await self._ask(request)
        if opened is None:
            if self._open.pop(request.key, None) is not None:
                await self._owner.ref.send(DeskRefused(key=request.key))
        elif request.key in self._open:
            blocked = self._open[request.key]
            self._open[request.key] = attrs.evolve(blocked, request_id=opened.id)
            self._on_change()

    async def _ask(self, request: Any, service: str = "requests") -> Any:
        """Return the desk's answer, None if it refuses; ask again as long as there is none."""
        while True:
            desk = self._owner.system.registry.find("service", service)
            try:
                if desk is not None:
                    return await desk.send_request(request).wait()
            except AegisError as error:
                log.warning("request refused", session=self._identity.id, why=str(error))
                return None
            except ActorError as error:
                log.warning("no answer", service=service, why=describe(error))
            await trio.sleep(AGAIN_S)


def title_of(event: RequestOpened) -> str:
    """Return a few words about a request; of a tool of ours its name."""
    if event.tool.startswith(OWN_PREFIX):
        return event.tool.removeprefix(OWN_PREFIX)
    return event.title or event.tool or event.kind


def key_of(launch: int, request: str) -> str:
    """Return the key of a request of the agent's process with this number."""
    return f"{launch}:{request}"


def agent_id(key: str, launch: int) -> str | None:
    """Return the agent's id of the request with this key; None if an earlier process opened it."""
    number, _, request = key.partition(":")
    return request if number == str(launch) else None

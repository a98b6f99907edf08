"""``Carrier``: the engine calls that the daemon carries out, on behalf of a workflow's starter.

What its starter may not do, a workflow may not do either: each call is made under the starter's
handle. A call has the same ids in each replay, so done again it has no second effect.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import trio

from actors import AskError
from aegis.clock import utc_now
from aegis.errors import AegisError, Forbidden, NotFound, Unavailable
from aegis.protocol.agents import (
    AgentInfo,
    CloseAgent,
    ResumeSession,
    SpawnForWorkflow,
    is_at_rest,
)
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.feeds import SessionPlace
from aegis.protocol.groups import (
    BroadcastToGroup,
    DissolveGroup,
    ShowGroup,
    SpawnMixedGroup,
    WaitForAll,
)
from aegis.protocol.inboxes import MAX_BODY_CHARS, Deliver
from aegis.protocol.naming import name_key
from aegis.protocol.queues import Delegate, Enqueue
from aegis.protocol.requests import ASK_HUMAN, OpenRequest, WithdrawRequests
from aegis.protocol.terminals import CommandRecord, RunCommand
from aegis.turns.services import AGAIN_S, Services
from aegis.turns.sessions import AgentSessions
from aegis.workflows.calls import Outcome, failure, value
from aegis.workflows.runs import RunHandles, StoredRun

OWNER = "service:workflows"
"""The owner of questions, in the registry of actors."""

SPAWN_S = 120.0
CLOSE_S = 60.0
ENQUEUE_S = 30.0
REQUEST_S = 30.0
WAIT_S = 3_600.0
"""Seconds that one call of a service may take before it is repeated."""

TERMINAL_GRACE_S = 30.0
"""Seconds beyond its own time limit that a terminal has to answer."""

DRAIN_S = 60.0
"""Seconds that a session of an ended workflow has to end its turn."""

MAX_QUESTION_CHARS = 8_000

Refuse = Callable[[str, str, Sequence[str]], str | None]
"""Returns why a handle may not call a command on terminals; None if it may."""


class MessageRights(Protocol):
    """The rights of sessions to send messages."""

    def refuse_handoff(
        self, sender: str, target: str, *, interrupts: bool, now: float
    ) -> AegisError | None:
        """Return why the target does not take a message of the agent ``sender``, else count it."""
        ...


@attrs.frozen(kw_only=True)
class CarriedCall:
    """A call that the daemon carries out for ``run``, which has ``spawned`` these sessions.

    It has not acted unless it is repeatable. ``is_new``: no process has made it before.
    """

    run: StoredRun
    spawned: Sequence[str]
    position: str
    name: str
    arguments: Mapping[str, Any] = attrs.field(repr=False)
    is_new: bool


@attrs.frozen(kw_only=True)
class Carrier:
    """The calls of all workflows, through the services of the daemon."""

    services: Services
    messages: MessageRights
    refuse: Refuse

    @property
    def _sessions(self) -> AgentSessions:
        return AgentSessions(self.services)

    async def carry_out(self, call: CarriedCall) -> Outcome | None:
        """Carry out a call; return its outcome, None for a question, which a person answers."""
        try:
            return await self._carry_out(call)
        except AegisError as error:
            return failure("CallFailed", str(error), code=error.code)
        except AskError as error:
            return failure("CallFailed", f"{call.name}: {error}", code="unavailable")

    async def _carry_out(self, call: CarriedCall) -> Outcome | None:
        run, given = call.run, call.arguments
        match call.name:
            case "spawn":
                handle = run.handle_of(call.position)
                await self._spawn(run, handle, given["profile"], given["workspace"])
                return value(handle)
            case "send":
                return await self._send(run, call)
            case "drain":
                await self._drain(given["handle"])
                return value(None)
            case "close":
                command = CloseAgent(handle=given["handle"], from_handle=run.starter)
                await self.services.answer("agents", command, CLOSE_S)
                return value(None)
            case "delegate":
                return await self._delegate(run, call)
            case "group":
                name = run.handle_of(call.position)
                await self._gather(run, name, given["profiles"], given["preset"])
                return value(name)
            case "broadcast":
                return value(await self._broadcast(run, call.position, given))
            case "terminal":
                return value(await self._run(run, given))
            case "ask_human":
                return await self._ask(run, call)
        raise Unavailable(f"this daemon has no engine call {call.name!r}")

    # Sessions.

    async def _spawn(
        self, run: StoredRun, handle: str, profile: str, workspace: str | None
    ) -> None:
        """Open a session, unless it is open. Raises ``AegisError``."""
        request = SpawnForWorkflow(
            profile=profile,
            handle=handle,
            workspace=workspace,
            from_handle=run.starter,
            workflow=run.name,
        )
        while not await self._is_open(handle):
            try:
                await self.services.ask("agents", request, SPAWN_S)
            except AskError:
                continue  # whether it is open is looked up

    async def _is_open(self, handle: str) -> bool:
        """Return whether there is a session of the workflow; a closed one is opened again."""
        try:
            info = await self._sessions.show(handle)
        except NotFound:
            return False
        if info.state == "closed":
            await self.services.answer("agents", ResumeSession(handle=handle), SPAWN_S)
        return True

    async def _send(self, run: StoredRun, call: CarriedCall) -> Outcome:
        handle, text = call.arguments["handle"], call.arguments["text"]
        if call.is_new:  # a replay sends nothing
            self._check_message(call, handle)
        if not text.strip():
            return failure("CallFailed", "the message is empty", code="invalid_request")
        if len(text) > MAX_BODY_CHARS:
            return failure(
                "CallFailed",
                f"a message has at most {MAX_BODY_CHARS} characters, not {len(text)}: write it to "
                "a file, and send the path",
                code="invalid_request",
            )
        if handle in call.spawned:
            await self._is_open(handle)
        message = Deliver(
            handle=handle,
            id=run.call_id(call.position),
            sender=f"workflow:{run.name}",
            body=text,
            timestamp=utc_now(),
        )
        outcome = await self._sessions.outcome(message)
        if outcome.end == "completed":
            return value(outcome.text)
        reason = outcome.reason or f"its turn was {outcome.end}"
        return failure("CallFailed", f"{handle!r} did not answer: {reason}", code="unavailable")

    def _check_message(self, call: CarriedCall, handle: str) -> None:
        """Raise ``Forbidden`` or ``Unavailable`` if the starter may not write to a session."""
        starter = call.run.starter
        if starter is None or handle in call.spawned:
            return
        refusal = self.messages.refuse_handoff(starter, handle, interrupts=False, now=time.time())
        if refusal is not None:
            raise refusal

    async def _drain(self, handle: str) -> None:
        """Wait until a session has no unread message and no open turn. Raises ``NotFound``."""
        place = SessionPlace(seq=await self._sessions.newest(handle))
        while not _is_idle(await self._sessions.show(handle)):
            news = await self._sessions.news(handle, place)
            if news is None or news.is_over:
                return
            place = news.place

    # Groups.

    async def _gather(
        self, run: StoredRun, name: str, profiles: list[str], preset: str | None
    ) -> None:
        """Create a group, unless it is there. Raises ``AegisError``."""
        request = SpawnMixedGroup(
            group=name, profiles=profiles, preset=preset, from_handle=run.starter
        )
        while not await self._is_gathered(name):
            try:
                await self.services.ask("groups", request, SPAWN_S)
            except AskError:
                continue  # whether it is there is looked up

    async def _is_gathered(self, name: str) -> bool:
        """Return whether there is a group with all its members, which may still be starting."""
        while True:
            try:
                info = await self.services.answer("groups", ShowGroup(group=name), REQUEST_S)
            except NotFound:
                return False
            if info.state != "open":
                raise Unavailable(f"its group {name!r} was dissolved; run the workflow again")
            if not info.forming:
                return True
            await trio.sleep(AGAIN_S)

    async def _broadcast(
        self, run: StoredRun, position: str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Give an order to a group, once, and return the replies of all its members."""
        by, key = run.starter, run.call_id(position)
        parts = {name: text for name, text in given.items() if name != "reducer"}
        order = BroadcastToGroup(**parts, key=key, callback=False, from_handle=by)
        sent = await self.services.answer("groups", order, REQUEST_S)
        while True:
            wait = WaitForAll(
                group=given["group"],
                broadcast_id=sent.broadcast_id,
                reducer=given["reducer"],
                timeout=WAIT_S,
                from_handle=by,
            )
            replies = await self.services.answer("groups", wait, WAIT_S + REQUEST_S)
            if replies.metadata.is_over or not replies.metadata.timed_out:
                members = replies.metadata.members.items()
                return {
                    "replies": replies.by_member,
                    "reduced": replies.reduced,
                    "order": replies.order,
                    "missing": {
                        handle: f"{each.status}: {each.reason}"
                        for handle, each in members
                        if each.status != "replied"
                    },
                }

    # Queues, terminals, people.

    async def _delegate(self, run: StoredRun, call: CarriedCall) -> Outcome:
        named: dict[str, Any] = {
            "queue": call.arguments["queue"],
            "payload": call.arguments["payload"],
            "key": run.call_id(call.position),
            "from_handle": run.starter,
        }
        await self.services.answer("queues", Enqueue(**named, callback=False), ENQUEUE_S)
        while True:
            wait = Delegate(**named, timeout=WAIT_S)
            task = await self.services.answer("queues", wait, WAIT_S + ENQUEUE_S)
            if task.status == "completed":
                return value(task.result or "")
            if task.ended is not None:
                ended = "was cancelled" if task.status == "cancelled" else "has failed"
                return failure("TaskFailed", f"task {task.task_id} {ended}: {task.error}")

    async def _run(self, run: StoredRun, given: Mapping[str, Any]) -> dict[str, Any]:
        name, starter = given["terminal"], run.starter
        refusal = None if starter is None else self.refuse(starter, "term_run", (name,))
        if refusal is not None:
            raise Forbidden(refusal)
        timeout = MAX_TIMEOUT_S if given["timeout"] is None else given["timeout"]
        command = RunCommand(name=name, cmd=given["cmd"], timeout=timeout, from_handle=starter)
        registry = self.services.system.registry
        owner = registry.find("terminal", name_key(name)) or registry.find("service", "terminals")
        if owner is None:
            raise Unavailable("the terminals are not available now; try again")
        record: CommandRecord = await owner.ask(command, timeout=timeout + TERMINAL_GRACE_S)
        return {
            "seq": record.seq,
            "exit": record.exit,
            "stdout": record.stdout,
            "needs_input": record.needs_input is not None,
            "timed_out": record.timed_out,
            "truncated": record.truncated,
        }

    async def _ask(self, run: StoredRun, call: CarriedCall) -> Outcome | None:
        """Open the question, which is opened once. Its answer comes to the desk."""
        question, options = call.arguments["question"], call.arguments["options"] or []
        if len(question) > MAX_QUESTION_CHARS or not question.strip():
            return failure(
                "CallFailed",
                f"a question has 1 to {MAX_QUESTION_CHARS} characters",
                code="invalid_request",
            )
        labels = [{"label": each} for each in options]
        request = OpenRequest(
            owner=OWNER,
            handle=run.starter or "human",
            key=run.call_id(call.position),
            kind="question",
            workflow=run.id,
            tool=ASK_HUMAN,
            title=f"{run.name} asks: {question}",
            input={"questions": [{"question": question, "options": labels, "multiSelect": False}]},
            needs_person=True,
        )
        await self.services.answer("requests", request, REQUEST_S)
        return None

    async def withdraw(self, run: StoredRun, position: str) -> None:
        """Withdraw the question of a call that the workflow has cancelled."""
        withdraw = WithdrawRequests(
            reason="its workflow does not wait for the answer any longer",
            workflow=run.id,
            keys=[run.call_id(position)],
        )
        await self.services.answer("requests", withdraw, REQUEST_S)

    # The end of a workflow.

    async def settle(self, run: StoredRun, handles: RunHandles) -> None:
        """Withdraw an ended workflow's questions; drain its sessions, and close those it spawned.

        The sessions of a cancelled one are closed at once.
        """
        reason = f"its workflow is {run.phase}"
        withdraw = WithdrawRequests(reason=reason, workflow=run.id)
        await self.services.answer("requests", withdraw, REQUEST_S)
        limit_s = 0.0 if run.phase == "cancelled" else DRAIN_S
        async with trio.open_nursery() as nursery:
            for each in dict.fromkeys((*handles.touched, *handles.spawned)):
                nursery.start_soon(self._release, each, limit_s, each in handles.spawned)
            for each in handles.groups:
                nursery.start_soon(self._dissolve, each)

    async def _release(self, handle: str, limit_s: float, is_own: bool) -> None:
        try:
            with trio.move_on_after(limit_s):
                await self._drain(handle)
            if is_own:
                await self._sessions.close(handle)
        except AegisError:
            return  # there is no such session, or no longer

    async def _dissolve(self, group: str) -> None:
        with contextlib.suppress(AegisError):  # there is no such group, or no longer
            await self.services.answer("groups", DissolveGroup(group=group), CLOSE_S)


def _is_idle(info: AgentInfo) -> bool:
    """Return whether a session has nothing to do, or cannot do it."""
    if info.state in ("closed", "error") or info.program is not None:
        return True
    return is_at_rest(info) and not info.waiting


def end_message(run: StoredRun, result: str | None) -> Deliver:
    """Return the message about the end of a workflow, with its result, to its starter."""
    body = _plain(result)
    if run.phase != "completed":
        ended = "was cancelled" if run.phase == "cancelled" else "has failed"
        body = (
            f"the workflow {ended}: {run.error}\n(its log: aegis-actors workflow status {run.id})"
        )
    return Deliver(
        handle=run.starter or "human",
        id=run.end_id,
        sender=f"workflow:{run.name}",
        body=body[:MAX_BODY_CHARS],
        timestamp=utc_now(),
        task_id=run.id,
        status="ok" if run.phase == "completed" else "error",
    )


def _plain(result: str | None) -> str:
    """Return the text of a result: a text itself, anything else as JSON."""
    found = None if result is None else json.loads(result)
    return found if isinstance(found, str) else (result or "")

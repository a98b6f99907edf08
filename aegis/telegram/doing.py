"""Carrying out orders of the chat, each once, also through crashes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from actors import AskError, Ref, System
from aegis.errors import AegisError, NotFound
from aegis.protocol.agents import AgentInfo, InterruptAgent, ListSessions
from aegis.protocol.inboxes import PersonHandoff
from aegis.protocol.naming import name_key
from aegis.protocol.queues import ListQueues, ListTasks
from aegis.protocol.requests import ListRequests
from aegis.protocol.screens import GetScreen
from aegis.protocol.terminals import ListTerminals, RunCommand
from aegis.telegram import orders as o
from aegis.telegram.store import ChatStore
from aegis.telegram.texts import list_text, queues_text, record_text
from aegis.telegram.updates import TextMessage
from aegis.turns.services import Services

CALL_S = 30.0
MAX_LISTED = 1_000
"""The tasks among which those that wait are looked for."""

RUN_S = 3_600.0
"""Seconds that the chat waits for a command; it keeps running."""


@attrs.frozen
class Doing:
    """Carries out orders on the daemon ``system``. ``handle_of`` is that of an open session.

    ``address_of`` returns the immutable first handle of the session with a handle or alias.
    """

    system: System
    address_of: Callable[[str], str]
    store: ChatStore
    handle_of: Callable[[str], str | None]
    session_of: Callable[[str], str | None]

    @property
    def _services(self) -> Services:
        return Services(self.system)

    def partner(self, text: TextMessage, handle: str) -> tuple[str, str]:
        """Return the id and the handle of the session to talk to. Raises ``NotFound``."""
        if not handle:
            session = self.store.session_of(text.thread)
            if not session:
                raise NotFound("to whom? /to HANDLE TEXT")
            found = self.handle_of(session)
            if found is None:
                raise NotFound("this session is closed")
            return session, found
        session = self.session_of(handle) or ""
        if not session:
            raise NotFound(f"there is no session {handle!r}: /list")
        return session, handle

    async def talk(self, text: TextMessage, handle: str, context: str) -> str:
        """Send a text to a session; return a sentence, empty if it went well."""
        handoff = PersonHandoff(
            target_handle=self.address_of(handle),
            context=context,
            key=f"telegram:{text.update}",
        )
        receipt = await self._services.answer("inboxes", handoff, CALL_S)
        queued = f"{handle} takes it after its turn" if receipt.status == "queued" else ""
        return "; ".join(filter(None, (receipt.notice, queued)))

    def start_run(self, order: o.RunOrder) -> Callable[[], Awaitable[str]]:
        """Give a command to its terminal now; return what waits for the reply.

        The order of calls is the order on the terminal. Must be called once for each order.
        """
        owner = self._terminal(order.terminal)
        command = RunCommand(name=order.terminal, cmd=order.command, timeout=RUN_S)
        reply = None if owner is None else owner.send_request(command)

        async def wait() -> str:
            if reply is None:
                return "the daemon is starting or stopping: not run"
            try:
                record = await reply.wait()
            except (AegisError, AskError) as error:
                return f"{order.terminal}: {error}"
            return record_text(record, order.terminal)

        return wait

    async def show(self, order: o.ShowOrder) -> str:
        """Return what a terminal shows."""
        owner = self._terminal(order.terminal)
        if owner is None:
            return "the daemon is starting or stopping"
        screen = await owner.ask(GetScreen(name=order.terminal), timeout=CALL_S)
        lines = [each.rstrip() for each in screen.lines]
        return f"{order.terminal}\n" + "\n".join(lines).strip("\n")

    async def interrupt(self, order: o.InterruptOrder) -> str:
        """Interrupt a turn."""
        command = InterruptAgent(handle=order.handle)
        info: AgentInfo = await self._services.ask("agents", command, CALL_S)
        return f"{info.handle}: {info.state}"

    async def look_up(self, what: str) -> str:
        """Return a list."""
        services = self._services
        match what:
            case "list":
                agents = await services.ask("agents", ListSessions(), CALL_S)
                terminals = await services.ask("terminals", ListTerminals(), CALL_S)
                return list_text(agents.result, terminals.result)
            case "queues":
                queues = await services.ask("queues", ListQueues(), CALL_S)
                tasks = await services.ask("queues", ListTasks(limit=MAX_LISTED), CALL_S)
                return queues_text(queues.result, tasks.result)
            case "requests":
                found = await services.ask("requests", ListRequests(), CALL_S)
                lines = [f"🟡 {each.handle}: {each.tool or each.kind}" for each in found.requests]
                return "\n".join(lines) or "nobody waits for you"
        return o.HELP

    def _terminal(self, name: str) -> Ref[Any] | None:
        front = self.system.registry.find("terminal", name_key(name))
        if front is not None and not front.is_stopped:
            return front
        return self.system.registry.find("service", "terminals")


UNFIT = (AegisError, AskError)
"""Failures of an order that the person gets as a sentence."""

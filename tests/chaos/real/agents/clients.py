"""The clients of a daemon with agents: each works until the daemon dies, and logs the replies."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from typing import Any

from aegis.client.line import ClientError, CommandFailed, LineClient
from tests.chaos.checking.agent_evidence import Ordered, OrderKind, Replied, Spawned, Work
from tests.chaos.checking.observations import Span
from tests.chaos.notebook import Notebook
from tests.chaos.real.scratch import ScratchDaemon

FIRST = ("ann", "ben")
"""The sessions that a campaign begins with."""

BODIES: Mapping[str, str] = {
    "quick": "SAY {token}",
    "slow": "SAY {token}\nWAIT 0.15",
    "ask": "SAY {token}\nASK echo @ask.{number}@",
    "hang": "SAY {token}\nHANG",
    "die": "SAY {token}\nDIE 1",
    "child": "SAY {token}\nSPAWN setsid",
}
"""The orders of a stand-in, by the kind of work."""

WEIGHTS: Mapping[str, int] = {"quick": 4, "slow": 4, "ask": 5, "hang": 1, "die": 1, "child": 1}

SURE = ("not_found", "already_exists", "invalid_request", "forbidden")
"""The codes of errors that say that nothing was done."""

ORDERS: Mapping[OrderKind, str] = {
    "interrupt": "interrupt",
    "restart": "agent_restart",
    "close": "close",
    "takeover": "agent_takeover",
    "handback": "agent_handback",
    "resume": "agent_resume",
}

WRONG_DIGEST = "0" * 64
PAUSE_S = 0.06


class AgentClient:
    """The client ``handle``. A subclass has one step, which is repeated."""

    def __init__(self, handle: str, book: Notebook, chance: random.Random) -> None:
        self.handle = handle
        self._book = book
        self._notes = book.agents
        self._chance = random.Random(f"{chance.random()}/{handle}")

    def work(self, daemon: ScratchDaemon) -> None:
        """Continue until the daemon is gone."""
        try:
            with daemon.connect() as client:
                while not self._book.is_over.is_set():
                    self.step(client)
                    threading.Event().wait(self._chance.uniform(0, PAUSE_S))
        except ClientError:
            return

    def step(self, client: LineClient) -> None:
        """Do one thing."""
        raise NotImplementedError

    def spawn(self, client: LineClient, handle: str, body: str, **more: object) -> None:
        """Spawn a session with an order as its prompt."""

        def note(span: Span, value: Any, done: bool | None) -> None:
            id_ = None if value is None else value["id"]
            spawned = Spawned(handle=handle, span=span, done=done, id=id_, prompt=body)
            self._notes.spawned.append(spawned)

        spawn = {"profile": "asks", "handle": handle, "prompt": body, **more}
        self.call(client, "spawn", note, **spawn)

    def order(self, client: LineClient, kind: OrderKind, handle: str, **more: object) -> Any:
        """Give one order to a session; return the reply, or None if it was refused."""

        def note(span: Span, value: Any, done: bool | None) -> None:
            self._notes.ordered.append(Ordered(kind=kind, handle=handle, span=span, done=done))

        return self.call(client, ORDERS[kind], note, handle=handle, **more)

    def one_of_all(self) -> str:
        """Return a session that was spawned."""
        return self._chance.choice([each.handle for each in self._notes.spawned if each.done])

    def call(
        self,
        client: LineClient,
        command: str,
        note: Callable[[Span, Any, bool | None], None],
        **arguments: object,
    ) -> Any:
        """Call, and log by ``note`` the span, the value, and whether it was done; then as before.

        ``note`` is called without a value where the daemon died. Raises ``ClientError`` then.
        """
        asked = self._book.moment()
        try:
            value = client.call(command, arguments)
        except CommandFailed as error:
            done = False if error.code in SURE else None
            note(Span(asked, self._book.moment()), None, done)
            return None
        except ClientError:
            note(Span(asked), None, None)
            raise
        note(Span(asked, self._book.moment()), value, True)
        return value


class Sender(AgentClient):
    """Sends work to sessions."""

    def step(self, client: LineClient) -> None:
        [kind] = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        self.send(client, self.one_of_all(), kind)

    def send(self, client: LineClient, to: str, kind: str) -> None:
        """Send one order."""
        token, body = new_work(self._book, kind)

        def note(span: Span, value: Any, done: bool | None) -> None:
            receipt = None if value is None else value["id"]
            sender = self.handle
            work = Work(to=to, sender=sender, token=token, span=span, receipt=receipt)
            self._notes.work.append(work)

        sender = {} if self.handle == "human" else {"from_handle": self.handle}
        self.call(client, "handoff", note, target_handle=to, context=body, **sender)


class Answerer(AgentClient):
    """Answers requests: sometimes with another digest, and again."""

    def step(self, client: LineClient) -> None:
        listed = client.call("request_list", {"state": "open"})["requests"]
        if not listed:
            return
        request = self._chance.choice(listed)
        digest = request["digest"] if self._chance.random() < 0.9 else WRONG_DIGEST
        for _ in range(self._chance.randint(1, 2)):
            answer = self._chance.choice(("allow", "allow", "deny"))
            self.answer(client, request["id"], digest, answer)

    def answer(self, client: LineClient, request: str, digest: str, answer: str) -> None:
        """Answer one request."""

        def note(span: Span, value: Any, done: bool | None) -> None:
            outcome = (
                value["outcome"] if value is not None else "refused" if done is False else None
            )
            self._notes.replied.append(
                Replied(
                    id=request,
                    answer=answer,
                    is_shown=digest != WRONG_DIGEST,
                    span=span,
                    outcome=outcome,
                )
            )

        self.call(client, "request_answer", note, id=request, digest=digest, answer=answer)


class Manager(AgentClient):
    """Spawns, interrupts, restarts and closes sessions, and looks at them."""

    def step(self, client: LineClient) -> None:
        threading.Event().wait(self._chance.uniform(0, 5 * PAUSE_S))
        choice = self._chance.random()
        others = [each.handle for each in self._notes.spawned if each.done]
        if choice < 0.2 and len(others) < 8:
            self.spawn(client, f"agent{self._book.moment()}", new_work(self._book, "quick")[1])
        elif choice < 0.5:
            self.order(client, "interrupt", self._chance.choice(others))
        elif choice < 0.7:
            self.order(client, "restart", self._chance.choice(others))
        elif choice < 0.75 and others[len(FIRST) :]:
            self.order(client, "close", self._chance.choice(others[len(FIRST) :]))
        else:
            client.call("list_sessions", {})


def new_work(book: Notebook, kind: str) -> tuple[str, str]:
    """Return the token of a new order, and its text."""
    number = book.moment()
    token = f"@work.{number}.{kind}@"
    return token, BODIES[kind].format(token=token, number=number)

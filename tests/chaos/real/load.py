"""The clients of a load: each works until the daemon dies, and logs the replies."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

import attrs
import trio

from aegis.client.line import ClientError, CommandFailed, LineClient
from tests.chaos.checking.evidence import Answer, Command, Handoff, SeenRecord
from tests.chaos.checking.observations import Disturbance, Record, Span
from tests.chaos.commands import HOLDING, REAL, Kind
from tests.chaos.notebook import Notebook
from tests.chaos.real.scratch import GUARD_S, ScratchDaemon, ScratchError
from tests.chaos.real.sessions import Session, ToolFailed, open_session

NEVER_TYPED = ("not typed", "did not run", "has no shell right now", "nothing of yours was sent")
"""The words of an error about a command that the shell has not seen."""

HANDOFF_RATE = 0.5
READ_RATE = 0.1
AHEAD_RATE = 0.6

TYPED = Kind(text="echo %", typed=True)
_AHEAD = tuple(attrs.evolve(kind, typed=True) for kind in REAL.typed.values())

PAUSE_S = 0.05
"""The pause, in seconds, between a refused call and the next one."""


class Worker:
    """A client that runs commands on some terminals, and now and then reads their records.

    ``is_in_doubt``: whether its last command was typed is not known.
    """

    _kinds: Sequence[Kind] = tuple(REAL.kinds.values())

    def __init__(
        self, handle: str, terminals: Sequence[str], notebook: Notebook, chance: random.Random
    ) -> None:
        self.handle = handle
        self._terminals = terminals
        self.is_in_doubt = False
        self._notebook = notebook
        self._chance = chance

    def work(self, daemon: ScratchDaemon) -> None:
        """Continue until the daemon is gone."""
        try:
            with daemon.connect() as client:
                while not self._notebook.is_over.is_set():
                    self._step(client)
        except ClientError:
            return

    def _step(self, client: LineClient) -> None:
        terminal = self._chance.choice(self._terminals)
        [kind] = self._chance.choices(self._kinds, [kind.weight for kind in self._kinds])
        self.run(client, terminal, kind)
        if self._chance.random() < READ_RATE:
            self._read(client, terminal)

    def run(self, client: LineClient, terminal: str, kind: Kind) -> str:
        """Send one command; return its token."""
        book = self._notebook
        token = book.new_token(terminal)
        command = REAL.command(
            kind, token=token, terminal=terminal, writer=self.handle, life=book.life
        )
        asked = book.send(command)
        self.is_in_doubt = True
        try:
            record = self._send(client, command, kind)
        except CommandFailed as error:
            self._refused(command, error, asked)
        else:
            self.is_in_doubt = False
            span = book.was_answered(token)
            if record is not None:
                book.seen.append(SeenRecord(terminal, record, span))
        return token

    def _send(self, client: LineClient, command: Command, kind: Kind) -> Record | None:
        """Send the command; return the record if the answer is one."""
        who: dict[str, object] = {"name": command.terminal, "from_handle": self.handle}
        if kind.typed:
            client.call("term_keys", {**who, "keys": f"{command.text}\r"})
            return None
        how = {"cmd": command.text, "timeout": kind.timeout_s, "until": kind.until}
        return client.call("term_run", {**who, **how})

    def _refused(self, command: Command, error: CommandFailed, asked: int) -> None:
        book = self._notebook
        if any(sentence in str(error) for sentence in NEVER_TYPED):
            book.refused.append(command.token)
            self.is_in_doubt = False
        elif error.code == "busy":
            self.is_in_doubt = False
        else:
            book.was_refused(command.token, error, terminal=command.terminal, asked=asked)
            pause()
        if not self.is_in_doubt:
            book.was_answered(command.token)

    def _read(self, client: LineClient, terminal: str) -> None:
        asked = self._notebook.moment()
        try:
            records = client.call("term_read", {"name": terminal, "last_n": 5})["result"]
        except CommandFailed as error:
            self._notebook.was_refused(self.handle, error, terminal=terminal, asked=asked)
            return
        span = Span(asked, self._notebook.moment())
        self._notebook.seen += [SeenRecord(terminal, record, span) for record in records]


class Typist(Worker):
    """The only client of its terminal, so that it may type; now and then ahead of a waiting run."""

    _kinds = (*REAL.kinds.values(), TYPED)

    def _step(self, client: LineClient) -> None:
        if self._chance.random() < AHEAD_RATE:
            self._type_ahead(client, self._chance.choice(self._terminals))
        else:
            super()._step(client)

    def _type_ahead(self, client: LineClient, terminal: str) -> None:
        """Type some lines while a command runs, with another one waiting behind them."""
        super().run(client, terminal, HOLDING)
        if not self.is_in_doubt:
            lines = self._chance.choices(_AHEAD, [kind.weight for kind in _AHEAD], k=3)
            self._type_lines(client, terminal, lines[: self._chance.randint(1, 3)])
        self.run(client, terminal, REAL.kinds[self._chance.choice(REAL.behind)])

    def _type_lines(self, client: LineClient, terminal: str, kinds: Sequence[Kind]) -> None:
        book, asked = self._notebook, self._notebook.moment()
        commands = [
            REAL.command(
                kind,
                token=book.new_token(terminal),
                terminal=terminal,
                writer=self.handle,
                life=book.life,
            )
            for kind in kinds
        ]
        for command in commands:
            book.send(command)
        text = "".join(f"{command.text}\r" for command in commands)
        answered = None
        try:
            keys = {"name": terminal, "keys": text, "from_handle": self.handle}
            client.call("term_keys", keys)
            answered = max(book.was_answered(command.token).last for command in commands)
        except CommandFailed as error:
            book.was_refused(self.handle, error, terminal=terminal, asked=asked)
        finally:
            # Their echo is part of the output of the running command.
            span = Span(asked, answered)
            book.disturbances.append(
                Disturbance(kind="keys", terminal=terminal, span=span, text=text)
            )

    def run(self, client: LineClient, terminal: str, kind: Kind) -> str:
        """Send one command; return its token. The next one waits until it has ended."""
        token = super().run(client, terminal, kind)
        has_ended = kind is REAL.kinds["quick"] and not self.is_in_doubt
        while not has_ended and not self._notebook.is_over.is_set():
            super().run(client, terminal, REAL.kinds["quick"])
            has_ended = not self.is_in_doubt
        return token


class Sender(Worker):
    """A worker that also sends messages to another handle."""

    to = "reviewer"

    def _step(self, client: LineClient) -> None:
        super()._step(client)
        if self._chance.random() < HANDOFF_RATE:
            self._hand_on(client)

    def _hand_on(self, client: LineClient) -> None:
        body = f"news {self._notebook.new_token('news')}"
        arguments = {"target_handle": self.to, "context": body, "from_handle": self.handle}
        asked, answered, receipt = self._notebook.moment(), None, None
        try:
            receipt = client.call("handoff", arguments)["id"]
            answered = self._notebook.moment()
        except CommandFailed as error:
            self._notebook.was_refused(self.handle, error, asked=asked)
        finally:
            span = Span(asked, answered)
            self._notebook.handoffs.append(Handoff(self.to, body, receipt, self.handle, span))


class Reader:
    """A reader of one inbox, which acknowledges the messages with its next call."""

    def __init__(self, handle: str, notebook: Notebook) -> None:
        self.handle = handle
        self.answers: list[Answer] = []
        self._notebook = notebook
        self._next: str | None = None
        self._news = threading.Condition()
        self._seen: set[str] = set()

    def work(self, daemon: ScratchDaemon) -> None:
        """Continue until the daemon is gone."""
        try:
            with daemon.connect() as client:
                while True:
                    self._try_wait(client)
        except ClientError:
            return

    def _try_wait(self, client: LineClient) -> None:
        after, asked = self._next, self._notebook.moment()
        try:
            self._got(after, client.call("inbox_wait", self._arguments(after)), asked)
        except CommandFailed as error:
            if error.code == "unavailable":  # the daemon is stopping
                raise
            self._notebook.was_refused(self.handle, error, asked=asked)

    def has_seen(self, ids: set[str]) -> bool:
        """Wait until all of these were shown; return False at a timeout."""
        with self._news:
            return self._news.wait_for(lambda: ids <= self._seen, GUARD_S)

    def _arguments(self, after: str | None) -> dict[str, object]:
        who = {"timeout": GUARD_S, "from_handle": self.handle}
        return who if after is None else {**who, "after": after}

    def _got(self, after: str | None, reply: dict[str, Any], asked: int) -> None:
        span = Span(asked, self._notebook.moment())
        with self._news:
            self.answers.append(Answer(tuple(reply["messages"]), after, span))
            self._next = reply["next"] or self._next
            self._seen.update(message["id"] for message in reply["messages"])
            self._news.notify_all()


class McpReader(Reader):
    """A reader through the official MCP client, on the session URL of the handle."""

    def work(self, daemon: ScratchDaemon) -> None:
        """Continue until the daemon is gone."""
        try:
            trio.run(self._work, daemon)
        except Exception:
            # The client may fail when its server dies; a live server must answer.
            if not self._notebook.pardoned and answers(daemon):
                raise

    async def _work(self, daemon: ScratchDaemon) -> None:
        async with open_session(daemon, self.handle) as session:
            while True:
                await self._try_wait_in(session)

    async def _try_wait_in(self, session: Session) -> None:
        after, asked = self._next, self._notebook.moment()
        arguments = self._arguments(after)
        del arguments["from_handle"]
        arguments["timeout"] = GUARD_S / 2  # below what the client waits for an answer
        try:
            self._got(after, await session.call("inbox_wait", arguments), asked)
        except ToolFailed:
            if "storage" not in self._notebook.pardoned:
                raise


def answers(daemon: ScratchDaemon) -> bool:
    """Return whether the daemon answers."""
    try:
        return bool(daemon.call("status"))
    except (ClientError, ScratchError):
        return False


def pause() -> None:
    """Pause before another try."""
    threading.Event().wait(PAUSE_S)

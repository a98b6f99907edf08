"""The clients of a load: each works until the daemon dies, and writes down what it was told."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from typing import Any

import attrs
import trio

from aegis.chaos.checking.evidence import Answer, Command, Handoff, Told
from aegis.chaos.real.commands import KINDS, RUN, Kind, make_command
from aegis.chaos.real.scratch import GUARD_S, ScratchDaemon, ScratchError
from aegis.chaos.real.sessions import Session, ToolFailed, open_session
from aegis.client.line import ClientError, CommandFailed, LineClient

NEVER_TYPED = ("not typed", "has no shell right now", "nothing of yours was sent")
"""What an error says whose command the shell has not seen."""

HANDOFF_RATE = 0.5
READ_RATE = 0.1


@attrs.define
class Notebook:
    """All that the clients of one daemon, in all of its lives, did and were told.

    ``pardoned`` are the error codes that clients may get in this life: of a disk that is made to
    fail, of a daemon that is made to stop.
    """

    commands: list[Command] = attrs.field(factory=list)
    told: list[Told] = attrs.field(factory=list)
    refused: list[str] = attrs.field(factory=list)
    handoffs: list[Handoff] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    life: int = 0
    pardoned: frozenset[str] = frozenset()
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count)

    def new_token(self, terminal: str) -> str:
        """A token that no other command has."""
        return f"@{terminal}.{self.life}.{next(self._numbers)}@"

    def new_name(self) -> str:
        """A name that no other terminal has."""
        return f"x{self.life}-{next(self._numbers)}"

    def was_refused(self, who: str, error: CommandFailed) -> None:
        """Note an error that nothing explains."""
        if error.code not in self.pardoned:
            self.errors.append(f"{who} was told {error.code}: {error}")


class Worker:
    """Runs commands on some terminals, one after the other; now and then reads their records."""

    _kinds = RUN

    def __init__(
        self, handle: str, terminals: Sequence[str], notebook: Notebook, chance: random.Random
    ) -> None:
        self.handle = handle
        self._terminals = terminals
        self._notebook = notebook
        self._chance = chance

    def work(self, daemon: ScratchDaemon) -> None:
        """Go on until the daemon is gone."""
        try:
            with daemon.connect() as client:
                while True:
                    self._try_step(client)
        except ClientError:
            return

    def _try_step(self, client: LineClient) -> None:
        try:
            self._step(client)
        except CommandFailed as error:
            self._notebook.was_refused(self.handle, error)

    def _step(self, client: LineClient) -> None:
        terminal = self._chance.choice(self._terminals)
        [kind] = self._chance.choices(self._kinds, [kind.weight for kind in self._kinds])
        self.run(client, terminal, kind)
        if self._chance.random() < READ_RATE:
            self._read(client, terminal)

    def run(self, client: LineClient, terminal: str, kind: Kind) -> str:
        """Send one command; gives its token."""
        book = self._notebook
        token = book.new_token(terminal)
        command = make_command(
            kind, token=token, terminal=terminal, handle=self.handle, life=book.life
        )
        book.commands.append(command)
        who: dict[str, object] = {"name": terminal, "from_handle": self.handle}
        try:
            if kind.typed:
                client.call("term_keys", {**who, "keys": f"{command.text}\r"})
            else:
                arguments = {**who, "cmd": command.text, "timeout": kind.timeout_s}
                book.told.append(Told(terminal, client.call("term_run", arguments)))
        except CommandFailed as error:
            self._refused(command, error)
        return token

    def _refused(self, command: Command, error: CommandFailed) -> None:
        if any(sentence in str(error) for sentence in NEVER_TYPED):
            self._notebook.refused.append(command.token)
        elif error.code != "busy":
            self._notebook.was_refused(command.token, error)

    def _read(self, client: LineClient, terminal: str) -> None:
        records = client.call("term_read", {"name": terminal, "last_n": 5})["result"]
        self._notebook.told += [Told(terminal, record) for record in records]


class Typist(Worker):
    """Alone on its terminal, so that it may type; never ahead of what still runs."""

    _kinds = tuple(KINDS.values())

    def run(self, client: LineClient, terminal: str, kind: Kind) -> str:
        """Send one command; gives its token. The next one waits until it has ended."""
        token = super().run(client, terminal, kind)
        if kind is not KINDS["quick"]:
            self.run(client, terminal, KINDS["quick"])
        return token


class Sender(Worker):
    """A worker that also hands news to another."""

    to = "reviewer"

    def _step(self, client: LineClient) -> None:
        super()._step(client)
        if self._chance.random() < HANDOFF_RATE:
            self._hand_on(client)

    def _hand_on(self, client: LineClient) -> None:
        body = f"news {self._notebook.new_token('news')}"
        arguments = {"target_handle": self.to, "context": body, "from_handle": self.handle}
        receipt = None
        try:
            receipt = client.call("handoff", arguments)["id"]
        finally:
            self._notebook.handoffs.append(Handoff(self.to, body, receipt))


class Reader:
    """Waits for the messages of one handle, and acknowledges what it got with its next call."""

    def __init__(self, handle: str, notebook: Notebook) -> None:
        self.handle = handle
        self.answers: list[Answer] = []
        self._notebook = notebook
        self._next: str | None = None
        self._news = threading.Condition()
        self._seen: set[str] = set()

    def work(self, daemon: ScratchDaemon) -> None:
        """Go on until the daemon is gone."""
        try:
            with daemon.connect() as client:
                while True:
                    self._try_wait(client)
        except ClientError:
            return

    def _try_wait(self, client: LineClient) -> None:
        after = self._next
        try:
            self._got(after, client.call("inbox_wait", self._arguments(after)))
        except CommandFailed as error:
            if error.code == "unavailable":  # the daemon is stopping
                raise
            self._notebook.was_refused(self.handle, error)

    def has_seen(self, ids: set[str]) -> bool:
        """Wait until all of these came; False if they do not."""
        with self._news:
            return self._news.wait_for(lambda: ids <= self._seen, GUARD_S)

    def _arguments(self, after: str | None) -> dict[str, object]:
        who = {"timeout": GUARD_S, "from_handle": self.handle}
        return who if after is None else {**who, "after": after}

    def _got(self, after: str | None, reply: dict[str, Any]) -> None:
        with self._news:
            self.answers.append(Answer(tuple(reply["messages"]), after))
            self._next = reply["next"] or self._next
            self._seen.update(message["id"] for message in reply["messages"])
            self._news.notify_all()


class McpReader(Reader):
    """The same through the official MCP client, on the session URL of the handle."""

    def work(self, daemon: ScratchDaemon) -> None:
        """Go on until the daemon is gone."""
        try:
            trio.run(self._work, daemon)
        except Exception:
            # What the client raises when its server dies is its own affair; a live one must answer.
            if not self._notebook.pardoned and answers(daemon):
                raise

    async def _work(self, daemon: ScratchDaemon) -> None:
        async with open_session(daemon, self.handle) as session:
            while True:
                await self._try_wait_in(session)

    async def _try_wait_in(self, session: Session) -> None:
        after = self._next
        arguments = self._arguments(after)
        del arguments["from_handle"]
        arguments["timeout"] = GUARD_S / 2  # below what the client waits for an answer
        try:
            self._got(after, await session.call("inbox_wait", arguments))
        except ToolFailed:
            if "storage" not in self._notebook.pardoned:
                raise


def answers(daemon: ScratchDaemon) -> bool:
    """Whether the daemon is there."""
    try:
        return bool(daemon.call("status"))
    except (ClientError, ScratchError):
        return False

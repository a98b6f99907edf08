"""Clients of a load that follow others: they subscribe for a while, read, and wait."""

from __future__ import annotations

import time

from aegis.client.line import CommandFailed, LineClient
from tests.chaos.checking.observations import (
    OutputRead,
    RecordsRead,
    Span,
    Subscribing,
    Waited,
)
from tests.chaos.real.load import Worker, pause

OUTPUT_BYTES = 4096
WAIT_S, IDLE_S = 0.5, 0.1
MOST_OUTPUTS = 400
"""The most outputs of one client that are kept: each is compared with each."""


class TemporarySubscriber(Worker):
    """A client that subscribes to terminals and unsubscribes. Its inbox has another reader."""

    def _step(self, client: LineClient) -> None:
        terminal = self._chance.choice(self._terminals)
        self.subscribe(client, terminal, on=self._chance.random() < 0.5)
        pause()

    def subscribe(self, client: LineClient, terminal: str, *, on: bool) -> None:
        """Make one change. Calls are ordered, so it ends an earlier change in doubt."""
        book = self._notebook
        before, asked = book.moment(), book.moment()
        command = "term_subscribe" if on else "term_unsubscribe"
        done: bool | None = None
        try:
            client.call(command, {"name": terminal, "from_handle": self.handle})
            done = True
        except CommandFailed as error:
            book.was_refused(self.handle, error, terminal=terminal, asked=asked)
            pause()
        finally:
            span = Span(asked, book.moment() if done else None)
            if done:
                self._settle(terminal, before)
            book.subscriptions.append(
                Subscribing(handle=self.handle, terminal=terminal, span=span, done=done, on=on)
            )

    def _settle(self, terminal: str, moment: int) -> None:
        """End a change in doubt: calls are carried out in order, so it preceded this answer."""
        changes = self._notebook.subscriptions
        for index, each in enumerate(changes):
            is_mine = (each.handle, each.terminal) == (self.handle, terminal)
            if is_mine and each.span.answered is None:
                changes[index] = Subscribing(
                    handle=each.handle,
                    terminal=terminal,
                    span=Span(each.span.asked, moment),
                    done=None,
                    on=each.on,
                )


class Watcher(Worker):
    """A client that reads records, output and screens of any terminal, and waits."""

    def _step(self, client: LineClient) -> None:
        terminal = self._chance.choice(self._terminals)
        look = self._chance.choice([self._read_since, self._output, self._wait, self._screen])
        asked = self._notebook.moment()
        try:
            look(client, terminal, asked)
        except CommandFailed as error:
            self._notebook.was_refused(self.handle, error, terminal=terminal, asked=asked)
        pause()

    def _span(self, asked: int) -> Span:
        return Span(asked, self._notebook.moment())

    def _read_since(self, client: LineClient, terminal: str, asked: int) -> None:
        mine = [each for each in self._notebook.reads[-40:] if each.terminal == terminal]
        known = [record["seq"] for each in mine for record in each.records]
        since = max(known, default=-1)
        reply = client.call("term_read", {"name": terminal, "since_seq": since})
        self._notebook.reads.append(
            RecordsRead(
                terminal=terminal,
                span=self._span(asked),
                since_seq=since,
                records=tuple(reply["result"]),
                more=bool(reply.get("more")),
            )
        )

    def _output(self, client: LineClient, terminal: str, asked: int) -> None:
        mine = [each for each in self._notebook.outputs if each.terminal == terminal]
        cursor = mine[-1].next_cursor if mine and self._chance.random() < 0.8 else None
        arguments: dict[str, object] = {
            "name": terminal,
            "max_bytes": OUTPUT_BYTES,
            "plain": self._chance.random() < 0.3,
            **({} if cursor is None else {"cursor": cursor}),
        }
        reply = client.call("term_output", arguments)
        if len(self._notebook.outputs) < MOST_OUTPUTS:
            self._notebook.outputs.append(
                OutputRead(
                    terminal=terminal,
                    span=self._span(asked),
                    from_cursor=cursor,
                    cursor=reply["cursor"],
                    next_cursor=reply["next_cursor"],
                    dropped=reply["dropped"],
                    text=reply["text"],
                    max_bytes=OUTPUT_BYTES,
                    plain=bool(arguments["plain"]),
                )
            )

    def _wait(self, client: LineClient, terminal: str, asked: int) -> None:
        idle_s = self._chance.choice([None, IDLE_S])
        pattern = self._chance.choice([None, "late"])
        wanted = {"idle_s": idle_s, "pattern": pattern}
        given = {name: value for name, value in wanted.items() if value is not None}
        began = time.monotonic()
        reply = client.call("term_wait", {"name": terminal, "timeout": WAIT_S, **given})
        self._notebook.waits.append(
            Waited(
                terminal=terminal,
                span=self._span(asked),
                seconds=time.monotonic() - began,
                timeout_s=WAIT_S,
                reason=reply["reason"],
                record=reply["record"],
                cursor=reply["cursor"],
                match=reply["match"],
                pattern=pattern,
                idle_s=idle_s,
            )
        )

    def _screen(self, client: LineClient, terminal: str, asked: int) -> None:
        del asked
        client.call("term_screen", {"name": terminal})

"""The session of a blocking client: one call after another over the Unix socket."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path
from typing import Any, TypeVar

from aegis.client.calls import (
    Arguments,
    arguments_of,
    checked_patience,
    delay_s,
    entry_of,
    is_repeated,
    lost,
    refusal,
    reply_of,
)
from aegis.client.errors import ClientError, CommandFailed, ConnectionLost
from aegis.client.line import LineClient, connect
from aegis.protocol.command import Command
from aegis.protocol.entry import Entry

T = TypeVar("T")


class BlockingSession:
    """Calls to the daemon of ``root`` under ``handle``. Not thread-safe.

    ``patience_s``: seconds that a call waits for a new connection.
    """

    def __init__(self, root: Path, *, handle: str | None, patience_s: float) -> None:
        self._root = root
        self._handle = handle
        self._patience_s = checked_patience(patience_s)
        self._line: LineClient | None = None
        self._is_closed = False

    def connect(self) -> None:
        """Connect, without repetition. Raises ``NoDaemon``, ``ConnectionLost``."""
        self._line = connect(self._root)

    def call(self, command: type[Command[T]], arguments: dict[str, object]) -> T:
        """Call ``command`` and return its reply. Raises ``ClientError``."""
        entry = entry_of(command)
        sent = arguments_of(command, arguments, self._handle)
        for tries in itertools.count(1):
            line = self._connected()
            try:
                return reply_of(command, self._ask(line, entry, sent))
            except ConnectionLost as error:
                if not is_repeated(entry, tries, was_sent=True):
                    raise lost(entry, error.reason) from None
        raise AssertionError

    def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        self._drop()

    def _ask(self, line: LineClient, entry: Entry, sent: Arguments) -> dict[str, Any]:
        try:
            return line.call(entry.name, sent)
        except CommandFailed as error:
            raise refusal(entry, error.code, str(error)) from None
        except BaseException:
            # After an interrupt an unread answer would be left over; closing also cancels the call.
            self._drop()
            raise

    def _connected(self) -> LineClient:
        if self._is_closed:
            raise ConnectionLost("this client is closed", maybe_done=False)
        if self._line is not None and self._line.is_over():
            self._drop()  # before a request is sent, so none is lost
        if self._line is None:
            self._reconnect()
        assert self._line is not None
        return self._line

    def _reconnect(self) -> None:
        until = time.monotonic() + self._patience_s
        for failures in itertools.count(1):
            try:
                self.connect()
            except ClientError as error:
                wait_s = delay_s(failures, random.random())  # noqa: S311 -- no secret
                if time.monotonic() + wait_s > until:
                    raise self._no_connection(error) from None
                time.sleep(wait_s)
            else:
                return

    def _no_connection(self, error: ClientError) -> ConnectionLost:
        return ConnectionLost(
            f"could not connect to the daemon of {self._root} within "
            f"{self._patience_s:g} s ({error}); the call was not made",
            maybe_done=False,
            may_repeat=True,
        )

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

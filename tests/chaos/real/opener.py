"""A client that opens and closes terminals of its own through all incarnations."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Literal

import attrs

from aegis.client.line import ClientError, CommandFailed, LineClient
from tests.chaos.checking.observations import Record
from tests.chaos.real.load import pause
from tests.chaos.real.scratch import ScratchDaemon

KnownState = Literal["in doubt", "open", "closed", "purged"]

MOST_OPEN = 2
PURGE_RATE = 0.4
LEAVE_RATE = 0.3


@attrs.define
class Opened:
    """A terminal: its state and its record, as far as its client knows."""

    state: KnownState = "in doubt"
    record: Record | None = None


class Opener:
    """A client that opens and closes terminals, each with a new name.

    They are opened on ``node``; None: on the daemon's choice. ``is_over`` ends the work.
    """

    def __init__(
        self,
        new_name: Callable[[], str],
        chance: random.Random,
        *,
        node: str | None = None,
        is_over: threading.Event | None = None,
    ) -> None:
        self._new_name = new_name
        self._chance = chance
        self._where = {} if node is None else {"node": node}
        self._is_over = threading.Event() if is_over is None else is_over
        self._terminals: dict[str, Opened] = {}

    def work(self, daemon: ScratchDaemon) -> None:
        """Continue until the daemon is gone. Each command has a connection of its own."""
        try:
            while not self._is_over.is_set():
                self._step(daemon)
        except ClientError:
            return

    def _step(self, daemon: ScratchDaemon) -> None:
        are_open = [name for name, each in self._terminals.items() if each.state == "open"]
        if len(are_open) < MOST_OPEN:
            are_open.append(self._open(daemon))
        if len(are_open) == MOST_OPEN or self._chance.random() > LEAVE_RATE:
            self._close(daemon, are_open[0], purge=self._chance.random() < PURGE_RATE)

    def _open(self, daemon: ScratchDaemon) -> str:
        name = self._new_name()
        opened = self._terminals[name] = Opened()
        try:
            daemon.call("term_spawn", name=name, **self._where)
            opened.state = "open"
            opened.record = daemon.call("term_run", name=name, cmd=f"sleep 0.1; echo {name}")
        except CommandFailed:
            pause()  # it is as far as it came
        return name

    def _close(self, daemon: ScratchDaemon, name: str, *, purge: bool) -> None:
        opened = self._terminals[name]
        opened.state = "in doubt"
        try:
            daemon.call("term_close", name=name, purge=purge)
            opened.state = "purged" if purge else "closed"
        except CommandFailed:
            pause()  # in doubt until the next read

    def settle(self, there: Collection[str]) -> Iterator[str]:
        """Resolve the terminals in doubt by the open terminals of a new daemon.

        Return a sentence for each terminal whose confirmed state differs.
        """
        for name, opened in self._terminals.items():
            if opened.state in ("closed", "purged") and name in there:
                yield f"{name} was {opened.state} and is open again"
            elif opened.state == "open" and name not in there:
                yield f"{name} was open and is not any longer"
        doubtful = [n for n, each in self._terminals.items() if each.state == "in doubt"]
        for name in doubtful:
            if name in there:
                self._terminals[name].state = "open"
            else:
                del self._terminals[name]

    def differences(self, client: LineClient) -> Iterator[str]:
        """Yield a sentence for each confirmed close after which the history is wrong."""
        for name, opened in self._terminals.items():
            found = _newest_record(client, name)
            if opened.state == "purged" and found is not None:
                yield f"{name} was purged and still has {found}"
            elif opened.state != "purged" and opened.record not in (None, found):
                yield f"of {name} a client got {_difference(opened.record, found)}"


def _newest_record(client: LineClient, name: str) -> Record | None:
    try:
        records = client.call("term_read", {"name": name, "last_n": 1})["result"]
    except CommandFailed:
        return None
    return records[0] if records else None


def _difference(seen: Record | None, found: Record | None) -> str:
    """Return the differences between a record and its later copy."""
    if seen is None or found is None:
        return f"{seen}, and there is {found}"
    return ", ".join(
        f"{name} {seen[name]!r}, and it is {found.get(name)!r}"
        for name in seen
        if seen[name] != found.get(name)
    )

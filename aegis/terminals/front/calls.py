"""Calls of ``run`` that wait for a terminal or for their command: first come, first served."""

from __future__ import annotations

import attrs

from actors import Reply, Timer
from aegis.errors import AegisError, Busy
from aegis.protocol.terminals import CommandRecord, NeedsInput, Until

MAX_WAITING = 256
"""Calls that may wait for one terminal at a time."""


@attrs.define(eq=False)
class Call:
    """One call of ``run``: ``number`` is unique within the life of the front.

    ``is_late``: its time was up while its command was with the shell. ``needs_input``: its command
    waits for input, and its caller is about to be told. ``until``: what its caller waits for.
    ``refusal`` is what its caller is told in place of the record, once that is in the ledger.
    """

    number: int
    cmd: str
    writer: str
    timeout_s: float
    reply: Reply[CommandRecord]
    timer: Timer
    until: Until = "ended"
    is_late: bool = False
    needs_input: NeedsInput | None = None
    refusal: AegisError | None = None

    def settle(self, outcome: CommandRecord | Exception) -> None:
        """Give the caller its record, or the reason why there is none."""
        self.timer.cancel()
        if isinstance(outcome, Exception):
            self.reply.fail(outcome)
        elif self.refusal is not None:
            self.reply.fail(self.refusal)
        else:
            self.reply.send(outcome)


class CallQueue:
    """The calls that were not typed yet. A caller that went away loses its place."""

    def __init__(self, terminal: str) -> None:
        self._terminal = terminal
        self._waiting: list[Call] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, call: Call) -> None:
        """Queue a call. Raises ``Busy`` when too many wait already."""
        if len(self._waiting) >= MAX_WAITING:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_WAITING:
            raise Busy(
                f"{MAX_WAITING} commands already wait for terminal {self._terminal!r}; "
                "try again later or spawn another terminal"
            )
        self._waiting.append(call)

    def put_back(self, call: Call) -> None:
        """Return a call that was taken but not typed to the head of the queue."""
        self._waiting.insert(0, call)

    def take(self) -> Call | None:
        """The next call whose caller still waits."""
        while self._waiting:
            call = self._waiting.pop(0)
            if not call.reply.is_settled:
                return call
            call.timer.cancel()
        return None

    def remove(self, number: int) -> Call | None:
        """Take the call ``number`` out of the queue, if it waits there."""
        for call in self._waiting:
            if call.number == number:
                self._waiting.remove(call)
                return call
        return None

    def fail_all(self, error: Exception) -> None:
        """Nobody's command will be typed any more."""
        while self._waiting:
            self._waiting.pop(0).settle(error)

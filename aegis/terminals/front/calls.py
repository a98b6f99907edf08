"""The calls of ``run`` that wait for a terminal or for their command."""

from __future__ import annotations

import attrs

from actors import Reply, Timer
from aegis.errors import AegisError, Busy
from aegis.protocol.terminals import CommandRecord, NeedsInput, Until

MAX_WAITING = 256
"""The most calls that may wait for one terminal at a time."""


@attrs.define(eq=False)
class Call:
    """One call of ``run``.

    ``number`` is unique within one incarnation of the front. ``is_late``: the time was up while the
    command was with the shell. ``needs_input``: the command waits for input, and the caller is
    about to be answered; ``may_need_input``: it may wait, and the caller waits on. ``until``: the
    condition that ends the call. ``refusal`` is answered instead of the record, once the record is
    in the ledger.
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
    may_need_input: NeedsInput | None = None
    refusal: AegisError | None = None

    def settle(self, outcome: CommandRecord | Exception) -> None:
        """Answer the caller with its record, or with the error."""
        self.timer.cancel()
        if isinstance(outcome, Exception):
            self.reply.fail(outcome)
        elif self.refusal is not None:
            self.reply.fail(self.refusal)
        else:
            self.reply.send(outcome)


class CallQueue:
    """The calls whose command was not typed yet, in order. An abandoned call is skipped."""

    def __init__(self, terminal: str) -> None:
        self._terminal = terminal
        self._waiting: list[Call] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, call: Call) -> None:
        """Queue a call. Raises ``Busy`` if ``MAX_WAITING`` calls are queued."""
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
        """Remove and return the next call whose caller still waits."""
        while self._waiting:
            call = self._waiting.pop(0)
            if not call.reply.is_settled:
                return call
            call.timer.cancel()
        return None

    def remove(self, number: int) -> Call | None:
        """Remove and return the call ``number``; None if it is not queued."""
        for call in self._waiting:
            if call.number == number:
                self._waiting.remove(call)
                return call
        return None

    def fail_all(self, error: Exception) -> None:
        """Fail every queued call: no command will be typed any more."""
        while self._waiting:
            self._waiting.pop(0).settle(error)

"""Calls of ``run`` that wait for a terminal or for their command, and displaced submissions."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from actors import Reply, Timer
from aegis.errors import AegisError, Busy
from aegis.protocol.terminals import CommandRecord, NeedsInput, Until
from aegis.terminals.record import UnrecordedCommand

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


@attrs.frozen
class Displaced:
    """A submission in the shell's input behind lines that were typed ahead of it.

    ``call`` is None if no caller waits for it any more. The ``seq`` of ``command`` counts only if
    the submission has timed out: then its caller was shown it.
    """

    command: UnrecordedCommand
    call: Call | None

    @property
    def number(self) -> int | None:
        """The number of its call."""
        return self.command.call

    @property
    def is_shown(self) -> bool:
        """Whether its caller knows its ``seq``."""
        return self.command.timed_out

    def numbered(self, seq: int, cwd: str | None, cursor: int) -> UnrecordedCommand:
        """Return the submission as the command ``seq``, as if it began now."""
        if self.is_shown:
            return self.command
        return attrs.evolve(self.command, seq=seq, cwd=cwd, raw_start=cursor)


def last_begun(commands: Iterable[UnrecordedCommand]) -> UnrecordedCommand | None:
    """Return the command that began last; if none has begun, the one with the highest number."""
    return max(
        commands,
        key=lambda each: (-1 if each.began_at is None else each.began_at, each.seq),
        default=None,
    )


def is_submission(command: UnrecordedCommand, number: int | None) -> bool:
    """Whether the command is the submission ``number``, which has not begun."""
    return command.began_at is None and command.call == number

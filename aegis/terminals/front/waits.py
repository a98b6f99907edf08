"""``Waits``: the calls of ``wait`` on one terminal, and their outcomes.

The event that ends a call:

=========================  ======================================  ==============================
call                       no command runs                         a command runs
=========================  ======================================  ==============================
no condition               the last record, at once                its end
``pattern``, ``idle_s``    the condition, or the next one's end    the condition, or its end
``seq`` in the ledger      its record, at once                     the same
``seq`` that runs          (cannot be)                             its end, or a condition
``seq`` unknown            an error                                an error
=========================  ======================================  ==============================

A call also ends when the terminal is closed (``closed``), when its time is up, and when the command
begins to wait for input. If the command waits for input already, only a call without conditions
ends at once: otherwise no caller could wait for text of such a program.

A pattern is searched in all text before the command's end, however late the search comes: a match
there is ``matched``, and has the record beside it. The quiet of ``idle_s`` counts from the call on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import trio

from actors import ActorStopped, Ref, Reply, Request
from aegis.errors import AegisError, Busy, NotFound, Unavailable
from aegis.protocol.output import OutputChunk, WaitOutcome, WaitReason, WaitTerminal
from aegis.protocol.terminals import CommandRecord, NeedsInput
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.history import History
from aegis.terminals.messages import FetchOutput, FetchPrinted
from aegis.terminals.output.notifier import Notifier
from aegis.terminals.output.patterns import MAX_PIECE_CHARS, TextSearch
from aegis.terminals.record import unfinished_record
from aegis.terminals.retry import ask_across_restarts

T = TypeVar("T")

MAX_WAITS = 256
"""The most calls that may wait on one terminal at a time."""

END_LIMIT_S = 0.3
"""The most that the end of a terminal waits for the search of its last output, in seconds."""


@attrs.define(eq=False)
class _Wait:
    """One call for the command ``seq``; the search of the output continues at ``cursor``.

    ``decided`` is an event other than output that ended the wait; it cancels ``looking``.
    """

    request: WaitTerminal
    reply: Reply[WaitOutcome]
    search: TextSearch | None
    seq: int | None
    cursor: int | None
    record: CommandRecord | None = None
    match: str | None = None
    decided: WaitReason | AegisError | None = None
    looking: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    @property
    def has_condition(self) -> bool:
        return self.search is not None or self.request.idle_s is not None

    def decide(self, what: WaitReason | AegisError) -> None:
        if self.decided is None:
            self.decided = what
            self.looking.cancel()


class Waits:
    """The waiting calls of the terminal ``name``; ``start_soon`` starts a helper of the front."""

    def __init__(
        self,
        name: str,
        current: CurrentCommand,
        history: History,
        shell: Ref[Any],
        *,
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._command = current
        self._history = history
        self._shell = shell
        self._start_soon = start_soon
        self._needs_input: NeedsInput | None = None
        self._waits: dict[_Wait, None] = {}  # an empty set takes 0.2 KiB, and most are empty
        self._answered = Notifier()

    def add(
        self,
        request: WaitTerminal,
        reply: Reply[WaitOutcome],
        last: CommandRecord | None,
        *,
        is_closing: bool = False,
        failure: str = "",
    ) -> None:
        """Add a call; ``last`` is the newest record. Errors go to ``reply``.

        ``is_closing``: no further command will run; ``failure``: none runs now, for this reason.
        """
        try:
            wait = self._new_wait(request, reply)
            self._make_room()
            self._begin(wait, last)
            if wait.seq is None and wait.decided is None:
                if is_closing:
                    wait.decide("closed")
                elif failure:
                    raise Unavailable(failure)
        except AegisError as error:
            reply.fail(error)
        else:
            self._waits[wait] = None
            self._start_soon(self._answer, wait)

    def needs_input(self, needs: NeedsInput | None) -> None:
        """Note that the current command waits for input, or (None) no longer does."""
        self._needs_input = needs
        command = self._command.command
        if needs is not None and command is not None:
            for wait in self._waits:
                if wait.seq == command.seq:
                    wait.decide("needs_input")

    def began(self, seq: int) -> None:
        """Note that a command runs: calls on the idle terminal now wait for it."""
        self._needs_input = None
        for wait in self._waits:
            if wait.seq is None:
                wait.seq = seq

    def recorded(self, record: CommandRecord) -> None:
        """Note that this record is in the ledger."""
        for wait in self._waits:
            if wait.seq == record.seq and wait.decided is None:
                wait.record = record
                wait.decide("closed" if record.end == "closed" else "ended")

    async def end(self) -> None:
        """Answer every call: the terminal has ended, and every record is in the ledger."""
        for wait in self._waits:
            wait.decide("closed")
        with trio.move_on_after(END_LIMIT_S):
            while self._waits:
                await self._answered.wait()

    def failed(self, failure: str) -> None:
        """Fail the calls, as no shell runs, except those for commands without a record yet."""
        pending = {command.seq for command in self._command.unrecorded()}
        for wait in self._waits:
            if wait.seq not in pending:
                wait.decide(Unavailable(failure))

    def _new_wait(self, request: WaitTerminal, reply: Reply[WaitOutcome]) -> _Wait:
        search = None if request.pattern is None else TextSearch(request.pattern)
        return _Wait(request, reply, search, request.seq, request.cursor)

    def _make_room(self) -> None:
        if len(self._waits) >= MAX_WAITS:
            for wait in [each for each in self._waits if each.reply.is_settled]:
                wait.looking.cancel()
                del self._waits[wait]
        if len(self._waits) >= MAX_WAITS:
            raise Busy(
                f"{MAX_WAITS} calls already wait for something on terminal {self._name!r}; try "
                "again later"
            )

    def _begin(self, wait: _Wait, last: CommandRecord | None) -> None:
        """Find the call's command, or decide the call at once."""
        pending = {command.seq: command for command in self._command.unrecorded()}
        if wait.seq is None and pending:
            wait.seq = max(pending)
        if wait.seq is None:
            if not wait.has_condition:
                wait.record = last
                wait.decide("ended")
        elif wait.seq in pending:
            if wait.cursor is None:
                wait.cursor = pending[wait.seq].raw_start
            if self._is_stuck(wait.seq) and not wait.has_condition:
                wait.decide("needs_input")
        elif last is None or wait.seq > last.seq:
            newest = "there is none yet" if last is None else f"the newest is {last.seq}"
            raise NotFound(f"terminal {self._name!r} has no command with seq {wait.seq}; {newest}")
        else:
            wait.decide("ended")

    def _is_stuck(self, seq: int) -> bool:
        """Whether this command runs and waits for input."""
        command = self._command.command
        return self._needs_input is not None and command is not None and command.seq == seq

    async def _answer(self, wait: _Wait) -> None:
        try:
            outcome = await self._outcome(wait)
        except AegisError as error:
            if not wait.reply.is_settled:
                wait.reply.fail(error)
        else:
            if not wait.reply.is_settled:
                wait.reply.send(outcome)
        finally:
            self._waits.pop(wait, None)
            self._answered.notify()

    async def _outcome(self, wait: _Wait) -> WaitOutcome:
        deadline = trio.current_time() + wait.request.timeout
        reason = await self._reason(wait, deadline)
        while reason == "needs_input" and wait.record is None:
            self._wait_on(wait)
            reason = await self._reason(wait, deadline)
        return WaitOutcome(
            reason=reason,
            match=wait.match,
            cursor=await self._cursor(wait),
            record=wait.record,
        )

    async def _reason(self, wait: _Wait, deadline: float) -> WaitReason:
        reason: WaitReason = "timeout"
        with trio.move_on_at(deadline), wait.looking:
            reason = await self._look(wait)
        if isinstance(wait.decided, AegisError):
            raise wait.decided
        if reason == "timeout" and wait.decided is not None:
            reason = await self._look_back(wait, wait.decided)
        return reason

    def _wait_on(self, wait: _Wait) -> None:
        """Continue a wait: the command got its input while its output was fetched."""
        wait.decided, wait.looking = None, trio.CancelScope()
        if wait.seq not in {command.seq for command in self._command.unrecorded()}:
            wait.decide("ended")

    async def _look(self, wait: _Wait) -> WaitReason:
        """Read the output until it ends the wait."""
        quiet_s = math.inf if wait.request.idle_s is None else wait.request.idle_s
        if not wait.has_condition:
            await trio.sleep_forever()
        if wait.search is not None and wait.cursor is None:
            wait.cursor = (await self._fetch(None, 0.0)).next_cursor
        while not wait.reply.is_settled:
            cursor = wait.cursor if wait.search is not None else None
            asked_at = trio.current_time()
            chunk = await self._fetch(cursor, quiet_s)
            if chunk.next_cursor == chunk.cursor:
                if trio.current_time() - asked_at >= quiet_s:
                    return "idle"
                await trio.sleep_forever()  # the terminal has ended: the front decides the call
            if await self._matches(wait, chunk):
                return "matched"
        return "timeout"

    async def _look_back(self, wait: _Wait, decided: WaitReason) -> WaitReason:
        """Search the output before the event ``decided``; return the reason of the outcome."""
        if wait.record is None and decided == "ended" and wait.seq is not None:
            wait.record = await self._history.one(wait.seq, self._name)
        if decided == "needs_input":
            wait.record = await self._record_so_far()
        if wait.search is None:
            return decided
        end: float = math.inf
        if wait.record is not None and decided != "needs_input":
            end = wait.record.raw_end or wait.record.raw_start
            wait.cursor = wait.record.raw_start if wait.cursor is None else wait.cursor
        while wait.cursor is not None and wait.cursor < end:
            chunk = await self._fetch(wait.cursor, 0.0, end)
            if chunk.next_cursor == wait.cursor:
                break
            if await self._matches(wait, chunk):
                return "matched"
        return decided

    async def _matches(self, wait: _Wait, chunk: OutputChunk) -> bool:
        if wait.search is None:
            return False
        if chunk.dropped:
            wait.search.reset()
        found = await wait.search.find(chunk.text)
        if found is None:
            wait.cursor = chunk.next_cursor
            return False
        wait.match = found.text
        wait.cursor = chunk.next_cursor
        with trio.move_on_after(END_LIMIT_S, shield=True):  # a match that was found is not lost
            wait.cursor = await self._cursor_behind(chunk, found.end)
        return True

    async def _cursor_behind(self, chunk: OutputChunk, chars: int) -> int:
        """Return the cursor after the first ``chars`` characters of ``chunk``."""
        if chars == 0:
            return chunk.cursor
        if chars == len(chunk.text):
            return chunk.next_cursor
        size = chunk.next_cursor - chunk.cursor
        again = await self._ask(FetchOutput(cursor=chunk.cursor, max_bytes=size, max_chars=chars))
        return chunk.next_cursor if again.dropped else again.next_cursor

    async def _cursor(self, wait: _Wait) -> int:
        """Return the cursor from which the caller can continue."""
        if wait.search is not None and wait.cursor is not None:
            return wait.cursor
        if wait.record is not None and wait.record.raw_end is not None:
            return wait.record.raw_end
        return (await self._fetch(None, 0.0)).next_cursor

    async def _record_so_far(self) -> CommandRecord | None:
        """Return the record so far of a command that waits for input; its note is synced first."""
        command, needs = self._command.command, self._needs_input
        printed = await self._ask(FetchPrinted())
        if command is None or self._command.command is not command:
            return None
        await self._command.sync()
        record = unfinished_record(command, printed.output, printed.raw_end)
        return attrs.evolve(record, timed_out=command.timed_out, needs_input=needs)

    async def _fetch(self, cursor: int | None, wait_s: float, end: float = math.inf) -> OutputChunk:
        size = MAX_PIECE_CHARS
        if cursor is not None and end < cursor + size:
            size = int(end) - cursor
        return await self._ask(FetchOutput(cursor=cursor, max_bytes=size, wait_s=wait_s))

    async def _ask(self, request: Request[T]) -> T:
        """Return the answer of the shell, or of its next incarnation."""
        try:
            return await ask_across_restarts(self._shell, request, timeout=math.inf)
        except ActorStopped:
            raise Unavailable(
                f"terminal {self._name!r} was closed; read its records with aegis_term_read"
            ) from None

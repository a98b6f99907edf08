"""``Runs``: the calls of ``run`` on one terminal, from the queue to the shell and to their answer.

A call is answered with the record so far when its time is up, if its command was typed; and at once
when its command waits for input, or has started and the caller waits only for that. The end of a
command is handled by the front itself.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from actors import Ref, Reply, Timer
from aegis.errors import AegisError, Busy, StorageError
from aegis.protocol import terminals as api
from aegis.terminals import faults
from aegis.terminals import messages as msg
from aegis.terminals.front.calls import Call, CallQueue
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.front.terminal_state import TerminalState
from aegis.terminals.record import unfinished_record, writer_tag
from aegis.terminals.sentences import (
    incomplete,
    not_typed,
    swallowed,
    unread,
    unwritten,
)


class Runs:
    """The calls of the terminal ``name``.

    ``after`` and ``start_soon`` are those of the front's context.
    """

    def __init__(
        self,
        name: str,
        current: CurrentCommand,
        state: TerminalState,
        shell: Ref[msg.Submit | msg.ReportOutput],
        *,
        after: Callable[[float, object], Timer],
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._command = current
        self._state = state
        self._shell = shell
        self._after = after
        self._start_soon = start_soon
        self._queue = CallQueue(name)

    def add(self, request: api.RunCommand, number: int, reply: Reply[api.CommandRecord]) -> None:
        """Add a call under this number.

        It fails at once while a program waits for input: its text may be meant for that program, a
        password even, and must not run as a command later.
        """
        call = Call(
            number=number,
            cmd=request.cmd,
            writer=writer_tag(request.from_handle),
            timeout_s=request.timeout,
            reply=reply,
            timer=self._after(request.timeout, msg.RunDeadline(call=number)),
            until=request.until,
        )
        running, needs = self._command.command, self._state.needs_input
        if running is not None and needs is not None and not self._state.was_answered:
            call.settle(not_typed(self._name, 0, running, None, needs=needs))
            return
        try:
            self._queue.add(call)
        except Busy as busy:
            call.settle(busy)
        self.advance()

    def advance(self) -> None:
        """Type the next command, if the shell is at its prompt and no line is being typed."""
        state = self._state
        while state.state == "idle" and state.typing is None and self._command.is_free:
            call = self._queue.take()
            if call is None:
                return
            try:
                self._command.submit(call, trio.current_time())
            except StorageError as error:
                call.settle(error)
                continue
            state.state = "running"
            faults.TYPE_BEFORE.hit()
            self._shell.tell(msg.Submit(call=call.number, cmd=call.cmd, writer=call.writer))

    def fail_waiting(self, error: Exception) -> None:
        """Fail the queued calls: no command will be typed any more."""
        self._queue.fail_all(error)

    def refused(self, news: msg.SubmissionRefused) -> None:
        """Queue the command again, which the shell refused, unless its time is up."""
        call = self._command.take_back(news.call)
        if news.at_prompt:
            self._state.state = "idle"
        if call is not None and call.is_late:
            self._refuse(call, self._why_not_typed(call))
        elif call is not None:
            self._queue.put_back(call)

    def failed(self, news: msg.SubmissionFailed) -> bool:
        """Handle a text that did not run; return whether a caller was shown its number."""
        if self._command.has_shown(news.call):
            return True
        call = self._command.take_back(news.call)
        if news.why == "unwritten":
            self._state.state = "idle"
        if call is None:
            return False
        if news.why == "unwritten":
            self._refuse(call, unwritten(self._name, call.cmd))
        elif news.why == "incomplete":
            self._refuse(call, incomplete(call.cmd, "did not run"))
        else:
            self._refuse(call, swallowed(self._name, call.cmd))
        return False

    def shell_ended(self, shell: str) -> None:
        """Refuse a submission that the shell had not read before it ended."""
        call = self._command.take_unread(shell)
        if call is not None:
            self._refuse(call, unread(self._name, call.cmd))

    def deadline(self, number: int) -> None:
        """Handle a call whose time is up."""
        call, submitted = self._queue.remove(number), self._command.submitted
        if call is not None:
            self._refuse(call, self._why_not_typed(call))
        elif submitted is not None and submitted.number == number:
            submitted.is_late = True
            self._shell.tell(msg.ReportOutput(call=number))

    def began(self) -> None:
        """Request the output so far for a caller that waits only for the start of its command."""
        # A command that has ended meanwhile gets its final record: the shell sends the end first.
        call = self._command.call
        if call is not None and call.until == "started" and not call.is_late:
            self._shell.tell(msg.ReportOutput(call=call.number))

    def needs_input(self, needs: api.NeedsInput | None, may: api.NeedsInput | None = None) -> None:
        """Request the output so far for the caller of a command that waits for input.

        The caller of one that only may wait (``may``) is not answered early.
        """
        self._state.needs_input, self._state.may_need_input = needs, may
        self._state.was_answered = False
        call = self._command.call
        if call is not None and not call.is_late:
            if needs is not None and call.needs_input is None:
                self._shell.tell(msg.ReportOutput(call=call.number))
            call.needs_input, call.may_need_input = needs, may

    def output_so_far(self, news: msg.OutputSoFar) -> None:
        """Answer a call before the end of its command, with the output so far."""
        call = self._command.submitted
        if call is None or call.number != news.call:
            return
        output = news.output
        try:
            if call is not self._command.call:
                # "Busy" would make the caller try again, and the command run twice: it is typed,
                # behind a line that was typed ahead. The output so far is of that line.
                command, output = self._command.leave_displaced(news.raw_end), msg.NO_OUTPUT
            elif call.is_late:
                command = self._command.mark_timed_out()
            elif call.needs_input is not None or call.until == "started":
                command = self._command.leave_running()
            else:
                return  # it no longer waits for input
        except StorageError as error:
            call.settle(error)
        else:
            record = unfinished_record(command, output, news.raw_end, call.needs_input)
            record = attrs.evolve(record, may_need_input=call.may_need_input)
            self._start_soon(self._answer_synced, call, record)

    def _refuse(self, call: Call, error: AegisError) -> None:
        """Answer with ``error``: the command did not run."""
        # If the synced note may still contain the command, the new note is synced first. Otherwise
        # the next incarnation could find the command there and record it as killed.
        if self._command.owes_sync:
            self._start_soon(self._refuse_synced, call, error)
        else:
            call.settle(error)

    async def _refuse_synced(self, call: Call, error: AegisError) -> None:
        try:
            await self._command.sync()
        except StorageError as refusal:
            call.settle(refusal)
        else:
            call.settle(error)

    def _why_not_typed(self, call: Call) -> AegisError:
        state = self._state
        return not_typed(
            self._name,
            call.timeout_s,
            self._command.command,
            state.typing,
            trio.current_time() - state.typing_began,
            state.needs_input,
            state.may_need_input,
        )

    async def _answer_synced(self, call: Call, record: api.CommandRecord) -> None:
        """Answer with ``record`` once its note is synced."""
        try:
            await self._command.sync()
        except StorageError as error:
            call.settle(error)
        else:
            call.settle(record)

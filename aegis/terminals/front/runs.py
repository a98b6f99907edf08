"""``Runs``: the calls of ``run`` on one terminal, from the queue to the shell and to their answer.

A call whose time is up is answered with the record so far, if its command was typed; one whose
command waits for input, or whose caller waits for its start only, at once. What comes after that,
the end of the command, is the front's.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from actors import Ref, Reply, Timer
from aegis.errors import AegisError, Busy, StorageError
from aegis.protocol import terminals as api
from aegis.terminals import faults
from aegis.terminals import messages as msg
from aegis.terminals.front.calls import Call, CallQueue
from aegis.terminals.front.flight import Flight
from aegis.terminals.front.standing import Standing
from aegis.terminals.record import unfinished_record, writer_tag
from aegis.terminals.sentences import (
    incomplete,
    not_typed,
    swallowed,
    typed_behind,
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
        flight: Flight,
        standing: Standing,
        shell: Ref[msg.Submit | msg.ReportOutput],
        *,
        after: Callable[[float, object], Timer],
        start_soon: Callable[..., object],
    ) -> None:
        self._name = name
        self._flight = flight
        self._standing = standing
        self._shell = shell
        self._after = after
        self._start_soon = start_soon
        self._queue = CallQueue(name)

    def add(self, request: api.RunCommand, number: int, reply: Reply[api.CommandRecord]) -> None:
        """A client asks, under this number."""
        call = Call(
            number=number,
            cmd=request.cmd,
            writer=writer_tag(request.from_handle),
            timeout_s=request.timeout,
            reply=reply,
            timer=self._after(request.timeout, msg.RunDeadline(call=number)),
            until=request.until,
        )
        try:
            self._queue.add(call)
        except Busy as busy:
            call.settle(busy)
        self.advance()

    def advance(self) -> None:
        """Type the next command, if the shell is at its prompt and nobody is typing there."""
        standing = self._standing
        while standing.state == "idle" and standing.typing is None and self._flight.is_free:
            call = self._queue.take()
            if call is None:
                return
            try:
                self._flight.submit(call, trio.current_time())
            except StorageError as error:
                call.settle(error)
                continue
            standing.state = "running"
            faults.TYPE_BEFORE.hit()
            self._shell.tell(msg.Submit(call=call.number, cmd=call.cmd, writer=call.writer))

    def fail_waiting(self, error: Exception) -> None:
        """No command will be typed any more."""
        self._queue.fail_all(error)

    def refused(self, news: msg.SubmissionRefused) -> None:
        """The shell could not take the command now: it waits on, unless its time is up."""
        call = self._flight.take_back(news.call)
        if news.at_prompt:
            self._standing.state = "idle"
        if call is not None and call.is_late:
            self._refuse(call, self._why_not_typed(call))
        elif call is not None:
            self._queue.put_back(call)

    def failed(self, news: msg.SubmissionFailed) -> bool:
        """The text was typed and did not run; whether its number was shown to somebody already."""
        if self._flight.has_shown(news.call):
            return True
        call = self._flight.take_back(news.call)
        if news.why == "unwritten":
            self._standing.state = "idle"
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
        """A submission behind what somebody had typed ahead goes with the shell."""
        call = self._flight.take_unread(shell)
        if call is not None:
            self._refuse(call, unread(self._name, call.cmd))

    def deadline(self, number: int) -> None:
        """The time of a call is up."""
        call, submitted = self._queue.remove(number), self._flight.submitted
        if call is not None:
            self._refuse(call, self._why_not_typed(call))
        elif submitted is not None and submitted.number == number:
            submitted.is_late = True
            self._shell.tell(msg.ReportOutput(call=number))

    def began(self) -> None:
        """A command runs: a caller that waits for no more gets the record so far.

        The shell is asked for it. What has ended by then has its final record: the shell tells its
        end before it answers.
        """
        call = self._flight.call
        if call is not None and call.until == "started" and not call.is_late:
            self._shell.tell(msg.ReportOutput(call=call.number))

    def needs_input(self, needs: api.NeedsInput | None) -> None:
        """The command that runs waits for input: its caller gets the record so far, now."""
        self._standing.needs_input = needs
        call = self._flight.call
        if call is not None and not call.is_late:
            if needs is not None and call.needs_input is None:
                self._shell.tell(msg.ReportOutput(call=call.number))
            call.needs_input = needs

    def output_so_far(self, news: msg.OutputSoFar) -> None:
        """What the command of a call has printed that is to be answered before its end."""
        call = self._flight.submitted
        if call is None or call.number != news.call:
            return
        if call is not self._flight.call:
            call.settle(typed_behind(self._name, call.timeout_s, call.cmd))
            return
        try:
            if call.is_late:
                command = self._flight.mark_timed_out()
            elif call.needs_input is not None or call.until == "started":
                command = self._flight.leave_running()
            else:
                return  # it waits no more
        except StorageError as error:
            call.settle(error)
        else:
            record = unfinished_record(command, news.output, news.raw_end, call.needs_input)
            self._start_soon(self._answer_synced, call, record)

    def _refuse(self, call: Call, error: AegisError) -> None:
        """Its command did not run. While the note may say that it was typed, that is synced first.

        Else a next life could find it there, and take it for one that was killed.
        """
        if self._flight.owes_sync:
            self._start_soon(self._refuse_synced, call, error)
        else:
            call.settle(error)

    async def _refuse_synced(self, call: Call, error: AegisError) -> None:
        try:
            await self._flight.sync()
        except StorageError as refusal:
            call.settle(refusal)
        else:
            call.settle(error)

    def _why_not_typed(self, call: Call) -> AegisError:
        standing = self._standing
        return not_typed(
            self._name,
            call.timeout_s,
            self._flight.command,
            standing.typing,
            trio.current_time() - standing.typing_began,
            standing.needs_input,
        )

    async def _answer_synced(self, call: Call, record: api.CommandRecord) -> None:
        """Before a record is shown its note is synced."""
        try:
            await self._flight.sync()
        except StorageError as error:
            call.settle(error)
        else:
            call.settle(record)

"""``Terminal``: the front of one terminal. It owns the queue of calls and the records.

It holds no resource of the system: the ``Shell`` beside it owns the PTY, the ``LedgerWriter`` the
ledger. One command is in flight at a time, and an end that the shell reports belongs to it, whoever
waits. What a caller or a subscriber sees of a finished command is in the ledger, synced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
import trio

from actors import Down, Ref, Reply
from aegis.clock import utc_now
from aegis.errors import AegisError, Busy, StorageError, Unavailable
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.protocol import terminals as api
from aegis.protocol.inboxes import Deliver
from aegis.terminals import faults
from aegis.terminals import messages as msg
from aegis.terminals.calls import Call, CallQueue
from aegis.terminals.flight import Flight
from aegis.terminals.front import Front, FrontMessage
from aegis.terminals.history import History
from aegis.terminals.record import (
    InFlight,
    final_record,
    lost_record,
    shell_exit_code,
    unfinished_record,
    writer_tag,
)
from aegis.terminals.recorder import Recorder
from aegis.terminals.recovery import recover_output
from aegis.terminals.sentences import incomplete, not_typed, swallowed, typed_behind
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell import Shell
from aegis.terminals.submission import check_command
from aegis.terminals.wakes import Wakes
from aegis.terminals.writer import LedgerWriter

log = structlog.get_logger()

RETRY_APPEND_S = 1.0
"""Seconds before records that the disk refused are tried again."""


class Terminal(Front):
    """The actor that clients of a terminal talk to."""

    def __init__(
        self,
        *,
        settings: TerminalSettings,
        files: TerminalFiles,
        flusher: Flusher,
        inboxes: Ref[Deliver],
    ) -> None:
        self._settings = settings
        self._flusher = flusher
        self._files = files
        self._queue = CallQueue(settings.name)
        self._history = History(files.ledger)
        self._wakes = Wakes(settings, files, self._history, flusher, inboxes)
        self._last_call = 0
        self._state: api.State = "starting"
        self._pid: int | None = None
        self._cwd: str | None = settings.cwd
        self._integration: api.Integration = "osc133"
        self._shells = 0
        self._typing: str | None = None
        self._failure = ""
        self._ending: api.End | None = None
        self._shell_crashed = False
        self._last_record: api.CommandRecord | None = None
        self._prompt_waiters: dict[int, Reply[api.TerminalInfo]] = {}
        self._ending_waiters: list[Reply[msg.Ended]] = []
        self._leftover: tuple[str, ...] = ()
        self._cursor = 0

        self._handlers: dict[type, Callable[[Any], None]] = {
            msg.ShellStarted: self._shell_started,
            msg.Prompted: self._prompted,
            msg.SubmissionRefused: self._submission_refused,
            msg.SubmissionFailed: self._submission_failed,
            msg.CommandStarted: self._command_started,
            msg.CommandEnded: self._command_ended,
            msg.NothingRan: self._nothing_ran,
            msg.ShellEnded: self._shell_ended,
        }

    async def setup(self) -> None:
        """Read the ledger and the note; a command found in flight gets its final record."""
        self._shell = self.context.sibling("shell", Shell)
        self._writer = self.context.sibling("writer", LedgerWriter)
        self._recorder = Recorder(self._writer, self._retry_soon)
        self.context.monitor(self._shell)
        self.context.monitor(self._writer)
        self.context.register("terminal", self._settings.name.lower())
        self._last_record, given = self._history.last()
        note = Note.open(self._files.note, self._flusher)
        self._flight, found = Flight.open(note, self._wakes.open(given))
        await self._recover(found)
        self._shell.tell(msg.Introduce())
        self._wakes.start(self.context.start_soon)

    async def teardown(self) -> None:
        """Let go of the notes' files."""
        self._wakes.close()
        if hasattr(self, "_flight"):
            self._flight.close()

    async def receive(self, message: FrontMessage) -> None:  # noqa: C901 - one line per message
        """Handle a client's command, or news of the shell, the writer or a timer."""
        match message:
            case api.RunCommand():
                self._run(message)
            case api.SendKeys():
                self._check_serving()
                keys = msg.TypeKeys(keys=message.keys, writer=writer_tag(message.from_handle))
                self.pass_on(message, self._shell, keys)
            case api.ReadRecords():
                self.context.start_soon(self._history.answer, message, self.defer(message))
            case api.Subscribe():
                self._wakes.subscribe(message.from_handle or "human", self.defer(message))
            case api.Unsubscribe():
                self._wakes.unsubscribe(message.from_handle or "human", self.defer(message))
            case msg.Describe():
                self.reply(message, self._info())
            case msg.AwaitPrompt():
                self._await_prompt(message)
            case msg.EndTerminal():
                self._end(message)
            case msg.RecordAppended():
                self._record_appended(message)
            case msg.AppendFailed():
                self._recorder.refused(message)
                self._check_ended()
            case msg.RetryAppends():
                self._recorder.retry()
            case msg.RunDeadline(call=call):
                self._run_deadline(call)
            case msg.PromptDeadline(call=call):
                self._answer_prompt_waiter(call)
            case Down():
                self._sibling_down(message)
            case _:
                self._shell_news(message)

    def _shell_news(self, message: Any) -> None:
        match message:
            case msg.TypingChanged(who=who):
                self._typing = who
            case msg.OutputSoFar():
                self._output_so_far(message)
            case msg.ShellFailed(why=why):
                self._shell_failed(why)
            case _:
                self._handlers[type(message)](message)
        self._advance()

    # Calls of run.

    def _run(self, request: api.RunCommand) -> None:
        check_command(request.cmd)
        self._check_serving()
        self._last_call += 1
        number = self._last_call
        call = Call(
            number=number,
            cmd=request.cmd,
            writer=writer_tag(request.from_handle),
            timeout_s=request.timeout,
            reply=self.defer(request),
            timer=self.context.after(request.timeout, msg.RunDeadline(call=number)),
        )
        try:
            self._queue.add(call)
        except Busy as busy:
            call.settle(busy)
        self._advance()

    def _check_serving(self) -> None:
        name = self._settings.name
        if self._ending is not None:
            raise Unavailable(f"terminal {name!r} is being closed")
        if self._state == "failed":
            raise Unavailable(f"terminal {name!r} has failed: {self._failure}")
        self._recorder.check(name)

    def _advance(self) -> None:
        """Type the next command, if the shell is at its prompt and nobody is typing there."""
        while self._state == "idle" and self._typing is None and self._flight.is_free:
            call = self._queue.take()
            if call is None:
                return
            try:
                self._flight.submit(call, self._cwd, self._cursor, trio.current_time())
            except StorageError as error:
                call.settle(error)
                continue
            self._state = "running"
            faults.TYPE_BEFORE.hit()
            self._shell.tell(msg.Submit(call=call.number, cmd=call.cmd))

    def _submission_refused(self, news: msg.SubmissionRefused) -> None:
        call = self._flight.take_back()
        if news.at_prompt:
            self._state = "idle"
        if call is not None and call.is_late:
            call.settle(self._why_not_typed(call))
        elif call is not None:
            self._queue.put_back(call)

    def _submission_failed(self, news: msg.SubmissionFailed) -> None:
        command = self._flight.command
        if command is not None and command.timed_out:
            self._give_up(command)
            return
        call = self._flight.take_back()
        if call is None:
            return
        if news.why == "incomplete":
            call.settle(incomplete(call.cmd, "did not run"))
        else:
            call.settle(swallowed(self._settings.name, call.cmd))

    def _run_deadline(self, number: int) -> None:
        call, submitted = self._queue.remove(number), self._flight.submitted
        if call is not None:
            call.settle(self._why_not_typed(call))
        elif submitted is not None and submitted.number == number:
            submitted.is_late = True
            self._shell.tell(msg.ReportOutput(call=number))

    def _why_not_typed(self, call: Call) -> AegisError:
        return not_typed(self._settings.name, call.timeout_s, self._flight.command, self._typing)

    def _output_so_far(self, news: msg.OutputSoFar) -> None:
        call = self._flight.submitted
        if call is None or call.number != news.call:
            return
        if call is not self._flight.call:
            call.settle(typed_behind(self._settings.name, call.timeout_s, call.cmd))
            return
        try:
            command = self._flight.mark_timed_out()
        except StorageError as error:
            call.settle(error)
        else:
            record = unfinished_record(command, news.output, news.raw_end)
            self.context.start_soon(self._answer_timed_out, call, record)

    async def _answer_timed_out(self, call: Call, record: api.CommandRecord) -> None:
        try:
            await self._flight.sync()
        except StorageError as error:
            call.settle(error)
        else:
            call.settle(record)

    # News of the shell.

    def _shell_started(self, news: msg.ShellStarted) -> None:
        if self._pid == news.pid:
            return
        self._shells += 1
        self._pid, self._integration, self._cursor = news.pid, news.integration, news.first_cursor
        self._state, self._typing = "starting", None

    def _prompted(self, news: msg.Prompted) -> None:
        self._state, self._cwd = "idle", news.cwd or self._cwd
        for number in list(self._prompt_waiters):
            self._answer_prompt_waiter(number)

    def _command_started(self, news: msg.CommandStarted) -> None:
        self._state = "running"
        try:
            self._flight.begin(news)
        except StorageError as error:
            log.warning("note not written", terminal=self._settings.name, error=str(error))

    def _command_ended(self, news: msg.CommandEnded) -> None:
        if self._flight.command is None:
            log.warning("an end without a command", terminal=self._settings.name)
            return
        if news.incomplete and self._flight.call is not None:
            call, self._flight.call = self._flight.call, None
            became = f"what ran of it is recorded as seq {self._flight.command.seq}"
            call.settle(incomplete(call.cmd, became))
        self._finish(news, end=news.end, exit_code=news.exit, typed=news.typed)

    def _nothing_ran(self, news: msg.NothingRan) -> None:
        self._flight.readmit()
        if self._flight.command is not None:
            self._finish(news, end="exited", exit_code=news.exit)

    def _shell_ended(self, news: msg.ShellEnded) -> None:
        self._pid, self._typing = None, None
        self._state = "closed" if news.final else "starting"
        self._flight.readmit()
        if self._shell_crashed and self._flight.command is not None:
            self._shell_crashed = False
            self.context.start_soon(self._finish_crashed, *self._flight.end())
        if self._flight.command is not None:
            end = self._ending or "shell_exit"
            known = news.exit is not None and end == "shell_exit"
            code = shell_exit_code(news.exit) if known and news.exit is not None else None
            self._finish(news, end=end, exit_code=code)
        if news.final:
            self._leftover = news.leftover
            self._queue.fail_all(Unavailable(f"terminal {self._settings.name!r} was closed"))
            self._check_ended()

    def _shell_failed(self, why: str) -> None:
        self._state, self._failure = "failed", why
        name = self._settings.name
        self._queue.fail_all(Unavailable(f"terminal {name!r} has failed: {why}"))
        for number in list(self._prompt_waiters):
            self._answer_prompt_waiter(number)

    def _finish(
        self,
        news: msg.CommandEnded | msg.NothingRan | msg.ShellEnded,
        *,
        end: api.End,
        exit_code: int | None,
        typed: str | None = None,
    ) -> None:
        command, call = self._flight.end(typed)
        self._cursor = news.raw_end
        record = final_record(
            command,
            news.output,
            end=end,
            exit_code=exit_code,
            finished_at=news.finished_at,
            moment_s=news.moment_s,
            raw_end=news.raw_end,
        )
        self._recorder.append(record, call)

    def _give_up(self, command: InFlight) -> None:
        """A submission whose number was shown did not run after all: no other may have it."""
        self._flight.end()
        self._recorder.append(lost_record(command, utc_now(), trio.current_time()))

    # Records on their way to the ledger.

    def _record_appended(self, news: msg.RecordAppended) -> None:
        record = self._recorder.confirmed(news)
        if record is not None:
            self._last_record = record
            self._flight.recorded(record.seq)
            self._history.end = news.end
            self._wakes.finished(record)
            self._check_ended()

    def _retry_soon(self) -> None:
        self.context.after(RETRY_APPEND_S, msg.RetryAppends())

    def _sibling_down(self, down: Down) -> None:
        """A writer that crashed lost what it had in hand; a shell's records wait for its reaper."""
        if down.path == self._writer.path:
            self._recorder.send_again()
        elif down.crashed:
            self._shell_crashed, self._state = True, "starting"

    async def _recover(self, found: list[InFlight]) -> None:
        """Commands found in flight get their final records, with the output that is on disk."""
        for index, command in enumerate(found):
            next_start = found[index + 1].raw_start if index + 1 < len(found) else None
            self._recorder.append(await self._killed_record(command, next_start))

    async def _finish_crashed(self, command: InFlight, call: Call | None) -> None:
        """The shell's actor crashed while the command ran; its processes are gone by now."""
        self._recorder.append(await self._killed_record(command, None), call)

    async def _killed_record(self, command: InFlight, raw_end: int | None) -> api.CommandRecord:
        output, end = await recover_output(self._files.directory, command.raw_start, raw_end)
        return final_record(
            command,
            output,
            end="killed_by_restart",
            exit_code=None,
            finished_at=utc_now(),
            moment_s=None,
            raw_end=end,
        )

    # The life of the terminal.

    def _await_prompt(self, request: msg.AwaitPrompt) -> None:
        if self._state != "starting":
            self.reply(request, self._info())
            return
        self._last_call += 1
        self._prompt_waiters[self._last_call] = self.defer(request)
        self.context.after(request.timeout_s, msg.PromptDeadline(call=self._last_call))

    def _answer_prompt_waiter(self, number: int) -> None:
        waiter = self._prompt_waiters.pop(number, None)
        if waiter is not None:
            waiter.send(self._info())

    def _end(self, request: msg.EndTerminal) -> None:
        self._ending_waiters.append(self.defer(request))
        if self._ending is None:
            self._ending = request.end
            self._shell.tell(msg.EndShell())
        self._check_ended()

    def _check_ended(self) -> None:
        """Once the shell is gone for good and the ledger has every record, say so."""
        if self._state == "closed" and self._recorder.is_settled:
            self.context.start_soon(self._say_ended)

    async def _say_ended(self) -> None:
        await self._wakes.settle(daemon_stops=self._ending != "closed")
        while self._ending_waiters:
            self._ending_waiters.pop().send(msg.Ended(leftover=self._leftover))

    def _info(self) -> api.TerminalInfo:
        last = self._last_record
        return api.TerminalInfo(
            name=self._settings.name,
            pid=self._pid,
            shell=self._settings.shell,
            cwd=self._cwd,
            started_at=self._settings.started_at,
            cols=self._settings.cols,
            rows=self._settings.rows,
            integration=self._integration,
            state=self._shown_state(),
            last_cmd_at=None if last is None else last.started_at,
            last_exit=None if last is None else last.exit,
            subscribers=self._wakes.subscribers,
            restarts=max(0, self._shells - 1),
            node="local",
        )

    def _shown_state(self) -> api.State:
        """Idle as soon as nothing is in flight: the prompt may be a moment behind the end mark."""
        if self._state in ("idle", "running"):
            return "idle" if self._flight.is_free else "running"
        return self._state

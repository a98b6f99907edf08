"""``Terminal``: the front of one terminal. It owns the queue of calls and the records.

It holds no resource of the operating system: the sibling ``Shell`` owns the PTY, and the sibling
``LedgerWriter`` the ledger. There is one current command at a time, and an end that the shell
reports belongs to it, whether or not its caller still waits. A record that a caller or a subscriber
sees is in the ledger, synced.

Each incarnation of the front and of the shell's actor begins with an ``Introduction``: the commands
of shells that have ended were killed with them; those of the current shell are taken over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import attrs
import structlog
import trio

from actors import AskError, Down, Ref, Reply, Request, Timer
from aegis.errors import AegisError, Busy, NotFound, StorageError, Unavailable
from aegis.journal.flusher import Flusher
from aegis.processes.capture import CapturedOutput
from aegis.processes.process_host import ProcessHost
from aegis.protocol import control
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.protocol.feeds import ClaimSize, ReleaseSize, TypeBytes
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import LOCAL_NODE
from aegis.protocol.resources import Ledger
from aegis.protocol.streams import CommandItem, TerminalItem
from aegis.publishing import events_service, publish_change, publish_terminal
from aegis.terminals import faults, sentences
from aegis.terminals import messages as msg
from aegis.terminals.front.calls import Call, CallQueue
from aegis.terminals.front.current_command import CurrentCommand, last_begun
from aegis.terminals.front.recorder import Recorder, newest_synced
from aegis.terminals.front.recovery import recovered_records
from aegis.terminals.front.requests import fetch, fetch_recorded, fetch_unrecorded, shell_input
from aegis.terminals.front.terminal_state import TerminalState, shell_lost
from aegis.terminals.front.waits import Waits
from aegis.terminals.front.window_size import SizeRequest, TerminalSize
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.front_port import Front, FrontMessage
from aegis.terminals.header import header_of_record, header_of_unrecorded
from aegis.terminals.history import History
from aegis.terminals.hooks.submission import check_command
from aegis.terminals.messages import OpenCommand, OpenCommands, ReadOpenCommands
from aegis.terminals.quarantine import open_note
from aegis.terminals.record import (
    UnrecordedCommand,
    behind,
    final_record,
    outcome_of,
    shell_exit_code,
    unfinished_record,
    writer_tag,
)
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.messages import ForShell
from aegis.terminals.shell.notifications import notified_up_to
from aegis.terminals.shell.shell import Shell
from aegis.terminals.wakes.wakes import WakeSubscribers

log = structlog.get_logger()

RETRY_APPEND_S = 1.0
"""Seconds before records that the disk refused are sent again."""

MAX_FOLLOWERS = 256
"""The most callers of one terminal that may wait for progress at a time."""


class Terminal(Front):
    """The actor that serves the clients of a terminal."""

    def __init__(
        self,
        *,
        settings: TerminalSettings,
        files: TerminalFiles,
        flusher: Flusher,
        inboxes: Ref[Deliver],
        host: ProcessHost,
        node: str = LOCAL_NODE,
    ) -> None:
        self._name = settings.name
        self._flusher = flusher
        self._files = files
        self._history = History(files.ledger, disk=flusher.disk)
        self._wakes = WakeSubscribers(settings, files, self._history, flusher, inboxes)
        self._size = TerminalSize(settings, files, flusher)
        self._state = TerminalState(host, cwd=settings.cwd, node=node)
        self._queue = CallQueue(settings.name)
        self._followers: list[tuple[out.FollowCommand, Reply[out.Progress]]] = []
        self._prompt_waiters: dict[int, tuple[Reply[api.TerminalInfo], Timer]] = {}
        self._ending_waiters: list[Reply[msg.EndedTerminal]] = []
        self._leftover: tuple[str, ...] = ()
        self._last_call = self._shell_life = 0
        self._last_record: api.CommandRecord | None = None
        self._recovering = True
        self._early: list[Callable[[], object]] = []
        self._seen: object = None
        self._published: api.TerminalInfo | None = None
        self._is_closed = False

    async def setup(self) -> None:
        """Read the ledger and the note; the shell then reports the state of a noted command."""
        self._shell = self.context.sibling("shell", Shell)
        self._writer = self.context.sibling("writer", LedgerWriter)
        self.context.monitor(self._shell)
        self.context.monitor(self._writer)
        self.context.register("terminal", self._name.lower())
        self._last_call = self.context.incarnation << 32  # no number of an earlier life comes again
        is_first = self.context.incarnation == 1
        is_new, given = self._files.is_new and is_first, -1
        note = open_note(self._files.note, self._flusher, is_new=is_new)
        if is_new:
            self._history.newest = -1
        else:
            self._history.newest = await newest_synced(self._writer)
            self._last_record, given = self._history.last()
        given = await self._wakes.open(given, is_new=is_new)
        settings, soon = self._size.settings, self.context.start_soon
        self._command = CurrentCommand.open(
            note, self._last_record, given, settings.cwd, settings.root, is_new=is_new
        )
        for lacking in self._command.unrecorded()[:1]:
            self._wakes.expect(lacking.seq)
        self._recorder = Recorder(self._writer, self._command.is_shown, self._command.holds_back)
        self._waits = Waits(self._name, self._command, self._history, self._shell, start_soon=soon)
        self._history.running = self._newest_unrecorded
        if not is_first:
            await self._size.read()
        self._shell.tell(msg.Introduce())
        self._wakes.start(soon, partial(self.context.system.registry.find, "inbox"))
        publish_change(self.context.system, Ledger(self._name))
        if is_first and events_service(self.context.system) is not None:
            publish_terminal(self.context.system, "terminal_opened", self._info())

    async def teardown(self) -> None:
        """Close the notes."""
        if hasattr(self, "_command"):
            self._command.close()
        await self._wakes.close()

    async def receive(self, message: FrontMessage) -> None:
        """Handle one message."""
        if isinstance(message, msg.Introduction):
            await self._meet(message)
            self._show_changes()
        else:
            self.receive_now(message)

    def receive_now(self, message: FrontMessage) -> bool:
        """Handle one message, in the step of the shell or the writer if the front is idle."""
        if isinstance(message, msg.Introduction):
            return False
        news = self._NEWS.get(type(message))
        if news is None:
            self._handle(message)
        elif self._shell_life:  # else the introduction of the shell's actor will have it
            news(self, message)
            self._type_next()
        self._show_changes()
        return True

    def _show_changes(self) -> None:
        if self._followers:
            self._answer_followers()
        self._publish_changes()

    def _handle(self, message: Any) -> None:  # noqa: C901 - one line per message
        match message:
            case api.RunCommand():
                check_command(message.cmd)
                self._check_serving()
                self._run(message)
                self._need_shell()
            case api.SendKeys() | TypeBytes() | control.SignalTerminal():
                self._check_serving()
                self._state.was_answered = True
                self._need_shell()
                self._pass_input(message)
            case _ if isinstance(message, ForShell):
                request: Request[Any] = message
                self.pass_on(request, self._shell)
            case control.ResizeTerminal() | ClaimSize() | ReleaseSize():
                self._check_serving()
                self.context.start_soon(self._resize, message, self.defer(message))
            case api.ReadRecords():
                read = partial(self._history.answer, message, self.defer(message))
                self._once_recovered(partial(self.context.start_soon, read))
            case out.ReadOutput():
                self._read_output(message)
            case out.WaitTerminal():
                self._once_recovered(partial(self._wait, message, self.defer(message)))
            case out.FollowCommand():
                self._follow(message)
            case api.Subscribe():
                self._wakes.subscribe(message, self.defer(message))
            case api.Unsubscribe():
                self._wakes.unsubscribe(message.from_handle or "human", self.defer(message))
            case msg.Describe():
                self.reply(message, self._info())
            case ReadOpenCommands():
                self.reply(message, self._open_commands())
            case msg.AwaitPrompt():
                self._await_prompt(message)
            case msg.EndTerminal():
                self._end(message)
            case msg.RecordAppended():
                self._record_appended(message)
            case msg.AppendFailed():
                if not self._recorder.is_refused:
                    self._command.note_down()  # for records that the writer had taken
                if self._recorder.refused(message):
                    self.context.after(RETRY_APPEND_S, msg.RetryAppends())
                self._answer_early()
                self._check_ended()
            case msg.RetryAppends():
                self._recorder.retry()
            case msg.RunDeadline(call=call):
                self._time_is_up(call)
            case msg.PromptDeadline(call=call):
                self._answer_prompt(call)
            case Down():
                self._sibling_down(message)

    def _check_serving(self) -> None:
        if self._state.ending is not None:
            raise Unavailable(f"terminal {self._name!r} is being closed")
        if self._state.state == "failed":
            raise Unavailable(f"terminal {self._name!r} has failed: {self._state.failure}")
        self._recorder.check(self._name)

    def _need_shell(self) -> None:
        if self._state.pid is None and self._shell_life:
            self._shell.tell(msg.StartNow())

    # Calls of ``run``, from the queue to the shell. The end of a command comes further below.

    def _run(self, request: api.RunCommand) -> None:
        """Queue a call.

        It fails at once while a program waits for input: its text may be meant for that program, a
        password even, and must not run as a command later.
        """
        number = self._next_number()
        call = Call(
            number=number,
            cmd=request.cmd,
            writer=writer_tag(request.from_handle),
            timeout_s=request.timeout,
            reply=self.defer(request),
            timer=self.context.after(request.timeout, msg.RunDeadline(call=number)),
            until=request.until,
        )
        running, needs = self._command.command, self._state.needs_input
        if running is not None and needs is not None and not self._state.was_answered:
            call.settle(sentences.not_typed(self._name, 0, running, None, needs=needs))
            return
        try:
            self._queue.add(call)
        except Busy as busy:
            call.settle(busy)
        self._type_next()

    def _next_number(self) -> int:
        """Return a number for a call, unique among all incarnations of this front."""
        self._last_call += 1
        return self._last_call

    def _type_next(self) -> None:
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

    def _submission_refused(self, news: msg.SubmissionRefused) -> None:
        """Queue the command again, which the shell refused, unless its time is up."""
        call = self._command.take_back(news.call)
        if news.at_prompt:
            self._state.state = "idle"
        if call is not None and call.is_late:
            self._refuse(call, self._why_not_typed(call))
        elif call is not None:
            self._queue.put_back(call)

    def _submission_failed(self, news: msg.SubmissionFailed) -> None:
        """Handle a submission that did not run; record it if its number was shown."""
        if self._command.has_shown(news.call):
            ended = self._command.end_submitted(news.call)
            if ended is not None:
                self._recorder.append_lost(ended[0])
            return
        call = self._command.take_back(news.call)
        if news.why == "unwritten":
            self._state.state = "idle"
        if call is None:
            return
        if news.why == "unwritten":
            self._refuse(call, sentences.unwritten(self._name, call.cmd))
        elif news.why == "incomplete":
            self._refuse(call, sentences.incomplete(call.cmd, "did not run"))
        else:
            self._refuse(call, sentences.swallowed(self._name, call.cmd))

    def _time_is_up(self, number: int) -> None:
        """Refuse the call if it is queued; if it was typed, answer it with the record so far."""
        call, submitted = self._queue.remove(number), self._command.submitted
        if call is not None:
            self._refuse(call, self._why_not_typed(call))
        elif submitted is not None and submitted.number == number:
            submitted.is_late = True
            self._shell.tell(msg.ReportOutput(call=number))

    def _needs_input(self, news: msg.NeedsInputChanged) -> None:
        """Request the output so far for the caller of a command that waits for input.

        The caller of one that only may wait is not answered early.
        """
        needs, may = news.needs_input, news.may_need_input
        self._state.needs_input, self._state.may_need_input = needs, may
        self._state.was_answered = False
        call = self._command.call
        if call is not None and not call.is_late:
            if needs is not None and call.needs_input is None:
                self._shell.tell(msg.ReportOutput(call=call.number))
            call.needs_input, call.may_need_input = needs, may
        self._waits.needs_input(needs)
        self._publish_command("command_changed")

    def _output_so_far(self, news: msg.OutputSoFar) -> None:
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
            self.context.start_soon(self._settle_synced, call, record)

    def _refuse(self, call: Call, error: AegisError) -> None:
        """Answer with ``error``: the command did not run."""
        # If the synced note may still contain the command, the new note is synced first. Otherwise
        # the next incarnation could find the command there and record it as killed.
        if self._command.owes_sync:
            self.context.start_soon(self._settle_synced, call, error)
        else:
            call.settle(error)

    async def _settle_synced(self, call: Call, outcome: api.CommandRecord | AegisError) -> None:
        """Answer with ``outcome`` once the note is synced."""
        try:
            await self._command.sync()
        except StorageError as error:
            call.settle(error)
        else:
            call.settle(outcome)

    def _why_not_typed(self, call: Call) -> AegisError:
        state = self._state
        return sentences.not_typed(
            self._name,
            call.timeout_s,
            self._command.command,
            state.typing,
            trio.current_time() - state.typing_began,
            state.needs_input,
            state.may_need_input,
        )

    # News of the shell.

    async def _meet(self, news: msg.Introduction) -> None:
        """Take over the shell's state, at the start of this front or of the shell's actor."""
        if self._shell_life == news.life:
            return
        is_first = self._shell_life == 0
        self._shell_life = news.life
        self._shell.tell(self._size.message())
        lost = self._command.lost_with(news.shells)
        commands = [command for command, _ in lost]
        records = await self._recovered(commands, news.first_cursor) if commands else []
        for record, (_, call) in zip(records, lost, strict=True):
            self._command.recovered(record)
            self._recorder.append(record, call)
        if is_first:
            self._command.resume()
            self._replay_notifications(news)
        self._answer_early()
        self._state.introduced(news)
        self._waits.needs_input(news.needs_input)
        self._command.shell, self._command.cursor = news.shell, news.cursor
        if self._state.ending is not None and news.ending is None:
            self._shell.tell(msg.EndShell(end=self._state.ending))
        elif self._state.state != "starting":
            self._answer_prompts()
        self._type_next()

    async def _recovered(
        self, commands: Sequence[UnrecordedCommand], end: int
    ) -> list[api.CommandRecord]:
        """Return the records of lost commands, oldest first; the output ends at ``end``."""
        # An earlier incarnation may have handed over some records without noting the outcomes.
        newest = await newest_synced(self._writer, settled=True)
        disk, files = self._flusher.disk, self._files
        records = await recovered_records(disk, files.directory, commands, end)
        history = History(files.ledger, disk=disk)
        for index, record in enumerate(records):
            if record.seq <= newest:
                with contextlib.suppress(NotFound):  # its line is of another format
                    records[index] = await history.one(record.seq, self._name)
        return records

    def _replay_notifications(self, news: msg.Introduction) -> None:
        """Handle notifications that an earlier incarnation may not have received or finished."""
        known = notified_up_to(self._last_record)
        for each in news.notifications:
            if not isinstance(each, msg.CommandStarted) or each.raw_start > known:
                self._NEWS[type(each)](self, each)
        for command in self._command.settle_found(news.submitted):
            if command.began_at is None:
                self._recorder.append_lost(command)
            else:
                log.error("no end was reported", terminal=self._name, seq=command.seq)

    def _shell_started(self, news: msg.ShellStarted) -> None:
        self._state.started(news)
        self._command.shell, self._command.cursor = news.shell, news.first_cursor

    def _prompted(self, news: msg.Prompted) -> None:
        self._state.prompted(news)
        self._command.moved(news.cwd)
        self._answer_prompts()

    def _directory_changed(self, news: msg.DirectoryChanged) -> None:
        self._state.moved(news)
        if news.is_prompt:
            self._command.moved(news.cwd)

    def _typing_changed(self, news: msg.TypingChanged) -> None:
        self._state.types(news.typing)

    def _integration_changed(self, news: msg.IntegrationChanged) -> None:
        self._state.integration = news.integration
        if news.is_replaced:
            self._command.shell_replaced()

    def _shell_failed(self, news: msg.ShellFailed) -> None:
        self._state.state, self._state.failure = "failed", news.why
        failure = f"terminal {self._name!r} has failed: {news.why}"
        self._queue.fail_all(Unavailable(failure))
        self._waits.failed(failure)
        self._answer_prompts()

    def _command_started(self, news: msg.CommandStarted) -> None:
        self._state.state = "running"
        self._command.begin(news)
        # A command that has ended meanwhile gets its final record: the shell sends the end first.
        call = self._command.call
        if call is not None and call.until == "started" and not call.is_late:
            self._shell.tell(msg.ReportOutput(call=call.number))
        if self._command.command is not None:
            self._waits.began(self._command.command.seq)
        self._publish_command("command_started")

    def _command_ended(self, news: msg.CommandEnded) -> None:
        ended = self._command.end(news.raw_start, news.typed)
        if ended is None:
            return
        command, call = ended
        if news.incomplete and call is not None:
            became = f"what ran of it is recorded as seq {command.seq}"
            call.refusal = sentences.incomplete(call.cmd, became)
        self._finish(command, call, news, end=news.end, exit_code=news.exit)

    def _nothing_ran(self, news: msg.NothingRan) -> None:
        ended = self._command.end_submitted(news.call)
        if ended is not None:
            self._finish(*ended, news, end="exited", exit_code=news.exit)

    def _shell_ended(self, news: msg.ShellEnded) -> None:
        is_recorded = self._is_recorded(news)
        self._state.ended(news)
        end: api.End = news.end or "shell_exit"
        code = None if news.exit is None or end != "shell_exit" else shell_exit_code(news.exit)
        if news.loss is not None and news.loss.replaced is not None:
            code = None  # that of the program that was ended
        unread = self._command.take_unread(news.shell)
        if unread is not None:
            self._refuse(unread, sentences.unread(self._name, unread.cmd))
        ended = self._command.end_all(news.shell)
        if news.loss is not None:
            self._state.notice = shell_lost(news.loss, news.exit)
        if not (ended or is_recorded or news.loss is None):
            lost = self._command.end_idle(news, shell_lost(news.loss, news.exit))
            if news.loss.replaced is None:
                self._state.notice = f"the shell is new since seq {lost.seq}: {lost.notice}"
            ended = [(lost, None)]
        for command, call in ended:
            if command is last_begun(each for each, _ in ended):
                self._finish(command, call, news, end=end, exit_code=code)
            else:
                command = behind(command, self._command.cursor)
                self._finish(command, call, news.without_output(), end=end, exit_code=None)
        if news.end is not None:
            self._leftover = news.leftover
            self._queue.fail_all(Unavailable(f"terminal {self._name!r} was closed"))
            self._recorder.end()
            self._check_ended()

    def _is_recorded(self, news: msg.ShellEnded) -> bool:
        """Whether the ledger has a record of this end, or a later one: the front began anew."""
        last = self._last_record
        if last is None or last.duration_s is None or last.raw_end is None:
            return False
        return last.raw_end >= news.raw_end

    _NEWS: ClassVar[dict[type, Callable[[Terminal, Any], None]]] = {
        msg.CommandStarted: _command_started,
        msg.CommandEnded: _command_ended,
        msg.Prompted: _prompted,
        msg.NothingRan: _nothing_ran,
        msg.SubmissionRefused: _submission_refused,
        msg.SubmissionFailed: _submission_failed,
        msg.OutputSoFar: _output_so_far,
        msg.DirectoryChanged: _directory_changed,
        msg.TypingChanged: _typing_changed,
        msg.NeedsInputChanged: _needs_input,
        msg.IntegrationChanged: _integration_changed,
        msg.ShellStarted: _shell_started,
        msg.ShellEnded: _shell_ended,
        msg.ShellFailed: _shell_failed,
    }

    # Records on their way to the ledger.

    def _finish(
        self,
        command: UnrecordedCommand,
        call: Call | None,
        news: msg.CommandEnded | msg.NothingRan | msg.ShellEnded,
        *,
        end: api.End,
        exit_code: int | None,
    ) -> None:
        self._command.cursor = news.raw_end
        outcome = outcome_of(
            command,
            end=end,
            exit_code=exit_code,
            finished_at=news.finished_at,
            moment_s=news.moment_s,
            raw_end=news.raw_end,
        )
        self._command.finished(command.seq, outcome)
        untyped = news.untyped if isinstance(news, msg.CommandEnded) else None
        output = news.output
        if command.notice is not None and isinstance(news, msg.ShellEnded) and news.loss:
            words = news.loss.words
            output = CapturedOutput(text=words, total_bytes=len(words.encode()), truncated=False)
        if not self._recorder.append(final_record(command, output, outcome, untyped), call):
            # Only a record that is in the file makes up for a note without the outcome.
            self._command.note_down()

    def _record_appended(self, news: msg.RecordAppended) -> None:
        record = self._recorder.confirmed(news)
        if record is None:
            return
        self._last_record = record
        # While no other command begins, the note makes up for a line that the ledger loses later.
        self._command.note_down()
        self._command.recorded(record.seq)
        if record.raw_end is not None:
            self._shell.tell(msg.CommandRecorded(raw_end=record.raw_end))
        self._history.newest = news.seq
        self._wakes.finished(record)
        publish_change(self.context.system, Ledger(self._name))
        hub = events_service(self.context.system)
        if hub is not None:
            header = header_of_record(self._name, record)
            hub.tell(CommandItem(event="command_finished", command=header))
            self._seen = None  # the description has a new newest exit
        self._waits.recorded(record)
        self._answer_early()
        self._check_ended()

    def _sibling_down(self, down: Down) -> None:
        """Send records again to a writer that crashed; a restarted shell introduces itself."""
        if down.path == self._writer.path:
            self._recorder.send_again()
        elif down.crashed:
            self._state.state = "starting"

    def _once_recovered(self, answer: Callable[[], object]) -> None:
        """Delay a request for records until the commands of an earlier incarnation have theirs."""
        self._early.append(answer)
        self._answer_early()

    def _answer_early(self) -> None:
        if self._shell_life and self._recovering and self._recorder.is_settled:
            self._recovering = False
        if self._recovering:
            return
        early, self._early = self._early, []
        for answer in early:
            answer()

    # Requests about commands. The front knows those without a record; only the shell knows whether
    # such a command still runs and where its output ends. All other commands are in the ledger.

    def _unrecorded(self, seq: int) -> UnrecordedCommand | None:
        return next((each for each in self._command.unrecorded() if each.seq == seq), None)

    def _pass_input(self, request: api.SendKeys | TypeBytes | control.SignalTerminal) -> None:
        """Pass on keys or a signal. Raises ``NotFound`` if the signal's command has ended."""
        key = None
        if isinstance(request, control.SignalTerminal) and request.seq is not None:
            command = self._unrecorded(request.seq)
            if command is None or command.outcome is not None:
                raise sentences.not_running(self._name)
            key = command.key
        self.pass_on(request, self._shell, shell_input(request, key))

    def _read_output(self, request: out.ReadOutput) -> None:
        if request.seq is not None:
            self._once_recovered(partial(self._read_one, request, self.defer(request)))
            return
        newest = [*self._command.unrecorded()[-1:], self._last_record][0]
        start = 0 if newest is None else newest.raw_start
        self.pass_on(request, self._shell, fetch(request, start))

    def _read_one(self, request: out.ReadOutput, reply: Reply[out.OutputChunk]) -> None:
        """Answer a request for the output of one command. Errors go to ``reply``."""
        assert request.seq is not None
        command = self._unrecorded(request.seq)
        if command is None:
            self.context.start_soon(self._read_recorded, request.seq, request, reply)
            return
        try:
            self._shell.forward(fetch_unrecorded(request, command), reply)
        except (AegisError, AskError) as error:
            reply.fail(error)

    async def _read_recorded(
        self, seq: int, request: out.ReadOutput, reply: Reply[out.OutputChunk]
    ) -> None:
        try:
            record = await self._history.one(seq, self._name)
            self._shell.forward(fetch_recorded(request, record), reply)
        except (AegisError, AskError) as error:
            reply.fail(error)

    def _wait(self, request: out.WaitTerminal, reply: Reply[out.WaitOutcome]) -> None:
        closing, failure = self._state.ending is not None, ""
        if self._state.state == "failed":
            failure = f"terminal {self._name!r} has failed: {self._state.failure}"
        self._waits.add(request, reply, self._last_record, is_closing=closing, failure=failure)

    def _follow(self, request: out.FollowCommand) -> None:
        """Answer as soon as there is new progress.

        Until the command is typed, that is the writer that holds the terminal; then it is the
        newest line of the command's output, which the shell returns. Raises ``Busy``.
        """
        if len(self._followers) >= MAX_FOLLOWERS:
            self._answer_followers()
        if len(self._followers) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} callers are shown progress of this terminal already")
        self._followers.append((request, self.defer(request)))

    def _answer_followers(self) -> None:
        line = sentences.occupied_by(self._command.command, self._state.typing)
        waiting = []
        for request, reply in self._followers:
            seen, command = request.seen, self._command.command
            if reply.is_settled:
                continue
            if command is not None and (
                request.cmd is None
                or (command.cmd, command.writer) == (request.cmd, writer_tag(request.writer))
            ):
                try:
                    after = 0 if seen is None else seen.cursor
                    self._shell.forward(msg.FetchLine(after=after), reply)
                except AskError as error:
                    reply.fail(error)
            elif line is not None and (seen is None or seen.line != line):
                reply.send(out.Progress(line=line, cursor=0))
            else:
                waiting.append((request, reply))
        self._followers = waiting

    def _open_commands(self) -> OpenCommands:
        commands = [
            OpenCommand(each.writer, each.started_at) for each in self._command.unrecorded()
        ]
        opener = self._size.settings.opener
        return OpenCommands(shell=self._state.pid, opener=opener, commands=commands)

    def _newest_unrecorded(self) -> api.CommandHeader | None:
        newest = self._command.unrecorded()[-1:]
        return self._header(newest[0]) if newest else None

    def _header(self, command: UnrecordedCommand) -> api.CommandHeader:
        state = self._state
        return header_of_unrecorded(self._name, command, state.needs_input, state.may_need_input)

    async def _resize(self, request: SizeRequest, reply: Reply[Any]) -> None:
        try:
            size = await self._size.change(request)
        except AegisError as error:
            reply.fail(error)
            return
        self._shell.tell(size)
        reply.send(self._info() if isinstance(request, control.ResizeTerminal) else api.Done())
        self._publish_changes()

    # The life of the terminal.

    def _await_prompt(self, request: msg.AwaitPrompt) -> None:
        if self._state.state != "starting":
            self.reply(request, self._info())
            return
        number = self._next_number()
        timer = self.context.after(request.timeout_s, msg.PromptDeadline(call=number))
        self._prompt_waiters[number] = self.defer(request), timer

    def _answer_prompts(self) -> None:
        """Answer the waiters for the first prompt: it is shown, or none will follow."""
        for number in list(self._prompt_waiters):
            self._answer_prompt(number)

    def _answer_prompt(self, number: int) -> None:
        if number in self._prompt_waiters:
            reply, timer = self._prompt_waiters.pop(number)
            timer.cancel()
            reply.send(self._info())

    def _end(self, request: msg.EndTerminal) -> None:
        self._ending_waiters.append(self.defer(request))
        if self._state.ending is None:
            self._state.ending = request.end
            self._shell.tell(msg.EndShell(end=request.end))
        self._check_ended()

    def _check_ended(self) -> None:
        """Answer the end request once the shell has ended and the ledger has every record."""
        if self._state.state == "closed" and self._recorder.is_settled:
            self.context.start_soon(self._reply_ended)

    async def _reply_ended(self) -> None:
        is_closed = self._state.ending == "closed"
        if is_closed and not self._is_closed:  # else the next daemon restores the terminal
            self._is_closed = True
            publish_terminal(self.context.system, "terminal_closed", self._info())
        await self._waits.end()
        await self._wakes.settle(daemon_stops=not is_closed)
        while self._ending_waiters:
            self._ending_waiters.pop().send(msg.EndedTerminal(leftover=self._leftover))

    def _info(self) -> api.TerminalInfo:
        command = self._command.command
        begun = None if command is None or command.began_at is None else self._header(command)
        return self._state.info(
            self._size.settings,
            self._last_record,
            self._wakes.subscribers,
            begun,
            is_free=self._command.is_free,
        )

    # Events, while a server subscribes to them: until the first client does, there is no hub.

    def _publish_changes(self) -> None:
        """Publish the terminal's description if it has changed."""
        hub = events_service(self.context.system)
        if hub is None:
            return
        known = self._state.known(), self._size.settings
        seen = *known, self._command.is_free, self._wakes.subscribers
        if seen != self._seen:
            self._seen = seen
            info = self._info()
            if info != self._published and self._state.state != "closed":
                self._published = info
                hub.tell(TerminalItem(event="terminal_changed", terminal=info))

    def _publish_command(self, event: Literal["command_started", "command_changed"]) -> None:
        hub, command = events_service(self.context.system), self._command.command
        if hub is not None and command is not None:
            hub.tell(CommandItem(event=event, command=self._header(command)))

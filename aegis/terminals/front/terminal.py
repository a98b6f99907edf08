"""``Terminal``: the front of one terminal. It owns the queue of calls and the records.

It holds no resource of the operating system: the sibling ``Shell`` owns the PTY, and the sibling
``LedgerWriter`` the ledger. There is one current command at a time, and an end that the shell
reports belongs to it, whether or not its caller still waits. A record that a caller or a subscriber
sees is in the ledger, synced.

Each incarnation of the front and of the shell's actor begins with an ``Introduction``: the commands
of shells that have ended were killed with them; those of the current shell are taken over.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import structlog

from actors import Down, Ref, Reply, Request
from aegis.errors import Unavailable
from aegis.journal.flusher import Flusher
from aegis.names import shorten
from aegis.processes.capture import CapturedOutput
from aegis.processes.process_host import ProcessHost
from aegis.protocol import control
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.protocol.feeds import ClaimSize, ReleaseSize, TypeBytes
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import LOCAL_NODE
from aegis.protocol.resources import Ledger
from aegis.publishing import publish_change
from aegis.terminals import messages as msg
from aegis.terminals.front.calls import Call, last_begun
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.front.events import TerminalEvents
from aegis.terminals.front.progress import ProgressRequests
from aegis.terminals.front.recorder import Recorder, newest_synced
from aegis.terminals.front.recovery import recovered_records
from aegis.terminals.front.requests import CommandRequests
from aegis.terminals.front.resizing import Resizing
from aegis.terminals.front.runs import Runs
from aegis.terminals.front.terminal_state import PromptWaiters, TerminalState
from aegis.terminals.front.waits import Waits
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.front_port import Front, FrontMessage
from aegis.terminals.history import History
from aegis.terminals.hooks.submission import check_command
from aegis.terminals.open_commands import ReadOpenCommands, open_commands
from aegis.terminals.quarantine import open_note
from aegis.terminals.record import (
    UnrecordedCommand,
    behind,
    final_record,
    outcome_of,
    shell_exit_code,
)
from aegis.terminals.sentences import incomplete
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.messages import ForShell
from aegis.terminals.shell.notifications import notified_up_to
from aegis.terminals.shell.shell import Shell
from aegis.terminals.wakes.wakes import WakeSubscribers

log = structlog.get_logger()

RETRY_APPEND_S = 1.0
"""Seconds before records that the disk refused are sent again."""


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
        self._settings = settings
        self._flusher = flusher
        self._files = files
        self._history = History(files.ledger, disk=flusher.disk)
        self._wakes = WakeSubscribers(settings, files, self._history, flusher, inboxes)
        self._state = TerminalState(settings, host, cwd=settings.cwd, node=node)
        self._prompt_waiters = PromptWaiters()
        self._ending_waiters: list[Reply[msg.EndedTerminal]] = []
        self._leftover: tuple[str, ...] = ()
        self._last_call = self._shell_life = 0
        self._last_record: api.CommandRecord | None = None
        self._recovering = True
        self._early: list[Callable[[], None]] = []

    async def setup(self) -> None:
        """Read the ledger and the note; the shell then reports the state of a noted command."""
        self._shell = self.context.sibling("shell", Shell)
        self._writer = self.context.sibling("writer", LedgerWriter)
        self.context.monitor(self._shell)
        self.context.monitor(self._writer)
        self.context.register("terminal", self._settings.name.lower())
        self._last_call = self.context.incarnation << 32  # no number of an earlier life comes again
        self._history.newest = await newest_synced(self._writer)
        self._last_record, given = self._history.last()
        note = open_note(self._files.note, self._flusher)
        given = await self._wakes.open(given)
        cwd, root = self._settings.cwd, self._settings.root
        self._command = CurrentCommand.open(note, self._last_record, given, cwd, root)
        for lacking in self._command.unrecorded()[:1]:
            self._wakes.expect(lacking.seq)
        shown, early = self._command.is_shown, self._command.holds_back
        name, soon, after = self._settings.name, self.context.start_soon, self.context.after
        retry_soon = partial(after, RETRY_APPEND_S, msg.RetryAppends())
        self._recorder = Recorder(self._writer, retry_soon, shown, early)
        self._runs = Runs(
            name, self._command, self._state, self._shell, after=after, start_soon=soon
        )
        self._waits = Waits(
            name, self._command, self._state, self._history, self._shell, start_soon=soon
        )
        self._requests = CommandRequests(
            name, self._command, self._history, self._shell, start_soon=soon
        )
        self._progress = ProgressRequests(self._command, self._state, self._shell)
        system, state = self.context.system, self._state
        self._events = TerminalEvents(system, state, self._command, self._wakes, self._info)
        self._history.running = self._events.newest_unrecorded
        changed = self._events.check_changed
        self._resizing = Resizing(
            state, self._shell, self._files, self._flusher, self._info, changed
        )
        await self._resizing.read_size()
        self._shell.tell(msg.Introduce())
        self._wakes.start(soon, partial(system.registry.find, "inbox"))
        publish_change(system, Ledger(self._settings.name))
        if self.context.incarnation == 1:
            self._events.opened()

    async def teardown(self) -> None:
        """Close the notes."""
        if hasattr(self, "_command"):
            self._command.close()
        await self._wakes.close()

    async def receive(self, message: FrontMessage) -> None:  # noqa: C901 - one line per message
        """Handle one message."""
        match message:
            case api.RunCommand():
                check_command(message.cmd)
                self._check_serving()
                self._runs.add(message, self._next_number(), self.defer(message))
                self._need_shell()
            case api.SendKeys() | TypeBytes() | control.SignalTerminal():
                self._check_serving()
                self._state.was_answered = True
                self._need_shell()
                self.pass_on(message, self._shell, self._requests.shell_input(message))
            case _ if isinstance(message, ForShell):
                request: Request[Any] = message
                self.pass_on(request, self._shell)
            case control.ResizeTerminal() | ClaimSize() | ReleaseSize():
                self._check_serving()
                self.context.start_soon(self._resizing.resize, message, self.defer(message))
            case api.ReadRecords():
                read = partial(self._history.answer, message, self.defer(message))
                self._once_recovered(lambda: self.context.start_soon(read))
            case out.ReadOutput():
                self._read_output(message)
            case out.WaitTerminal():
                waiting = self.defer(message)
                self._once_recovered(lambda: self._waits.add(message, waiting, self._last_record))
            case out.FollowCommand():
                self._progress.add(message, self.defer(message))
            case api.Subscribe():
                self._wakes.subscribe(message, self.defer(message))
            case api.Unsubscribe():
                self._wakes.unsubscribe(message.from_handle or "human", self.defer(message))
            case msg.Describe():
                self.reply(message, self._info())
            case ReadOpenCommands():
                self.reply(message, open_commands(self._state, self._command.unrecorded()))
            case msg.AwaitPrompt():
                self._await_prompt(message)
            case msg.EndTerminal():
                self._end(message)
            case msg.RecordAppended():
                self._record_appended(message)
            case msg.AppendFailed():
                self._recorder.refused(message)
                self._answer_early()
                self._check_ended()
            case msg.RetryAppends():
                self._recorder.retry()
            case msg.RunDeadline(call=call):
                self._runs.deadline(call)
            case msg.PromptDeadline(call=call):
                self._prompt_waiters.answer(call, self._info)
            case Down():
                self._sibling_down(message)
            case msg.Introduction():
                await self._meet(message)
            case _ if self._shell_life:
                self._shell_news(message)
                self._runs.advance()
        self._progress.changed()
        self._events.check_changed()

    def _shell_news(self, message: Any) -> None:
        match message:
            case msg.DirectoryChanged():
                self._state.moved(message)
                if message.is_prompt:
                    self._command.moved(message.cwd)
            case msg.TypingChanged(typing=typing):
                self._state.types(typing)
            case msg.NeedsInputChanged(needs_input=needs, may_need_input=may):
                self._runs.needs_input(needs, may)
                self._waits.needs_input(needs, may)
                self._events.changed(self._command.command)
            case msg.IntegrationChanged(integration=integration):
                self._state.integration = integration
                if message.is_replaced:
                    self._command.shell_replaced()
            case msg.OutputSoFar():
                self._runs.output_so_far(message)
            case msg.ShellFailed(why=why):
                self._shell_failed(why)
            case msg.SubmissionRefused():
                self._runs.refused(message)
            case _:
                self._HANDLERS[type(message)](self, message)

    def _check_serving(self) -> None:
        name = self._settings.name
        if self._state.ending is not None:
            raise Unavailable(f"terminal {name!r} is being closed")
        if self._state.state == "failed":
            raise Unavailable(f"terminal {name!r} has failed: {self._state.failure}")
        self._recorder.check(name)

    def _need_shell(self) -> None:
        if self._state.pid is None and self._shell_life:
            self._shell.tell(msg.StartNow())

    # News of the shell.

    async def _meet(self, news: msg.Introduction) -> None:
        """Take over the shell's state, at the start of this front or of the shell's actor."""
        if self._shell_life == news.life:
            return
        is_first = self._shell_life == 0
        self._shell_life = news.life
        self._resizing.taken_over()
        lost = self._command.lost_with(news.shells)
        commands, end = [command for command, _ in lost], news.first_cursor
        disk = self._flusher.disk
        records = await recovered_records(disk, self._files.directory, commands, end)
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
            self._prompt_waiters.answer_all(self._info)
        self._runs.advance()

    def _replay_notifications(self, news: msg.Introduction) -> None:
        """Handle notifications that an earlier incarnation may not have received or finished."""
        known = notified_up_to(self._last_record)
        for each in news.notifications:
            if not isinstance(each, msg.CommandStarted) or each.raw_start > known:
                self._shell_news(each)
        for command in self._command.settle_found(news.submitted):
            if command.began_at is None:
                self._recorder.append_lost(command)
            else:
                log.error("no end was reported", terminal=self._settings.name, seq=command.seq)

    def _shell_started(self, news: msg.ShellStarted) -> None:
        self._state.started(news)
        self._command.shell, self._command.cursor = news.shell, news.first_cursor

    def _prompted(self, news: msg.Prompted) -> None:
        self._state.prompted(news)
        self._command.moved(news.cwd)
        self._prompt_waiters.answer_all(self._info)

    def _command_started(self, news: msg.CommandStarted) -> None:
        self._state.state = "running"
        self._command.begin(news)
        self._runs.began()
        if self._command.command is not None:
            self._waits.began(self._command.command.seq)
        self._events.started(self._command.command)

    def _command_ended(self, news: msg.CommandEnded) -> None:
        ended = self._command.end(news.raw_start, news.typed)
        if ended is None:
            return
        command, call = ended
        if news.incomplete and call is not None:
            became = f"what ran of it is recorded as seq {command.seq}"
            call.refusal = incomplete(call.cmd, became)
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
        self._runs.shell_ended(news.shell)
        ended = self._command.end_all(news.shell)
        if news.loss is not None:
            self._state.notice = _shell_lost(news)
        if not (ended or is_recorded or news.loss is None):
            lost = self._command.end_idle(news, _shell_lost(news))
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
            self._runs.fail_waiting(Unavailable(f"terminal {self._settings.name!r} was closed"))
            self._recorder.end()
            self._check_ended()

    def _is_recorded(self, news: msg.ShellEnded) -> bool:
        """Whether the ledger has a record of this end, or a later one: the front began anew."""
        last = self._last_record
        if last is None or last.duration_s is None or last.raw_end is None:
            return False
        return last.raw_end >= news.raw_end

    def _shell_failed(self, why: str) -> None:
        self._state.state, self._state.failure = "failed", why
        self._runs.fail_waiting(Unavailable(f"terminal {self._settings.name!r} has failed: {why}"))
        self._waits.failed(why)
        self._prompt_waiters.answer_all(self._info)

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
        self._recorder.append(final_record(command, output, outcome, untyped), call)

    def _submission_failed(self, news: msg.SubmissionFailed) -> None:
        """Handle a submission that did not run; record it if its number was shown."""
        ended = self._command.end_submitted(news.call) if self._runs.failed(news) else None
        if ended is not None:
            self._recorder.append_lost(ended[0])

    _HANDLERS: ClassVar[dict[type, Callable[[Terminal, Any], None]]] = {
        msg.ShellStarted: _shell_started,
        msg.Prompted: _prompted,
        msg.SubmissionFailed: _submission_failed,
        msg.CommandStarted: _command_started,
        msg.CommandEnded: _command_ended,
        msg.NothingRan: _nothing_ran,
        msg.ShellEnded: _shell_ended,
    }

    # Records on their way to the ledger.

    def _record_appended(self, news: msg.RecordAppended) -> None:
        record = self._recorder.confirmed(news)
        if record is not None:
            self._last_record = record
            self._command.recorded(record.seq)
            if record.raw_end is not None:
                self._shell.tell(msg.CommandRecorded(raw_end=record.raw_end))
            self._history.newest = news.seq
            self._wakes.finished(record)
            publish_change(self.context.system, Ledger(self._settings.name))
            self._events.finished(record)
            self._waits.recorded(record)
            self._answer_early()
            self._check_ended()

    def _once_recovered(self, answer: Callable[[], None]) -> None:
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

    def _read_output(self, request: out.ReadOutput) -> None:
        if request.seq is None:
            self.pass_on(
                request, self._shell, self._requests.fetch_newest(request, self._last_record)
            )
            return
        reply = self.defer(request)
        self._once_recovered(lambda: self._requests.read(request, reply))

    def _sibling_down(self, down: Down) -> None:
        """Send records again to a writer that crashed; a restarted shell introduces itself."""
        if down.path == self._writer.path:
            self._recorder.send_again()
        elif down.crashed:
            self._state.state = "starting"

    # The life of the terminal.

    def _await_prompt(self, request: msg.AwaitPrompt) -> None:
        if self._state.state != "starting":
            self.reply(request, self._info())
            return
        number = self._next_number()
        timer = self.context.after(request.timeout_s, msg.PromptDeadline(call=number))
        self._prompt_waiters.add(number, self.defer(request), timer)

    def _next_number(self) -> int:
        """Return a number for a call, unique among all incarnations of this front."""
        self._last_call += 1
        return self._last_call

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
        self._events.ended()
        await self._waits.end()
        await self._wakes.settle(daemon_stops=self._state.ending != "closed")
        while self._ending_waiters:
            self._ending_waiters.pop().send(msg.EndedTerminal(leftover=self._leftover))

    def _info(self) -> api.TerminalInfo:
        is_free, running = self._command.is_free, self._events.running()
        return self._state.info(
            self._last_record, self._wakes.subscribers, running, is_free=is_free
        )


def _shell_lost(news: msg.ShellEnded) -> str:
    """Return why a shell ended between two commands, with its last line where it printed one."""
    assert news.loss is not None
    if news.loss.replaced is not None:
        return news.loss.replaced
    if news.exit is None:
        how = "the shell ended"
    elif news.exit >= 0:
        how = f"the shell ended at its prompt with exit {news.exit}"
    else:
        how = f"the shell was killed at its prompt by {_signal_name(-news.exit)}"
    lines = news.loss.words.strip().splitlines()
    return f"{how}: {shorten(lines[-1])!r}" if lines else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

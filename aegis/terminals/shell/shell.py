"""``Shell``: the actor that owns the PTY of one terminal and the processes on it.

A helper task keeps a shell running: it starts one, waits for its end, ends its other processes,
notifies the front, and starts the next one. The end of a shell is no crash of this actor.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterable
from functools import partial
from typing import Any

import attrs
import structlog
import trio

from actors import Actor
from aegis.clock import utc_now
from aegis.errors import AegisError, StorageError, Unavailable
from aegis.journal.disk import Disk
from aegis.journal.raw_log import RawLog
from aegis.path_text import text_of_path
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import GroupScan, ProcessScan
from aegis.processes.working_directory import REMOVED, existing_directory
from aegis.protocol.feeds import OwnedSize, View
from aegis.protocol.terminals import Done
from aegis.terminals import faults
from aegis.terminals import messages as msg
from aegis.terminals.front_port import Front
from aegis.terminals.hooks.greeting import Greeting
from aegis.terminals.hooks.programs import Replacement, replaced, replaced_again
from aegis.terminals.meta import saved_settings
from aegis.terminals.output.notifier import Notifier
from aegis.terminals.output.observers import OutputObservers
from aegis.terminals.output.reading import open_raw_log
from aegis.terminals.output.window import Window
from aegis.terminals.parse import boundaries as bd
from aegis.terminals.parse.control_sequences import Bell, ControlSequence, Osc
from aegis.terminals.parse.plain import words_after_prompt
from aegis.terminals.parse.reported_directory import reported_directory
from aegis.terminals.screen.live import LiveScreen
from aegis.terminals.sentences import SPAWN_ANEW, not_running, not_signalled
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell import messages as timers
from aegis.terminals.shell.messages import ShellMessage
from aegis.terminals.shell.notifications import MAX_KEPT, NotificationLog
from aegis.terminals.shell.pipeline import (
    PromptReached,
    ShellEvent,
    ShellOutput,
    ShellPipeline,
)
from aegis.terminals.shell.processes import PLACE, ShellProcesses
from aegis.terminals.shell.responder import MAX_UNREAD_ANSWERS_BYTES, Responder
from aegis.terminals.shell.running import RunningShell, introduction, state_of
from aegis.terminals.shell.submissions import LookAfter, PtyInput, ShellQuestion, SignalDue
from aegis.terminals.shell.tty_watch import Rearming, TtyWatch

FLUSH_S = 0.1
"""The longest time that raw bytes are buffered in memory, in seconds."""

REST_S = 1.0
"""Seconds without output after which the raw log's file is closed until there is more."""

FRESH_SHELL_DELAYS_S = (0.0, 0.2, 1.0)
"""Seconds before each fresh shell, while shells end without a prompt; then none is started."""

UNUSED_DELAY_S = 1.0
MAX_UNUSED_DELAY_S = 60.0
"""Seconds before a fresh shell where the one before was not used (a short ``TMOUT``); doubled each
time. A request for the terminal ends the delay."""

MAX_WORDS_BYTES = 4096
"""Limit of the output before the end of a shell in which its last words are looked for."""

RETRY_START_S = 1.0
"""Seconds between attempts to start a shell that the disk or the system refused."""

log = structlog.get_logger("aegis.terminals")


class Shell(Actor[ShellMessage]):
    """The actor of a terminal's shell; ``file_limit`` is how many files the shell may open."""

    # A dict of more than 30 attributes takes 1.6 KB.
    __slots__ = (
        "_cleaning",
        "_cwd",
        "_ending",
        "_failure",
        "_files",
        "_first_cursor",
        "_front",
        "_gone",
        "_greeting",
        "_groups",
        "_has_failed",
        "_host",
        "_is_flush_due",
        "_is_over",
        "_log",
        "_notifications",
        "_observers",
        "_place",
        "_processes",
        "_promptless",
        "_raw_log",
        "_raw_log_bytes",
        "_replacement",
        "_responder",
        "_running",
        "_screen",
        "_settings",
        "_shells",
        "_unused",
        "_wanted",
        "_watch",
        "_window",
    )

    def __init__(
        self,
        *,
        settings: TerminalSettings,
        files: TerminalFiles,
        disk: Disk,
        file_limit: int,
        raw_log_bytes: int,
        host: ProcessHost,
        scan: ProcessScan,
        groups: GroupScan,
    ) -> None:
        self._settings, self._files = settings, files
        self._raw_log_bytes = raw_log_bytes
        self._processes = ShellProcesses(
            settings=settings, files=files, disk=disk, file_limit=file_limit, host=host, scan=scan
        )
        self._host, self._groups = host, groups
        self._running: RunningShell | None = None
        self._cleaning: RunningShell | None = None
        self._raw_log: RawLog | None = None
        self._is_flush_due = False
        self._observers: OutputObservers | None = None
        self._cwd = settings.cwd
        self._notifications = NotificationLog()
        self._shells: list[str] = []
        self._first_cursor = self._promptless = self._unused = 0
        self._wanted = Notifier()
        self._place = PLACE
        self._greeting: Greeting | None = None
        self._replacement: Replacement | None = None
        self._is_over = self._has_failed = False
        self._gone: str | None = None
        self._failure = ""
        self._ending: msg.WhyEnded | None = None

    async def setup(self) -> None:
        """End the processes of an earlier shell; start one."""
        disk = self._processes.disk
        self._front = self.context.sibling("terminal", Front)
        if self.context.incarnation > 1:
            self._settings = saved_settings(disk, self._files, self._settings)
        is_new = self._files.is_new and self.context.incarnation == 1
        if not is_new:
            await self._processes.end_earlier(self.context.incarnation)
        self._log = self._raw_log = open_raw_log(
            disk, self._files, self._raw_log_bytes, is_new=is_new
        )
        self._first_cursor = self._log.position
        rows, cols = self._settings.rows, self._settings.cols
        self._window = Window(rows, cols, self._first_cursor, look_after=self._look_at_typist_after)
        self._screen = LiveScreen(self._log, rows, cols, self.context.start_soon)
        self._observers = self._new_observers()
        self._running = await self._start()
        self._greet(self._running)
        self._introduce()
        self.context.start_soon(self._run_shells)

    async def teardown(self) -> None:
        """End all processes; close the raw log."""
        await self._end_last_shell()
        if self._observers is not None:
            self._observers.close()
        if self._raw_log is not None:
            self._flush()
            with contextlib.suppress(StorageError):  # ``_flush`` has logged it
                self._raw_log.close()

    async def receive(self, message: ShellMessage) -> None:
        running = self._running
        match message:
            case msg.Introduce():
                self._introduce()
            case msg.Submit():
                if running is None:
                    self._notify(msg.SubmissionRefused(call=message.call, at_prompt=False))
                else:
                    self._handle(running, running.rules.submit(message))
            case msg.TypeKeys():
                self._type_keys(message)
            case msg.SendSignal():
                self._send_signal(message)
            case msg.SetSize(rows=rows, cols=cols, owner=owner):
                self._set_size(rows, cols, owner)
            case msg.ReportOutput(call=call):
                if running is not None:
                    self._report_output(running, call)
            case msg.CommandRecorded(raw_end=raw_end):
                self._notifications.recorded(raw_end)
            case msg.StartNow():
                self._wanted.notify()
            case msg.EndShell(end=end):
                self._wanted.notify()
                self._end(end)
            case (
                timers.FlushRawLog()
                | timers.RestRawLog()
                | timers.CheckRead()
                | timers.LookAtTty()
                | timers.LookAtTypist()
            ):
                self._on_timer(message)
            case _:
                assert self._observers is not None
                self._observers.take(message, self.defer(message))

    def _on_timer(self, message: timers.ShellTimer) -> None:
        match message:
            case timers.FlushRawLog():
                self._is_flush_due = False
                self._flush()
                self.context.after(REST_S, timers.RestRawLog(position=self._log.position))
            case timers.RestRawLog(position=position):
                if position == self._log.position:
                    self._log.rest()
            case timers.CheckRead():
                if self._running is not None:
                    self._look_again(self._running)
            case timers.LookAtTty(shell=name):
                if self._running is not None and self._running.name == name:
                    self._watch.on_timer()
            case timers.LookAtTypist():
                self._window.look_at_typist()
                self._view_changed()

    # The stream of the shell.

    def _feed(self, running: RunningShell, data: bytes) -> None:
        if running.pipeline.pass_on(data):
            self._output(data)
            return
        now = trio.current_time()
        self._handle(running, running.pipeline.feed(data, now))
        self._was_fed(running, now)

    def _feed_errors(self, running: RunningShell, data: bytes) -> None:
        now = trio.current_time()
        self._handle(running, running.pipeline.feed_errors(data, now))
        self._was_fed(running, now)

    def _was_fed(self, running: RunningShell, now: float) -> None:
        rules = running.rules
        if rules.queued:
            self._handle(running, rules.release(now))
        self._handle(running, rules.typing_news())
        reported = running.reports.take()
        if reported is not None:
            self._was_moved(running, reported)

    def _after_turn(self) -> None:
        self._watch.on_activity()
        if not self._is_flush_due:
            self._flush_soon()

    def _look_after(self, seconds: float) -> None:
        self.context.after(seconds, timers.CheckRead())

    def _look_again(self, running: RunningShell) -> None:
        """Do what is due: queued input, held output, probes, the keys of a greeting."""
        now = trio.current_time()
        rules, pipeline = running.rules, running.pipeline
        self._handle(running, rules.release(now))
        self._handle(running, pipeline.overdue(now))
        self._handle(running, rules.look(now))
        is_greeted = pipeline.was_prompted or pipeline.was_rearmed
        if self._greeting is not None and not is_greeted and self._greeting.is_due():
            self._greeting.send()
        self._watch.check_again()

    def _handle(self, running: RunningShell, events: Iterable[ShellEvent]) -> None:
        """Do what the events of a shell ask for; each before the next one is taken."""
        for event in events:
            match event:
                case ShellOutput(data=data, sequences=sequences):
                    self._output(data, sequences)
                    for sequence in sequences:
                        self._answer(running, sequence)
                case PtyInput():
                    if event.kind != "keys":
                        running.pipeline.typed(event)
                    if running is self._running:
                        running.send(event.data)
                case LookAfter(seconds=seconds):
                    self._look_after(seconds)
                case PromptReached():
                    self._prompted(running, event)
                case bd.CommandBegin():
                    self._handle(running, running.pipeline.begin(event, trio.current_time()))
                case SignalDue():
                    self._signal(running, event)
                case ShellQuestion():
                    self._handle(running, self._looked_up(running, event))
                case _:
                    self._happened(event)

    def _output(self, data: bytes, sequences: Iterable[ControlSequence] = ()) -> None:
        assert self._observers is not None
        self._log.write(data)
        self._observers.output(self._log.position, sequences)

    def _happened(self, news: Any) -> None:
        """Notify the front of what has happened to a command or its shell."""
        match news:
            case msg.CommandStarted():
                faults.START_MARK_AFTER.hit()
            case msg.CommandEnded():
                faults.END_MARK_AFTER.hit()
                self._flush()
            case msg.NothingRan():
                self._flush()
        self._notify(news)

    def _answer(self, running: RunningShell, sequence: ControlSequence) -> None:
        match sequence:
            case Osc(number=7, content=content):
                directory = reported_directory(content, (socket.gethostname(),))
                if directory is not None:
                    running.reports.newest = directory
                return
            case Bell() | Osc(number=0 | 2 | 9 | 99 | 133 | 777):
                return  # for viewers, no query
        answer = self._responder.answer(sequence, trio.current_time())
        is_full = running.outgoing_size >= MAX_UNREAD_ANSWERS_BYTES
        if answer and running is self._running and not is_full:
            running.send(answer)

    def _looked_up(self, running: RunningShell, question: ShellQuestion) -> Iterable[ShellEvent]:
        is_current = running is self._running
        if question is ShellQuestion.IS_IN_FRONT:
            return running.rules.probe() if is_current and running.is_in_front else ()
        waits = is_current and running.waits_for_keys(self._host)
        return running.rules.ask(trio.current_time(), waits_for_keys=waits)

    def _prompted(self, running: RunningShell, prompt: PromptReached) -> None:
        if prompt.is_first and running is self._running:
            self._watch.rearming.answered()
        running.pipeline.cwd = self._working_directory(running)
        running.reports.reset()
        self._notify(msg.Prompted(cwd=running.pipeline.cwd))

    def _working_directory(self, running: RunningShell) -> str | None:
        """Return the shell's directory, or its last known one; None if it was removed."""
        found = None
        if running is self._running:
            found = self._host.directory_of(running.process.pid)
        self._cwd = found or self._cwd
        return None if found == REMOVED else self._cwd

    def _was_moved(self, running: RunningShell, reported: str) -> None:
        """Notify the front of a directory that a program has reported."""
        is_prompt = running.rules.boundaries.phase is not bd.ShellPhase.RUNNING
        cwd: str | None = reported
        if is_prompt:
            # At the prompt, /proc is more reliable than the report.
            cwd = running.pipeline.cwd = self._working_directory(running)
        if cwd is not None:  # None: the directory was removed, even if a prompt reports it
            self._notify(msg.DirectoryChanged(cwd=cwd, is_prompt=is_prompt))

    def _report_output(self, running: RunningShell, call: int) -> None:
        """Send the output so far of the current command; refuse one that is not typed yet."""
        refused = [*running.rules.withdraw(call)]
        if refused:
            self._handle(running, refused)
            return
        self._flush()
        output = running.pipeline.printed.snapshot()
        self._notify(msg.OutputSoFar(call=call, output=output, raw_end=self._log.position))

    # The raw log's file.

    def _flush_soon(self) -> None:
        """Flush within ``FLUSH_S`` seconds, and close the file if no output follows."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self.context.after(FLUSH_S, timers.FlushRawLog())

    def _flush_for_reader(self) -> None:
        """Flush before output is read: output that a reader has seen survives a kill."""
        self._flush()
        self._flush_soon()  # the log was opened for reading: the file is closed again later

    def _flush(self) -> None:
        try:
            self._log.flush()
        except StorageError as error:
            log.warning("raw log not written", terminal=self._settings.name, error=str(error))

    # Live output.

    def _new_observers(self) -> OutputObservers:
        return OutputObservers(
            self._settings.name,
            self.context.path,
            self._log,
            self._screen,
            flush=self._flush_for_reader,
            tracker=lambda: None if self._running is None else self._running.pipeline,
            view=self._view,
            window=self._window,
            progress_of=self._notifications.progress_of,
            start_soon=self.context.start_soon,
        )

    def _look_at_typist_after(self, seconds: float) -> None:
        self.context.after(seconds, timers.LookAtTypist())

    def _view(self) -> View:
        """Return the view of the terminal that watchers get with the output."""
        running = self._running
        return self._window.view(
            state_of(running, self._failure, self._ending),
            None if running is None else self._watch.needs_input,
            None if running is None else running.rules.typing,
        )

    def _view_changed(self) -> None:
        if self._observers is not None:
            self._observers.watchers.changed()

    # Requests of the front.

    def _introduce(self) -> None:
        """Send the actor's state to the front, which ignores it if it knows this incarnation."""
        self._front.tell(
            introduction(
                self._running,
                life=self.context.incarnation,
                first_cursor=self._first_cursor,
                cursor=self._log.position,
                shells=self._shells,
                failure=self._failure,
                ending=self._ending,
                needs_input=None if self._running is None else self._watch.needs_input,
                notifications=self._notifications.all(),
            )
        )

    def _notify(self, news: Any) -> None:
        self._notifications.keep(news)
        self._front.hand_over(news)
        if self._observers is not None:
            self._observers.handle_news(news)

    def _type_keys(self, request: msg.TypeKeys) -> None:
        running = self._running
        if running is None:
            raise Unavailable(
                f"terminal {self._settings.name!r} has no shell right now; try again in a moment"
            )
        running.check_keys(self._settings.name, request.keys)
        self._handle(running, running.rules.keys(request.writer, request.keys, trio.current_time()))
        self._handle(running, running.rules.typing_news())
        self._watch.on_keys(request.keys)
        self._window.typed(request.writer)
        self._view_changed()
        self.reply(request, Done())

    def _send_signal(self, request: msg.SendSignal) -> None:
        running, name = self._running, self._settings.name
        if running is None:
            raise Unavailable(f"terminal {name!r} has no shell right now; nothing was signalled")
        due = SignalDue(request, self.defer(request))
        self._handle(running, running.rules.signal(due, trio.current_time()))
        self._handle(running, running.rules.typing_news())

    def _signal(self, running: RunningShell, due: SignalDue) -> None:
        """Signal the foreground process group, for one command only while that one runs."""
        request, name = due.request, self._settings.name
        if request.command is not None and not self._notifications.runs(request.command):
            due.reply.fail(not_running(name))
            return
        try:
            number = signal.Signals[f"SIG{request.signal}"]
            is_sent = running.process.signal_foreground(number)
        except (PermissionError, trio.ClosedResourceError):
            is_sent = False
        if not is_sent:
            due.reply.fail(not_signalled(name))
            return
        due.reply.send(Done())
        if request.signal == "INT":
            self._handle(running, running.rules.interrupted(request.writer, trio.current_time()))

    def _set_size(self, rows: int, cols: int, owner: OwnedSize | None) -> None:
        window = self._window
        window.owner = owner
        is_resized = (rows, cols) != (window.rows, window.cols)
        window.resize(rows, cols, self._log.position)
        if is_resized:
            self._screen.resize(rows, cols)
            if self._observers is not None:
                self._observers.program.resized()
            if self._running is not None:
                self._running.resize(rows, cols)
        self._view_changed()

    def _end(self, end: msg.WhyEnded) -> None:
        self._ending = end
        # Not while it crashes: the next incarnation is asked, and the output is recovered.
        if not (self._running or self._cleaning) and (self._failure or not self._is_over):
            self._notify_ended(None, ())
        elif self._running is not None:
            self.context.start_soon(self._processes.end, self._running)

    # The sequence of shells.

    async def _end_last_shell(self) -> None:
        self._is_over = True
        left, self._running, self._cleaning = self._running or self._cleaning, None, None
        if left is not None:
            await self._processes.end_quickly(left)

    async def _run_shells(self) -> None:
        try:
            while (running := self._running) is not None:
                status = await running.run(
                    partial(self._feed, running),
                    partial(self._feed_errors, running),
                    self._after_turn,
                    self.context.start_soon,
                )
                if self._is_over:
                    return  # ended by the teardown: the current command counts as killed
                self._running, self._cleaning = None, running
                for data in running.left_errors():
                    self._feed_errors(running, data)
                self._handle(running, running.pipeline.close(trio.current_time()))
                self._flush()
                leftover = await self._processes.clean_up(running)
                self._cleaning = None
                self._notify_ended(status, leftover, running.pipeline)
                if self._ending is None:
                    self._handle(running, running.pipeline.restore_modes())
                    self._running = await self._start_fresh(running.pipeline)
                    self._notify_started()
        finally:
            # A shell may have started after the teardown: a start cannot be cancelled.
            with trio.CancelScope(shield=True):
                await self._end_last_shell()

    async def _start(self) -> RunningShell:
        """Start a shell. Raises ``AegisError``: then none of its processes is left."""
        wanted, self._cwd = self._cwd, existing_directory(self._cwd, self._settings.root)
        self._gone = wanted if wanted != self._cwd else None
        window = self._window
        running = await self._processes.start(
            self._cwd, window.rows, window.cols, self._log.position, self._place
        )
        self._follow(running)
        self._shells = [*self._shells, running.name][-MAX_KEPT:]
        self._failure = ""
        return running

    def _follow(self, running: RunningShell) -> None:
        assert self._observers is not None
        window, screen, pipeline = self._window, self._screen, running.pipeline
        screen.reset(pipeline.modes)
        self._responder = Responder(size=window.size, cursor_at=screen.cursor_position)
        handle = partial(self._handle, running)
        directory = self._host.startup_directory(self._files.directory)
        rearming = Rearming(self._host, running.process, pipeline, handle, directory)
        self._watch = TtyWatch(
            running.name,
            running.process,
            rearming,
            self._groups,
            self.context,
            self._observers.program,
            self._is_replaced,
        )

    def _is_replaced(self, found: Replacement) -> bool:
        """End the shell, and start it so that ``found`` does not replace it; return whether."""
        running, place = self._running, self._place
        if running is None or self._ending is not None or self._replacement is not None:
            return False
        if found.shell is not None and place.shell is not None:
            return False  # its hook is typed at its prompt
        self._has_failed = found.shell is None and found.guards.keys() <= place.guards.keys()
        self._replacement = found
        if found.shell is not None:
            inherited = found.inherited
            self._place = attrs.evolve(place, shell=found.shell, inherited=inherited)
        else:
            self._place = attrs.evolve(place, guards={**place.guards, **found.guards})
        self.context.start_soon(self._processes.end, running)
        return True

    async def _start_fresh(self, ended: ShellPipeline) -> RunningShell | None:
        """Start the next shell; None if too many ended before a first prompt, or on an error.

        A start that the disk or the system refuses is retried.
        """
        found, self._replacement = self._replacement, None
        if found is not None and self._has_failed:
            self._fail(replaced_again(self._settings.shell, found))
            return None
        is_known = ended.was_prompted or found is not None
        self._promptless = 0 if is_known else self._promptless + 1
        if self._promptless >= len(FRESH_SHELL_DELAYS_S):
            last = ended.printed.snapshot().text.strip()[-500:]
            self._fail(
                f"{self._promptless} shells in a row ended before a prompt: {last!r}; {SPAWN_ANEW}"
            )
            return None
        delay_s = FRESH_SHELL_DELAYS_S[self._promptless]
        if self._unused > 1:
            delay_s = min(UNUSED_DELAY_S * 2.0 ** min(self._unused - 2, 10), MAX_UNUSED_DELAY_S)
        while True:
            with trio.move_on_after(delay_s):
                await self._wanted.wait()
            if self._ending is not None:
                return None
            try:
                return await self._start()
            except (StorageError, Unavailable) as error:
                self._fail(f"it has no shell now, and tries each second to start one: {error}")
                delay_s = RETRY_START_S
            except AegisError as error:
                self._fail(f"{error}; {SPAWN_ANEW}")
                return None

    def _fail(self, why: str) -> None:
        self._failure = why
        self._front.tell(msg.ShellFailed(why=why))
        self._view_changed()

    # Notifications about the shell itself.

    def _notify_started(self) -> None:
        running = self._running
        if running is not None:
            self._notify(
                msg.ShellStarted(
                    shell=running.name,
                    pid=running.process.pid,
                    integration=running.rules.adapter.integration,
                    first_cursor=self._log.position,
                    gone=self._gone,
                    program=None if self._place.shell is None else text_of_path(self._place.shell),
                )
            )
            self._greet(running)

    def _greet(self, running: RunningShell) -> None:
        """Type the keys that the shell needs at its start; most shells need none."""
        text, self._greeting = running.rules.adapter.greeting, None
        if text:
            self._greeting = Greeting(text, running.send, self._look_after)
            self._greeting.send()

    def _notify_ended(
        self, status: int | None, leftover: tuple[str, ...], ended: ShellPipeline | None = None
    ) -> None:
        assert self._observers is not None
        if self._ending is not None:
            self._observers.end()
        loss = None if ended is None or self._ending else self._loss(ended)
        self._notify(
            msg.ShellEnded(
                shell=self._shells[-1],
                exit=status,
                output=msg.NO_OUTPUT if ended is None else ended.printed.snapshot(),
                finished_at=utc_now(),
                moment_s=trio.current_time(),
                raw_end=self._log.position,
                leftover=leftover,
                end=self._ending,
                loss=loss,
            )
        )

    def _loss(self, ended: ShellPipeline) -> msg.ShellLoss | None:
        """Return what was lost with a shell that ended; None if it was not used and took no state.

        A shell that ends by itself again and again (``TMOUT``) is recorded once.
        """
        if self._replacement is not None:
            why = replaced(self._settings.shell, self._replacement)
            return msg.ShellLoss(words="", raw_start=self._log.position, replaced=why)
        if not ended.was_prompted:
            return None
        self._unused = 0 if ended.rules.is_used else self._unused + 1
        if self._unused and len(self._shells) > 1:
            return None
        begin = max(self._log.position - MAX_WORDS_BYTES, self._first_cursor)
        try:
            data, missing = self._log.read(begin, self._log.position)
        except StorageError:
            return msg.ShellLoss(words="", raw_start=self._log.position)
        start, words = words_after_prompt(data)
        return msg.ShellLoss(words=words, raw_start=begin + missing + start)

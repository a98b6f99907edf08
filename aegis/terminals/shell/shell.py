"""``Shell``: the actor that owns the PTY of one terminal and the processes on it.

A helper task keeps a shell running: it starts one, waits for its end, ends its other processes,
notifies the front, and starts the next one. The end of a shell is no crash of this actor.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import trio

from actors import Actor
from aegis.clock import utc_now
from aegis.errors import AegisError, StorageError, Unavailable
from aegis.journal.disk import Disk
from aegis.journal.raw_log import RawLog
from aegis.path_text import text_of_path
from aegis.processes.process_host import ProcessHost, ShellProcess
from aegis.processes.process_scan import GroupScan, ProcessScan
from aegis.processes.working_directory import REMOVED, existing_directory
from aegis.protocol.feeds import OwnedSize, View
from aegis.protocol.terminals import Done
from aegis.terminals import messages as msg
from aegis.terminals.front_port import Front
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.hooks.programs import Replacement, replaced, replaced_again
from aegis.terminals.meta import saved_settings
from aegis.terminals.output.observers import OutputObservers
from aegis.terminals.output.reading import open_raw_log
from aegis.terminals.output.window import Window
from aegis.terminals.parse.plain import words_after_prompt
from aegis.terminals.screen.live import LiveScreen
from aegis.terminals.screen.modes import ModeWatch
from aegis.terminals.sentences import SPAWN_ANEW
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell import messages as timers
from aegis.terminals.shell.cleanup import Cleaner
from aegis.terminals.shell.log_flusher import LogFlusher
from aegis.terminals.shell.messages import ShellMessage
from aegis.terminals.shell.notifications import MAX_KEPT, NotificationLog
from aegis.terminals.shell.rearming import Rearming
from aegis.terminals.shell.responder import MAX_UNREAD_ANSWERS_BYTES, Responder
from aegis.terminals.shell.running import RunningShell, introduction, state_of
from aegis.terminals.shell.signalling import signal_front
from aegis.terminals.shell.starting import PLACE, Starter
from aegis.terminals.shell.tracker import Tracker
from aegis.terminals.shell.tty_watch import TtyWatch

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


class Shell(Actor[ShellMessage]):
    """The actor of a terminal's shell; ``file_limit`` is how many files the shell may open."""

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
        self._disk = disk
        self._raw_log_bytes = raw_log_bytes
        self._cleaner = Cleaner(settings=settings, files=files, disk=disk, scan=scan)
        self._starter = Starter(
            settings=settings,
            files=files,
            disk=disk,
            file_limit=file_limit,
            cleaner=self._cleaner,
            host=host,
        )
        self._host, self._groups = host, groups
        self._running: RunningShell | None = None
        self._cleaning: RunningShell | None = None
        self._raw_log: RawLog | None = None
        self._flusher: LogFlusher | None = None
        self._screen: LiveScreen | None = None
        self._observers: OutputObservers | None = None
        self._cwd = settings.cwd
        self._notifications = NotificationLog()
        self._shells: list[str] = []
        self._first_cursor = self._promptless = self._unused = 0
        self._wanted = trio.Event()
        self._place = PLACE
        self._replacement: Replacement | None = None
        self._is_over = self._has_failed = False
        self._gone: str | None = None
        self._failure = ""
        self._ending: msg.WhyEnded | None = None

    async def setup(self) -> None:
        """End the processes of an earlier shell; start one."""
        disk = self._disk
        self._front = self.context.sibling("terminal", Front)
        if self.context.incarnation > 1:
            self._settings = saved_settings(disk, self._files, self._settings)
        await self._cleaner.end_earlier(self.context.incarnation)
        self._raw_log = open_raw_log(disk, self._files, self._raw_log_bytes)
        self._flusher = LogFlusher(self._settings.name, self._raw_log, self.context.after)
        self._first_cursor = self._raw_log.position
        rows, cols = self._settings.rows, self._settings.cols
        self._window = Window(rows, cols, self._first_cursor, look_after=self._look_after)
        self._screen = LiveScreen(self._raw_log, rows, cols, self.context.start_soon)
        self._observers = self._new_observers(self._raw_log, self._screen, self._flusher)
        self._running = await self._start()
        self._running.tracker.greeting.send()
        self._introduce()
        self.context.start_soon(self._keep_running)

    async def teardown(self) -> None:
        """End all processes; close the raw log."""
        await self._end_last_shell()
        if self._observers is not None:
            self._observers.close()
        if self._flusher is not None:
            self._flusher.close()

    async def receive(self, message: ShellMessage) -> None:
        match message:
            case msg.Introduce():
                self._introduce()
            case msg.Submit():
                if self._running is None:
                    self._notify(msg.SubmissionRefused(call=message.call, at_prompt=False))
                else:
                    self._running.tracker.submit(message)
            case msg.TypeKeys():
                self._type_keys(message)
            case msg.SendSignal():
                self._send_signal(message)
            case msg.SetSize(rows=rows, cols=cols, owner=owner):
                self._set_size(rows, cols, owner)
            case msg.ReportOutput(call=call):
                if self._running is not None:
                    self._running.tracker.report(call)
            case msg.CommandRecorded(raw_end=raw_end):
                self._notifications.recorded(raw_end)
            case msg.StartNow():
                self._wanted.set()
            case msg.EndShell(end=end):
                self._wanted.set()
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
        assert self._flusher is not None
        match message:
            case timers.FlushRawLog():
                self._flusher.flush_now()
            case timers.RestRawLog(position=position):
                self._flusher.rest(position)
            case timers.CheckRead():
                if self._running is not None:
                    self._running.tracker.look_again()
                    self._running.watch.check_again()
            case timers.LookAtTty(shell=name):
                if self._running is not None and self._running.name == name:
                    self._running.watch.on_timer()
            case timers.LookAtTypist():
                self._window.look_at_typist()
                self._view_changed()

    # Live output.

    def _new_observers(
        self, raw_log: RawLog, screen: LiveScreen, flusher: LogFlusher
    ) -> OutputObservers:
        return OutputObservers(
            self._settings.name,
            self.context.path,
            raw_log,
            screen,
            flush=flusher.flush_for_reader,
            tracker=lambda: None if self._running is None else self._running.tracker,
            view=self._view,
            window=self._window,
            progress_of=self._notifications.progress_of,
            start_soon=self.context.start_soon,
        )

    def _look_after(self, seconds: float) -> None:
        self.context.after(seconds, timers.LookAtTypist())

    # ``ShellPort``, for the tracker.

    def write(self, data: bytes) -> None:
        """Send bytes to the PTY, after all that was sent before."""
        if self._running is not None:
            self._running.send(data)

    def look_again_after(self, seconds: float) -> None:
        """Have the tracker check its pending probes after ``seconds``."""
        self.context.after(seconds, timers.CheckRead())

    def hook_answered(self) -> None:
        """Note which program has the hook."""
        if self._running is not None:
            self._running.watch.rearming.answered()

    def working_directory(self) -> str | None:
        """Return the shell's directory, or its last known one; None if it was removed."""
        running = self._running
        found = None if running is None else self._host.directory_of(running.process.pid)
        self._cwd = found or self._cwd
        return None if found == REMOVED else self._cwd

    def is_in_front(self) -> bool:
        """Whether the shell itself would read what is typed, as far as can be known."""
        return self._running is not None and self._running.is_in_front

    def waits_for_keys(self) -> bool:
        """Whether the shell has read all keys, and its line editor waits for more."""
        return self._running is not None and self._running.waits_for_keys(self._host)

    # Requests of the front.

    def _introduce(self) -> None:
        """Send the actor's state to the front, which ignores it if it knows this incarnation."""
        assert self._raw_log is not None
        self._front.tell(
            introduction(
                self._running,
                life=self.context.incarnation,
                first_cursor=self._first_cursor,
                cursor=self._raw_log.position,
                shells=self._shells,
                failure=self._failure,
                ending=self._ending,
                notifications=self._notifications.all(),
            )
        )

    def _notify(self, news: Any) -> None:
        self._notifications.keep(news)
        self._front.tell(news)
        if self._observers is not None:
            self._observers.handle_news(news)

    def _view(self) -> View:
        """Return the view of the terminal that watchers get with the output."""
        running = self._running
        return self._window.view(
            state_of(running, self._failure, self._ending),
            None if running is None else running.watch.needs_input,
            None if running is None else running.tracker.typing,
        )

    def _view_changed(self) -> None:
        if self._observers is not None:
            self._observers.view_changed()

    def _type_keys(self, request: msg.TypeKeys) -> None:
        running = self._running
        if running is None:
            raise Unavailable(
                f"terminal {self._settings.name!r} has no shell right now; try again in a moment"
            )
        running.check_keys(self._settings.name, request.keys)
        running.tracker.keys(request.writer, request.keys)
        running.watch.on_keys(request.keys)
        self._window.typed(request.writer)
        self._view_changed()
        self.reply(request, Done())

    def _send_signal(self, request: msg.SendSignal) -> None:
        running, name = self._running, self._settings.name
        if running is None:
            raise Unavailable(f"terminal {name!r} has no shell right now; nothing was signalled")
        reply = self.defer(request)
        send = partial(
            signal_front, running.process, request, name, self._notifications.runs, reply
        )
        running.tracker.signal(request.writer, send, is_interrupt=request.signal == "INT")

    def _set_size(self, rows: int, cols: int, owner: OwnedSize | None) -> None:
        window, log = self._window, self._raw_log
        window.owner = owner
        is_resized = (rows, cols) != (window.rows, window.cols)
        window.resize(rows, cols, self._first_cursor if log is None else log.position)
        if not is_resized:
            self._view_changed()
            return
        if self._screen is not None:
            self._screen.resize(rows, cols)
        if self._running is not None:
            self._running.resize(rows, cols)
        self._view_changed()

    def _end(self, end: msg.WhyEnded) -> None:
        self._ending = end
        # Not while it crashes: the next incarnation is asked, and the output is recovered.
        if not (self._running or self._cleaning) and (self._failure or not self._is_over):
            self._notify_ended(None, ())
        elif self._running is not None:
            self.context.start_soon(self._cleaner.end_processes, self._running)

    # The sequence of shells.

    async def _end_last_shell(self) -> None:
        self._is_over = True
        left, self._running, self._cleaning = self._running or self._cleaning, None, None
        if left is not None:
            await self._cleaner.end_quickly(left)

    async def _keep_running(self) -> None:
        try:
            await self._run_shells()
        finally:
            # A shell may have started after the teardown: a start cannot be cancelled.
            with trio.CancelScope(shield=True):
                await self._end_last_shell()

    async def _run_shells(self) -> None:
        assert self._flusher is not None
        while (running := self._running) is not None:
            status = await running.run(self._flusher.flush_soon, self.context.start_soon)
            if self._is_over:
                return  # ended by the teardown: the current command counts as killed
            ended, self._running = running, None
            self._cleaning = ended
            leftover = await self._cleaner.clean_up(ended)
            self._cleaning = None
            self._notify_ended(status, leftover, ended)
            if self._ending is None:
                ended.tracker.switch_modes_back()
                self._running = await self._start_fresh(ended)
                self._notify_started()

    async def _start(self) -> RunningShell:
        """Start a shell. Raises ``AegisError``: then none of its processes is left."""
        wanted, self._cwd = self._cwd, existing_directory(self._cwd, self._settings.root)
        self._gone = wanted if wanted != self._cwd else None
        running = await self._starter.start(
            self._cwd, self._window.rows, self._window.cols, self._follow, self._place
        )
        self._shells = [*self._shells, running.name][-MAX_KEPT:]
        self._failure = ""
        return running

    def _follow(
        self, name: str, process: ShellProcess, adapter: ShellAdapter
    ) -> tuple[Tracker, TtyWatch]:
        assert self._raw_log is not None
        assert self._screen is not None
        modes = ModeWatch()
        self._screen.reset(modes)
        assert self._observers is not None
        # The screen comes first: the responder asks it where the cursor was.
        observers = (*self._observers.observers, self._responder())
        tracker = Tracker(name, adapter, self._raw_log, self, self._notify, observers, modes)
        directory = self._host.startup_directory(self._files.directory)
        rearming = Rearming(self._host, process, tracker, directory)
        program = self._observers.program
        return tracker, TtyWatch(
            name,
            process,
            rearming,
            self._groups,
            self.context,
            self._notify,
            program,
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
        self.context.start_soon(self._cleaner.end_processes, running)
        return True

    def _responder(self) -> Responder:
        assert self._screen is not None
        return Responder(
            size=lambda: (self._window.rows, self._window.cols),
            cursor_at=self._screen.cursor_position,
            send=self._answer,
            moved=self._moved,
        )

    def _answer(self, data: bytes) -> None:
        running = self._running
        if running is not None and running.outgoing_size < MAX_UNREAD_ANSWERS_BYTES:
            running.send(data)

    def _moved(self, directory: str) -> None:
        if self._running is not None:
            self._running.tracker.reports.newest = directory

    async def _start_fresh(self, ended: RunningShell) -> RunningShell | None:
        """Start the next shell; None if too many ended before a first prompt, or on an error.

        A start that the disk or the system refuses is retried.
        """
        found, self._replacement = self._replacement, None
        if found is not None and self._has_failed:
            self._fail(replaced_again(self._settings.shell, found))
            return None
        is_known = ended.tracker.was_prompted or found is not None
        self._promptless = 0 if is_known else self._promptless + 1
        if self._promptless >= len(FRESH_SHELL_DELAYS_S):
            last = ended.tracker.printed.snapshot().text.strip()[-500:]
            self._fail(
                f"{self._promptless} shells in a row ended before a prompt: {last!r}; {SPAWN_ANEW}"
            )
            return None
        delay_s = FRESH_SHELL_DELAYS_S[self._promptless]
        if self._unused > 1:
            delay_s = min(UNUSED_DELAY_S * 2.0 ** min(self._unused - 2, 10), MAX_UNUSED_DELAY_S)
        while True:
            self._wanted = trio.Event()
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

    # Notifications for the front.

    def _notify_started(self) -> None:
        running = self._running
        if running is not None:
            assert self._raw_log is not None
            self._notify(
                msg.ShellStarted(
                    shell=running.name,
                    pid=running.process.pid,
                    integration=running.tracker.adapter.integration,
                    first_cursor=self._raw_log.position,
                    gone=self._gone,
                    program=None if self._place.shell is None else text_of_path(self._place.shell),
                )
            )
            running.tracker.greeting.send()

    def _notify_ended(
        self, status: int | None, leftover: tuple[str, ...], ended: RunningShell | None = None
    ) -> None:
        assert self._raw_log is not None
        assert self._observers is not None
        if self._ending is not None:
            self._observers.end()
        loss = None if ended is None or self._ending else self._loss(ended.tracker)
        self._notify(
            msg.ShellEnded(
                shell=self._shells[-1],
                exit=status,
                output=msg.NO_OUTPUT if ended is None else ended.tracker.printed.snapshot(),
                finished_at=utc_now(),
                moment_s=trio.current_time(),
                raw_end=self._raw_log.position,
                leftover=leftover,
                end=self._ending,
                loss=loss,
            )
        )

    def _loss(self, ended: Tracker) -> msg.ShellLoss | None:
        """Return what was lost with a shell that ended; None if it was not used and took no state.

        A shell that ends by itself again and again (``TMOUT``) is recorded once.
        """
        assert self._raw_log is not None
        if self._replacement is not None:
            why = replaced(self._settings.shell, self._replacement)
            return msg.ShellLoss(words="", raw_start=self._raw_log.position, replaced=why)
        if not ended.was_prompted:
            return None
        self._unused = 0 if ended.is_used else self._unused + 1
        if self._unused and len(self._shells) > 1:
            return None
        begin = max(self._raw_log.position - MAX_WORDS_BYTES, self._first_cursor)
        try:
            data, missing = self._raw_log.read(begin, self._raw_log.position)
        except StorageError:
            return msg.ShellLoss(words="", raw_start=self._raw_log.position)
        start, words = words_after_prompt(data)
        return msg.ShellLoss(words=words, raw_start=begin + missing + start)

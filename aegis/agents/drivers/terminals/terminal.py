"""``CommandTerminal``: the actor of one terminal of an agent.

The command runs below a guard of its own, which ends it and everything that it started when the
terminal is released, when the actor ends, and when the daemon dies. Its output goes to a PTY, so
that programs print as to a person. It is no controlling terminal: nobody could type into it, and a
program that asks for a password there fails instead of waiting for ever.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import attrs
import trio

from actors import Actor, Reply
from actors.messages import Request
from aegis.agents.drivers.terminals.rules import (
    KILLED,
    ExitStatus,
    Question,
    TerminalRules,
)
from aegis.errors import Busy
from aegis.hidden_urls import hide_session_urls
from aegis.processes.guarded.guarded_process import GuardedProcess, Launch, start_guarded
from aegis.processes.process_host import ErrorTerminal
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.feeds import AgentCommandNews, FollowAgentCommand

ROWS, COLS = 30, 120

MAX_DRAINED_BYTES = 128 * 1024
"""The most output that is read between a command's end and its report. A tty holds less."""

BURST_BYTES = 1024 * 1024
PAUSE_SHARE = 1.0
"""After each burst the reader pauses for this multiple of the time that the burst took.

A command that prints without end would otherwise take a whole core of the daemon.
"""


@attrs.frozen
class AskTerminal(Request[dict[str, Any]]):
    """A question of the agent; answered with the fields of the protocol's result."""

    question: Question


@attrs.frozen
class AlarmDue:
    """The time of an alarm has come."""


@attrs.frozen
class LookAtTerminal(Request["OutputLook"]):
    """Return the output so far, for people; also after the end of the command."""


@attrs.frozen(kw_only=True)
class OutputLook:
    """The output of a terminal at one moment; ``status`` is None while the command runs.

    The first ``dropped`` bytes are no longer kept.
    """

    output: str
    dropped: int
    status: ExitStatus | None


def status_of(code: int | None) -> ExitStatus:
    """Return the status for an exit code, or minus a signal's number; None: the end was not seen.

    The number of a real-time signal has no name.
    """
    if code is None:
        return KILLED
    if code >= 0:
        return ExitStatus(exit_code=code)
    try:
        return ExitStatus(signal=signal.Signals(-code).name)
    except ValueError:
        return ExitStatus(signal=f"SIG{-code}")


MAX_FOLLOWERS = 16

MAX_NEWS_BYTES = 64 * 1024
MAX_LINE_CHARS = 4096
"""Limits of one answer: its text, and the line that is not finished."""


class OutputFollowers:
    """The followers of the command of ``rules``; call ``notify`` after each change of these."""

    def __init__(self, rules: TerminalRules) -> None:
        self._rules = rules
        self._waiting: list[tuple[FollowAgentCommand, Reply[AgentCommandNews]]] = []

    def take(self, request: FollowAgentCommand, reply: Reply[AgentCommandNews]) -> None:
        """Answer once there is something new. Raises ``Busy``."""
        self._waiting = [each for each in self._waiting if not each[1].is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} clients follow command {request.command!r} already")
        self._waiting.append((request, reply))
        self.notify()

    def notify(self) -> None:
        """Answer the requests that have something new."""
        waiting, self._waiting = self._waiting, []
        for request, reply in waiting:
            news = self._news(request.cursor)
            if request.seen is not None and is_seen(news, request):
                self._waiting.append((request, reply))
            else:
                reply.send(news)

    def _news(self, cursor: int) -> AgentCommandNews:
        begin, text = self._rules.since(cursor, MAX_NEWS_BYTES)
        status = self._rules.status
        return AgentCommandNews(
            begin=begin,
            cursor=begin + len(text.encode()),
            text=hide_session_urls(text),
            line=hide_session_urls(self._rules.line[-MAX_LINE_CHARS:]),
            has_ended=status is not None,
            exit_code=None if status is None else status.exit_code,
            signal=None if status is None else status.signal,
        )


def is_seen(news: AgentCommandNews, request: FollowAgentCommand) -> bool:
    """Return whether a reader has all of this already."""
    return (
        news.cursor == request.cursor
        and request.seen is not None
        and (news.line, news.has_ended) == (request.seen.line, request.seen.has_ended)
    )


Order = AskTerminal | LookAtTerminal | FollowAgentCommand | AlarmDue


class CommandTerminal(Actor[Order]):
    """The actor of one command that keeps ``limit`` bytes of output; see ``TerminalRules``.

    ``show`` is called with new output from time to time, and whether its beginning was dropped.
    """

    def __init__(
        self,
        launch: Launch,
        limit: int | None,
        scan: ProcessScan,
        show: Callable[[str, bool], None],
    ) -> None:
        self._show = show
        self._launch = launch
        self._scan = scan
        self._rules = TerminalRules(limit, self)
        self._followers = OutputFollowers(self._rules)
        self._pty: ErrorTerminal | None = None
        self._process: GuardedProcess | None = None
        self._running = trio.CancelScope()

    async def setup(self) -> None:
        """Start the command. Raises ``Unavailable``."""
        self._pty = pty = self._scan.host.open_error_pty(ROWS, COLS)
        launch = attrs.evolve(self._launch, tty=pty.path)
        self._process = process = await start_guarded(launch, self._scan)
        await process.release()  # all of its output goes to the PTY
        self.context.start_soon(process.follow)
        self.context.start_soon(self._note_end, process)
        self.context.start_soon(self._read, pty, process)

    async def teardown(self) -> None:
        """End the processes at once, unless they have ended."""
        if self._process is not None:
            await self._process.end(self._scan, quickly=True)
        if self._pty is not None:
            self._pty.close()

    async def receive(self, message: Order) -> None:
        match message:
            case AskTerminal(question=question):
                self._rules.ask(question, self.defer(message), trio.current_time())
            case LookAtTerminal():
                output, _ = self._rules.shown()
                dropped = self._rules.printed_bytes - len(output.encode())
                status = self._rules.status
                self.reply(message, OutputLook(output=output, dropped=dropped, status=status))
            case FollowAgentCommand():
                self._followers.take(message, self.defer(message))
            case AlarmDue():
                self._rules.due(trio.current_time())

    # The actions of the rules.

    def end_processes(self, *, at_once: bool) -> None:
        self.context.start_soon(self._stop, at_once)

    def set_alarm(self, after_s: float) -> None:
        self.context.after(after_s, AlarmDue())

    def show_output(self) -> None:
        self._show(*self._rules.shown())

    def finish(self) -> None:
        self.context.finish()

    async def _stop(self, at_once: bool) -> None:
        assert self._process is not None
        await self._process.end(self._scan, quickly=at_once)
        if at_once:
            self._rules.gone()

    async def _note_end(self, process: GuardedProcess) -> None:
        await process.ended.wait()
        if process.lost_guard:  # nothing else ends the command, whose end is about to be reported
            await process.end(self._scan, quickly=True)
        self._running.cancel()

    async def _read(self, pty: ErrorTerminal, process: GuardedProcess) -> None:
        """Read the output; report the command's end after everything that it has printed."""
        try:
            with self._running:
                await self._read_on(pty)
            # The slave is open here, so there is no end of the stream. A write is in the kernel's
            # buffer before its program can end, and a read empties that.
            drained = 0
            while drained < MAX_DRAINED_BYTES and (data := pty.read_now()):
                drained += len(data)
                self._take_output(data)
            self._rules.ended(status_of(process.exit_code))
            self._followers.notify()
            await self._read_on(pty)
        except trio.ClosedResourceError:  # by the teardown, which cancels this task afterwards
            return

    def _take_output(self, data: bytes) -> None:
        self._rules.printed(data, trio.current_time())
        self._followers.notify()

    async def _read_on(self, pty: ErrorTerminal) -> None:
        while True:
            began, taken = trio.current_time(), 0
            while taken < BURST_BYTES:
                data = await pty.read()
                if not data:  # no end of the stream is expected; do not read it again and again
                    await trio.sleep_forever()
                taken += len(data)
                self._take_output(data)
            await trio.sleep(min(0.5, PAUSE_SHARE * (trio.current_time() - began)))

"""``TerminalAgent``: the actor of an agent that is its terminal.

One helper task follows the current process: its verdicts, then its record. Orders (launch, restart,
close) are carried out one at a time, each by a helper task of its own.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs
import structlog
import trio

from actors import Actor, ActorError, Reply, Request, System, describe
from actors.errors import root_cause
from aegis.agents import faults
from aegis.agents.interactive import standing as st
from aegis.agents.interactive.hooks import (
    hook_socket,
    next_hook,
    takes_hooks,
    with_hooks,
    write_settings,
)
from aegis.agents.interactive.terminal import FAILURES, ProgramTerminal
from aegis.agents.sessions.settings import ChangeSettings, ResumeAgent
from aegis.agents.sessions.status import AskedChanged, SessionClosed, SessionIdentity
from aegis.agents.sessions.waits import AgentWaits
from aegis.clock import moment_text
from aegis.configuration.lifecycle import LifecycleSection
from aegis.errors import AegisError, InvalidRequest, NotFound, Unavailable
from aegis.lifecycle.states import State
from aegis.limits import in_thread_or_here
from aegis.names import shorten
from aegis.path_text import path_of_text
from aegis.protocol import agents as api
from aegis.protocol.feeds import FollowInbox, FollowSession, InboxPlace
from aegis.protocol.inboxes import MessageList, ReadInbox
from aegis.protocol.terminals import CommandRecord, End

log = structlog.get_logger("aegis.agents")

GRACE_S = 3.0
"""Seconds between SIGTERM and SIGKILL."""

KILL_S = 2.0
"""Seconds that a killed program may take to be gone."""

PAUSE_S = 0.05
"""The shortest time between two verdicts: a program can change its state with each byte."""

AGAIN_S = 0.5
"""Seconds after which a terminal is asked again that did not answer."""

TRIES = 20
"""The most tries in a row to read the record of a process that has ended."""

MISSING_S = 5.0
"""Seconds in which a shell reports that there is no program of a name."""

MAX_COUNTED = 100
"""More unread messages are counted as so many."""

LOOK_S = 1.0
COUNT_AGAIN_S = 1.0

AT_PROMPT = ("needs_input", "stale")

NOT_FOUND = (126, 127)
"""The exit codes by which a shell reports a program that it cannot start."""

TerminalAgentMessage = (
    api.ShowAgent
    | api.CloseAgent
    | api.InterruptAgent
    | api.RestartAgent
    | api.ReadSession
    | api.WaitAgent
    | api.ToolsListed
    | FollowSession
    | ResumeAgent
    | ChangeSettings
    | AskedChanged
)


class TerminalAgent(Actor[TerminalAgentMessage]):
    """The agent ``identity``, whose program is ``cmd`` in ``terminal``.

    ``directory`` is its own, for the files of hooks. ``on_change`` is called with each change of
    its state. ``is_installed`` returns whether there is a program of a name, or of a path from a
    directory on (blocking). ``is_new``: it has never run, and its launch follows.
    """

    def __init__(
        self,
        *,
        identity: SessionIdentity,
        cmd: str,
        terminal: str,
        directory: Path,
        lifecycle: LifecycleSection,
        on_change: Callable[[api.AgentInfo], None],
        is_installed: Callable[[str, str], bool],
        is_new: bool = False,
    ) -> None:
        self._identity = identity
        self._cmd = cmd
        self._name = terminal
        self._directory = directory
        self._lifecycle = lifecycle
        self._on_change = on_change
        self._is_installed = is_installed
        self._is_new = is_new
        self._is_closing = self._is_closed = False

    async def setup(self) -> None:
        """Continue with the process of an earlier incarnation, if it still runs."""
        name = f"{self._identity.id}/{self.context.incarnation}/{time.time_ns()}"
        self._standing = st.AgentStanding(terminal=self._name, life=name, since=time.time())
        self._terminal = ProgramTerminal(
            system=self.context.system,
            name=self._name,
            identity=self._identity,
            idle_s=self._lifecycle.idle_s,
            stale_s=self._lifecycle.stale_s,
        )
        self._one_at_a_time = trio.Lock()
        self._ended = trio.Event()
        self._unread = UnreadCount(
            self.context.system, self._identity.address, lambda: self._on_change(self._info())
        )
        self._waits = AgentWaits(
            self._identity,
            self.context.start_soon,
            lambda wait: program_outcome(wait, self._info()),
            lambda: "it is at its prompt" if self._standing.state in AT_PROMPT else "",
        )
        self.context.register("session", self._identity.id)
        is_first = self.context.incarnation == 1
        if is_first and self._is_new:
            self._standing.state = "starting"
        self._on_change(self._info())
        self.context.start_soon(self._unread.follow)
        if takes_hooks(self._cmd, self._directory):
            self.context.start_soon(self._take_hooks)
        if not is_first:
            self.context.start_soon(self._continue)
        elif not self._is_new:
            self.context.start_soon(self._remember)

    async def receive(self, message: TerminalAgentMessage) -> None:
        match message:
            case api.ShowAgent():
                self.context.start_soon(self._show, self.defer(message))
            case ResumeAgent():
                self.context.start_soon(self._order, self._launch, None)
            case api.RestartAgent():
                self.context.start_soon(self._order, self._restart, self.defer(message))
            case api.CloseAgent():
                self._is_closing = True
                self.context.start_soon(self._order, self._close, self.defer(message))
            case api.InterruptAgent(message=None):
                self.context.start_soon(self._order, self._interrupt, self.defer(message))
            case ChangeSettings():
                self.reply(message, f"{self._identity.handle!r} is a terminal agent")
            case AskedChanged():
                self._changed()
            case api.WaitAgent():
                self._waits.take(message, self.defer(message))
            case api.ToolsListed():
                pass
            case _:
                raise InvalidRequest(
                    f"{self._identity.handle!r} is a terminal agent and has no transcript; read "
                    f"its terminal: aegis_term_screen or aegis_term_output, name {self._name!r}"
                )

    # The state.

    def _changed(self) -> None:
        self._on_change(self._info())
        self._waits.look()

    def _take(self, change: Callable[[float], st.Wake | None]) -> None:
        """Change the state by ``change``, which takes this moment, and report it."""
        before = self._standing.shown
        wake = change(time.time())
        if self._standing.shown != before:
            self._changed()
        if wake is not None:
            self.context.start_soon(self._wake, *wake)

    async def _show(self, reply: Reply[api.AgentInfo]) -> None:
        await self._unread.look()
        info = self._info()
        reply.send(attrs.evolve(info, state="closed") if self._is_closing else info)

    async def _wake(self, key: str, body: str) -> None:
        try:
            await self._terminal.wake(key, body)
        except FAILURES as error:
            log.warning("nobody woken", agent=self._identity.handle, why=describe(error))

    def _info(self) -> api.AgentInfo:
        identity, now = self._identity, self._standing
        # At its prompt: a program that works, or asks in its terminal, is shown as such.
        asked = identity.asked() if now.need is not None and now.need.kind == "ready" else None
        return api.AgentInfo(
            id=identity.id,
            handle=identity.handle,
            profile=identity.profile,
            provider=identity.provider,
            state=now.state if asked is None else "blocked",
            since=moment_text(now.since),
            reason=now.reason,
            cwd=identity.cwd,
            spawned_by=identity.spawned_by,
            model="",
            turn=0,
            waiting=self._unread.count,
            quiet_s=0.0,
            tools=[],
            blocked=asked,
            limited_until=None,
            conversation=None,
            program=_program(now, self._cmd),
        )

    # Orders.

    async def _order(
        self, order: Callable[[], Awaitable[None]], reply: Reply[api.AgentInfo] | None
    ) -> None:
        failure: Exception | None = None
        try:
            async with self._one_at_a_time:
                await order()
        except FAILURES as error:
            cause = root_cause(error) if isinstance(error, ActorError) else error
            failure = cause if isinstance(cause, AegisError) else Unavailable(describe(error))
        if reply is None:
            pass
        elif failure is None:
            reply.send(self._info())
        else:
            reply.fail(failure)
        if self._is_closed:
            self._finish()

    async def _launch(self) -> None:
        """Start a process, unless there is one. Raises ``FAILURES``."""
        if self._standing.runs or self._is_closed:
            return
        standing = self._standing
        is_first, exit_code = standing.launches == 0, standing.exit_code
        self._take(standing.launching)
        try:
            record = await self._run(exit_code, is_first=is_first)
        except FAILURES as error:
            reason = f"it could not be started: {describe(error)}"
            self._take(partial(standing.not_launched, reason=reason))
            raise
        self._launched(record)
        word, cwd = _WORD.match(self._cmd), path_of_text(self._identity.cwd)
        # In any other command only the shell knows what the first word is.
        if word and not await in_thread_or_here(self._is_installed, word[1], cwd):
            await self._check_found()

    async def _check_found(self) -> None:
        """Raise ``Unavailable`` if the shell has not found the program.

        It may be a function or an alias, or be in a PATH that the shell has set itself.
        """
        with trio.move_on_after(MISSING_S):
            await self._ended.wait()
        if not self._standing.runs and self._standing.exit_code in NOT_FOUND:
            raise Unavailable(
                f"agent launch: the shell cannot start {shorten(self._cmd)!r}: install the "
                "program, or give its path"
            )

    async def _run(self, exit_code: int | None, *, is_first: bool) -> CommandRecord:
        is_new = await self._terminal.open()
        if is_first:
            await self._terminal.introduce()
        if not is_new:
            await self._terminal.clear_line()
            await self._terminal.separate(exit_code)
        await faults.LAUNCH_BEFORE.reach(self._identity.handle)
        is_started = trio.CancelScope()
        # Keys that come now, meant for the program, would hold the command up for ``START_S``.
        self.context.start_soon(self._terminal.keep_clear, is_started)
        try:
            record = await self._terminal.run(with_hooks(self._cmd, self._directory))
        finally:
            is_started.cancel()
        await faults.LAUNCH_AFTER.reach(self._identity.handle)
        return record

    def _launched(self, record: CommandRecord) -> None:
        self._ended = trio.Event()
        seq, raw_start = record.seq, record.raw_start
        self._take(partial(self._standing.launched, seq=seq, raw_start=raw_start))
        self.context.start_soon(self._follow, seq, raw_start)

    async def _restart(self) -> None:
        await self._stop()
        await self._launch()

    async def _stop(self) -> None:
        """End the process. Raises ``Unavailable`` if it does not end."""
        for signal, patience_s in (("TERM", GRACE_S), ("KILL", KILL_S)):
            seq = self._standing.seq
            if seq is None:
                return
            self._take(lambda _: self._standing.stopping())
            try:
                await self._terminal.signal(signal, seq)
            except FAILURES as error:  # it has just ended, or a job control has put it aside
                log.info("not signalled", agent=self._identity.handle, why=describe(error))
            with trio.move_on_after(patience_s):
                await self._ended.wait()
        if self._standing.runs:
            raise Unavailable(
                f"the program of {self._identity.handle!r} does not end: it may be stopped by job "
                f"control; look at it with aegis-actors term attach {self._name}, or stop the agent"
            )

    async def _close(self) -> None:
        try:
            await self._stop()
        except Unavailable as error:
            log.warning("closing the terminal of a program that runs", why=str(error))
        try:
            left = await self._terminal.close()
        except FAILURES:
            self._is_closing = False
            raise
        if left:
            log.warning("processes of an agent not ended", agent=self._identity.handle, left=left)
        self._is_closed = True
        self._take(self._standing.closed)

    def _finish(self) -> None:
        directory = self.context.system.registry.find("service", "agents")
        if directory is not None:
            directory.tell(SessionClosed(self._identity.id))
        self.context.finish()

    async def _interrupt(self) -> None:
        if not self._standing.runs:
            raise Unavailable(f"{self._identity.handle!r} has no process; agent restart starts one")
        await self._terminal.interrupt()

    # The process.

    async def _continue(self) -> None:
        """Find the process that an earlier incarnation has started."""
        async with self._one_at_a_time:
            try:
                record = await self._terminal.running()
            except FAILURES:
                return
            if record is not None and record.cmd == with_hooks(self._cmd, self._directory):
                self._take(self._standing.launching)
                self._launched(record)

    async def _remember(self) -> None:
        """Find how the last process of an earlier daemon ended."""
        record = None
        for _ in range(TRIES):
            try:
                record = await self._terminal.last_record(with_hooks(self._cmd, self._directory))
                break
            except NotFound:  # it was never launched
                return
            except FAILURES:  # terminals are being started
                await trio.sleep(AGAIN_S)
        if record is not None:
            at = datetime.fromisoformat(record.finished_at or record.started_at).timestamp()
            how = partial(self._standing.remembered, at, exit_code=record.exit, end=record.end)
            self._take(lambda _: how())

    async def _follow(self, seq: int, raw_start: int) -> None:
        """Take the verdicts about a process, and then its record."""
        failed = 0
        while failed < TRIES:
            try:
                with contextlib.suppress(*FAILURES):  # it is closed, or its actor has crashed
                    await self._judge(raw_start)
                record = await self._terminal.final_record(seq)
            except FAILURES as error:
                log.info("terminal asked again", agent=self._identity.handle, why=describe(error))
                record = None
                failed += 1
                await trio.sleep(AGAIN_S)
            if record is not None:
                self._end(seq, record.exit, record.end)
                return
        self._end(seq, None, "lost")

    async def _judge(self, raw_start: int) -> None:
        """Take verdicts until the process has ended. Raises ``FAILURES``, then it may have."""
        after = None
        while True:
            news = await self._terminal.news(after)
            after, verdict = news.number, news.verdict
            if verdict is None or news.raw_start != raw_start or verdict.state is State.EXITED:
                return
            since = time.time() - (trio.current_time() - verdict.since)
            self._take(
                partial(self._standing.judged, raw_start=raw_start, verdict=verdict, since=since)
            )
            await trio.sleep(PAUSE_S)

    def _end(self, seq: int, exit_code: int | None, end: End | None) -> None:
        self._take(partial(self._standing.ended, seq=seq, exit_code=exit_code, end=end))
        self._ended.set()

    async def _take_hooks(self) -> None:
        """Pass the events of Claude Code's hooks on, for as long as this actor runs."""
        try:
            await in_thread_or_here(write_settings, self._directory)
            with hook_socket(self._directory) as receiver:
                while True:
                    hook = await next_hook(receiver)
                    with contextlib.suppress(*FAILURES):  # the program has just ended
                        await self._terminal.take_hook(hook)
        except OSError as error:
            log.warning("no hooks", agent=self._identity.handle, why=describe(error))


def program_outcome(wait: api.WaitAgent, info: api.AgentInfo) -> api.AgentOutcome | None:
    """Return how a wait for a terminal agent ends now; None if it is not over.

    Raises ``InvalidRequest`` for what only a driven session has.
    """
    assert info.program is not None
    if wait.message is not None or wait.turn is not None or wait.text is not None:
        raise InvalidRequest(
            f"{info.handle!r} is a terminal agent: it has no turns and no messages of its own; "
            "wait until it needs input, or for text in its terminal with aegis_term_wait, name "
            f"{info.program.terminal!r}"
        )
    ends, need = partial(api.AgentOutcome, handle=info.handle), info.program.need
    match info.state:
        case "closed":
            return ends(outcome="closed")
        case "exited":
            is_done = info.program.exit_code == 0 and not wait.blocked
            code = info.program.exit_code
            if is_done:
                return ends(outcome="done", reason=info.reason)
            how = "" if code is None else f" with exit code {code}"
            return ends(outcome="failed", reason=info.reason or f"its program has ended{how}")
        case "blocked":
            title = "" if info.blocked is None else info.blocked.title
            return ends(outcome="blocked", reason=title, blocked=info.blocked)
        case "needs_input" | "stale":
            if need is None or need.kind == "ready":
                return None if wait.blocked else ends(outcome="done")
            is_failed = need.kind == "failed"
            return ends(outcome="failed" if is_failed else "blocked", reason=need.text)
    return None


_WORD = re.compile(r"\s*(?:[A-Za-z_]\w*=[\w./:,@%+-]*\s+)*([\w./@%+-]+)(?=\s|\Z)")
"""The program of a command, if it is a plain word."""


def _program(now: st.AgentStanding, cmd: str) -> api.AgentProgram:
    verdict = now.verdict
    need = None if verdict is None else verdict.need
    return api.AgentProgram(
        terminal=now.terminal,
        command=cmd,
        source="" if verdict is None else verdict.source.value,
        need=None
        if need is None
        else api.AgentNeed(
            kind=need.kind, text=need.text, tool=need.tool, tool_input=need.tool_input
        ),
        launches=now.launches,
        exit_code=now.exit_code,
        progress=None if verdict is None else verdict.progress,
        title="" if verdict is None else verdict.title,
    )


T = TypeVar("T")


class UnreadCount:
    """The number of unread messages of ``address``; ``on_change`` is called when it has changed.

    They are kept and announced, never typed into the terminal: the program reads them with a tool.
    """

    def __init__(self, system: System, address: str, on_change: Callable[[], None]) -> None:
        self._system = system
        self._address = address
        self._on_change = on_change
        self.count = 0

    async def follow(self) -> None:
        """Count after each message that arrives, until cancelled."""
        place: InboxPlace | None = None
        while True:
            try:
                await self._count()  # after each turn of the loop: a message may have come before
                news = await self._ask(FollowInbox(handle=self._address, place=place, limit=1))
            except FAILURES:  # the inbox is being restarted
                await trio.sleep(COUNT_AGAIN_S)
            else:
                place = news.place

    async def look(self) -> None:
        """Count now: reading messages is no event. An inbox that does not answer is left out."""
        with trio.move_on_after(LOOK_S), contextlib.suppress(*FAILURES):
            await self._count()

    async def _count(self) -> None:
        read = ReadInbox(from_handle=self._address, limit=MAX_COUNTED)
        found: MessageList = await self._ask(read)
        if len(found.messages) != self.count:
            self.count = len(found.messages)
            self._on_change()

    async def _ask(self, request: Request[T]) -> T:
        inboxes = self._system.registry.find("service", "inboxes")
        if inboxes is None:
            raise Unavailable("the daemon is starting or stopping")
        reply: T = await inboxes.send_request(request).wait()
        return reply

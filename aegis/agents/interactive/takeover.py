"""``PersonsTerminal``: the shared terminal in which a person continues a conversation.

It runs the agent's own program, and returns once that has ended and no process of it is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
import trio

from actors import System, describe
from aegis.agents import faults
from aegis.agents.drivers.conversations.found import TakeoverTalk
from aegis.agents.drivers.tui import TuiPlan
from aegis.agents.interactive.terminal import ASK_S, FAILURES, ProgramTerminal
from aegis.agents.sessions.past import Takeover
from aegis.agents.sessions.status import SessionIdentity, takeover_terminal
from aegis.agents.sessions.steps import HandedBack
from aegis.errors import AegisError, AlreadyExists, Unavailable
from aegis.lifecycle.states import State
from aegis.limits import in_thread_or_here
from aegis.names import shorten
from aegis.processes.reaper import SHORT_ROUNDS, end_processes
from aegis.protocol.naming import name_key
from aegis.protocol.terminals import CloseTerminal, ListTerminals, TerminalInfo

log = structlog.get_logger("aegis.agents")

AGAIN_S = 0.5
"""Seconds after which what could not be done is tried again."""

PAUSE_S = 0.2
"""The shortest time between two looks at the program, which can change its state often."""

GRACE_S = 5.0
"""Seconds that the program has to end after SIGTERM; then its terminal is closed."""

UNKNOWN = (
    "the conversation {} was used meanwhile: if that was in the take-over, it is not in the "
    "transcript; agent conversations lists it"
)

OF_ANOTHER = (
    "the conversation {} is that of the session {!r}: it stays with that, and what was said in it "
    "is not in this transcript"
)

READS = 10
"""Tries to read what was said."""

STARTED_S = 2.0
"""A program that ends before this many seconds has not been started."""


class PersonsTerminal:
    """The terminal of a take-over of the session ``identity``.

    ``on_start`` is called once the program runs, ``plan`` describes it.
    """

    def __init__(
        self,
        system: System,
        identity: SessionIdentity,
        plan: TuiPlan,
        on_start: Callable[[], None],
    ) -> None:
        self._system = system
        self._plan = plan
        self._handle = identity.address
        self._on_start = on_start
        self._is_ending = trio.Event()
        self._is_ours = True
        self.has_started = False
        """Whether the program runs."""
        self.name = takeover_terminal(identity)
        self._terminal = ProgramTerminal(
            system=system, name=self.name, identity=identity, idle_s=5.0, stale_s=60.0
        )

    def end(self) -> None:
        """Have the program ended. Idempotent."""
        self._is_ending.set()

    def delete_secrets(self) -> None:
        """Delete the files that the program has read."""
        for each in (self._plan.script(), *self._plan.secrets):
            with contextlib.suppress(OSError):
                each.delete()

    async def run(self, takeover: Takeover, *, is_new: bool) -> HandedBack:
        """Open the terminal if it ``is_new``, wait for its end, and return what was said."""
        handed_back = None
        try:
            handed_back = await self._run(takeover, is_new=is_new)
        finally:
            if handed_back is None:
                with trio.CancelScope(shield=True):
                    await self._end_with_daemon()
        return handed_back

    async def _end_with_daemon(self) -> None:
        """End what the program has left, if its terminal is closed: the daemon stops.

        When the session alone has crashed, the program still runs; the next actor finds it.
        """
        terminal = self._system.registry.find("terminal", name_key(self.name))
        if self._is_ours and (terminal is None or terminal.is_stopped):
            await end_processes([], self._plan.cookies, SHORT_ROUNDS, self._plan.scan)

    async def _run(self, takeover: Takeover, *, is_new: bool) -> HandedBack:
        reason = printed = ""
        try:
            seq = await (self._open() if is_new else self._find())
            if seq is not None:
                self.has_started = True
                self._on_start()
                printed = await self._follow(seq)
        except FAILURES as error:
            reason = describe(error)
        await faults.TAKEOVER_END_BEFORE.reach(self._handle)
        await self._close()
        self.delete_secrets()
        await faults.TAKEOVER_READ_BEFORE.reach(self._handle)
        said, unread = await self._said(takeover, printed)
        reason = reason or unread
        await faults.TAKEOVER_BACK_BEFORE.reach(self._handle)
        return HandedBack(conversation=said.conversation, said=said.events, reason=reason)

    async def _said(self, takeover: Takeover, printed: str) -> tuple[TakeoverTalk, str]:
        """Return what was said, and why that is not known."""
        conversation = takeover.conversation
        # Some agents count their conversations by process: then others have one of the same id.
        others = {id_: by for id_, by in self._plan.others().items() if id_ != conversation}
        read = partial(self._plan.files.after, conversation, takeover.at, printed, {*others})
        reason = ""
        for _ in range(READS):
            try:
                talk = await in_thread_or_here(read)
                if talk.left_out:
                    return talk, OF_ANOTHER.format(talk.left_out, others[talk.left_out])
                return talk, UNKNOWN.format(talk.unknown) if talk.unknown else ""
            except AegisError as error:
                reason = f"what was said is not in the transcript: {error}"
            await trio.sleep(AGAIN_S)
        return TakeoverTalk(conversation=conversation), reason

    async def _open(self) -> int:
        """Start the program; return the seq of its command. Raises ``FAILURES``."""
        await faults.TAKEOVER_OPEN_BEFORE.reach(self._handle)
        if await self._listed() is not None or not await self._terminal.open():
            self._is_ours = False
            raise AlreadyExists(
                f"there is a terminal {self.name!r} already: close it first, with aegis-actors "
                f"term close {self.name}"
            )
        await faults.TAKEOVER_RUN_BEFORE.reach(self._handle)
        for each in (*self._plan.kept, *self._plan.secrets, self._plan.script()):
            each.write()
        record = await self._terminal.run(self._plan.command)
        await faults.TAKEOVER_RUN_AFTER.reach(self._handle)
        return record.seq

    async def _find(self) -> int | None:
        """Return the seq of the program that an earlier actor has started, if it still runs.

        After a kill of the daemon it does not: terminals are restored once its processes ended.
        """
        while True:
            try:
                listed = await self._listed()
            except FAILURES as error:
                log.info("terminals asked again", terminal=self.name, why=describe(error))
                await trio.sleep(AGAIN_S)
                continue
            running = None if listed is None else listed.running
            is_ours = running is not None and running.cmd == self._plan.command
            return running.seq if running is not None and is_ours else None

    async def _follow(self, seq: int) -> str:
        """Wait until the program has ended, or is to be ended; return what it has printed."""
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_on_order, seq, nursery.cancel_scope)
            await self._ended()
            nursery.cancel_scope.cancel()
        with contextlib.suppress(*FAILURES):
            record = await self._terminal.final_record(seq)
            if record is None:
                return ""
            is_early = trio.current_time() < began + STARTED_S and not self._is_ending.is_set()
            if record.exit and is_early:
                last = record.stdout.strip().rpartition("\n")[2]
                raise Unavailable(
                    f"{self._plan.agent} could not be started: it ended with exit code "
                    f"{record.exit}: {shorten(last)}"
                )
            return record.stdout
        return ""

    async def _ended(self) -> None:
        after = None
        while True:
            try:
                news = await self._terminal.news(after)
            except FAILURES:
                return  # the terminal is closed
            after, verdict = news.number, news.verdict
            if verdict is None or verdict.state is State.EXITED:
                return
            await trio.sleep(PAUSE_S)

    async def _end_on_order(self, seq: int, following: trio.CancelScope) -> None:
        await self._is_ending.wait()
        with contextlib.suppress(*FAILURES):  # it has just ended, or job control put it aside
            await self._terminal.signal("TERM", seq)
        await trio.sleep(GRACE_S)
        following.cancel()

    async def _close(self) -> None:
        """Close the terminal; return once no process of the take-over is left."""
        while True:
            left: list[Any] = []
            try:
                if self._is_ours and await self._listed() is not None:
                    close = CloseTerminal(name=self.name)
                    left += (await self._owner().ask(close, timeout=ASK_S)).leftover
            except FAILURES as error:
                left.append(describe(error))
            plan = self._plan
            left = left or await end_processes([], plan.cookies, scan=plan.scan)
            if not left:
                return
            log.error("processes of a take-over remain", processes=[*map(str, left)])
            await trio.sleep(AGAIN_S)

    async def _listed(self) -> TerminalInfo | None:
        found = (await self._owner().ask(ListTerminals(), timeout=ASK_S)).result
        key = name_key(self.name)
        return next((each for each in found if name_key(each.name) == key), None)

    def _owner(self) -> Any:
        found = self._system.registry.find("service", "terminals")
        if found is None:
            raise Unavailable("terminals are being started; try again")
        return found

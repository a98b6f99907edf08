"""``ProgramTerminal``: the shared terminal in which the program of an agent runs."""

from __future__ import annotations

import contextlib
import math
from typing import Any, TypeVar

import attrs
import trio

from actors import ActorError, Ref, System
from actors.messages import Request
from aegis.agents.sessions.status import SessionIdentity
from aegis.clock import utc_now
from aegis.errors import AegisError, AlreadyExists, NotFound, Unavailable
from aegis.lifecycle.feed import FollowProgram, ProgramNews, TakeHook
from aegis.lifecycle.hooks import Hook
from aegis.protocol.control import SignalTerminal
from aegis.protocol.feeds import FollowInbox
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import LOCAL_NODE, name_key
from aegis.protocol.output import WaitTerminal
from aegis.protocol.terminals import (
    CloseTerminal,
    CommandRecord,
    ListTerminals,
    ReadRecords,
    RunCommand,
    SendKeys,
    SpawnTerminal,
    Subscribe,
    TerminalInfo,
)

START_S = 60.0
"""Seconds that the terminal's shell, and then the command, may take to start."""

ASK_S = 30.0
"""Seconds that an actor of a terminal may take to answer; it answers far earlier."""

WAIT_S = 1.0
"""Seconds of one wait for the record of a command that has ended."""

LINE_S = 2.0
"""Seconds between two looks for a line that holds up a launch."""

MAX_LOOKED_AT = 100
"""Records in which that of the last launch is looked for: people can use the shell behind it."""

SEPARATOR = "printf '%s\\n' '──── launched again ────'"
"""The command between two launches."""

RESET = (
    r"printf '\033[?47l\033[?1000;1002;1003;1004;1006l\033[?2004l\033[?25h\033[m\n%s\n' "
    "'──── launched again ────'"
)
"""The same after a signal: it ends the modes that a program leaves on when it is killed."""

SIGNALLED = 128
"""A shell reports the death by signal n as this plus n."""

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class ProgramTerminal:
    """The terminal ``name`` of the agent ``identity``, in whose directory its shell starts.

    ``idle_s`` and ``stale_s`` are those of the life cycle. Each method raises ``AegisError`` or
    ``ActorError``.
    """

    system: System
    name: str
    identity: SessionIdentity
    idle_s: float
    stale_s: float

    async def open(self) -> bool:
        """Open the terminal and watch its commands; return whether it was not open before."""
        # The watch needs the shell's actor in the daemon's own process.
        spawn = SpawnTerminal(
            name=self.name, cwd=self.identity.cwd, node=LOCAL_NODE, from_handle=self.identity.handle
        )
        is_new = True
        try:
            await self._owner().ask(spawn, timeout=START_S)
        except AlreadyExists:
            is_new = False
        await self.news(None)
        return is_new

    async def introduce(self) -> None:
        """Open the agent's inbox, and subscribe its spawner to the terminal."""
        inboxes = self._find("service", "inboxes")
        await inboxes.ask(FollowInbox(handle=self.identity.address), timeout=ASK_S)
        spawner = self.identity.spawned_by
        handle = None if spawner == "human" else spawner
        await self._ask(Subscribe(name=self.name, from_handle=handle))

    async def run(self, cmd: str) -> CommandRecord:
        """Run a command; return its record once it has started."""
        run = RunCommand(
            name=self.name,
            cmd=cmd,
            timeout=START_S,
            until="started",
            from_handle=self.identity.handle,
        )
        return await self._ask(run, timeout_s=2 * START_S)

    async def clear_line(self) -> None:
        """Drop a line that was left unfinished at the shell's prompt.

        The terminal belongs to the agent: the shell is only there to run its program, and takes no
        command while a line is being typed.
        """
        listed = await self._listed()
        if listed is not None and listed.typing is not None and listed.state == "idle":
            await self.interrupt()

    async def keep_clear(self, until: trio.CancelScope) -> None:
        """Drop what is typed at the prompt, and not ended, from now on until ``until`` ends."""
        with until:
            while True:
                await trio.sleep(LINE_S)
                with contextlib.suppress(*FAILURES):
                    await self.clear_line()

    async def separate(self, exit_code: int | None) -> None:
        """Print a separator after a process that has ended with this exit code of a shell."""
        is_ended = exit_code is not None and exit_code < SIGNALLED
        cmd = SEPARATOR if is_ended else RESET
        run = RunCommand(name=self.name, cmd=cmd, timeout=ASK_S, from_handle=self.identity.handle)
        await self._ask(run, timeout_s=2 * ASK_S)

    async def news(self, after: int | None) -> ProgramNews:
        """Return the verdict about the newest command, once its number is not ``after``."""
        follow = FollowProgram(
            name=self.name, idle_s=self.idle_s, stale_s=self.stale_s, after=after
        )
        return await self._ask(follow, timeout_s=math.inf)

    async def take_hook(self, hook: Hook) -> None:
        """Pass a hook event on to the watch."""
        await self._ask(TakeHook(name=self.name, hook=hook))

    async def running(self) -> CommandRecord | None:
        """Return the record so far of the command that runs; None if none does."""
        outcome = await self._ask(WaitTerminal(name=self.name, timeout=0.01))
        record: CommandRecord | None = outcome.record
        return record if record is not None and record.end is None else None

    async def final_record(self, seq: int) -> CommandRecord | None:
        """Return the record of a command that has ended; None if it still runs."""
        with contextlib.suppress(NotFound, Unavailable, ActorError):
            wait = WaitTerminal(name=self.name, seq=seq, timeout=WAIT_S)
            record: CommandRecord | None = (await self._ask(wait)).record
            return record if record is not None and record.end is not None else None
        # It is closed, and its owner reads its ledger.
        found = await self._owner().ask(
            ReadRecords(name=self.name, since_seq=seq - 1), timeout=ASK_S
        )
        return next((each for each in found.result if each.seq == seq), None)

    async def last_record(self, cmd: str) -> CommandRecord | None:
        """Return the newest record of a command that has ended; None if there is none."""
        read = ReadRecords(name=self.name, last_n=MAX_LOOKED_AT)
        found = await self._owner().ask(read, timeout=ASK_S)
        return next((each for each in reversed(found.result) if each.cmd == cmd), None)

    async def signal(self, signal: str, seq: int) -> None:
        """Signal the program, if it is in the foreground."""
        await self._ask(SignalTerminal(name=self.name, signal=signal, seq=seq))

    async def interrupt(self) -> None:
        """Type Ctrl-C: a program that reads keys decides what it interrupts."""
        await self._ask(SendKeys(name=self.name, keys="\x03", from_handle=self.identity.handle))

    async def close(self) -> list[str]:
        """Close the terminal, and so end every process in it; return those that are left."""
        with contextlib.suppress(NotFound, Unavailable):
            closed = await self._owner().ask(CloseTerminal(name=self.name), timeout=ASK_S)
            return list(closed.leftover)
        return []

    async def wake(self, key: str, body: str) -> None:
        """Send a message to each subscriber."""
        listed = await self._listed()
        for handle in [] if listed is None else listed.subscribers:
            deliver = Deliver(
                handle=handle,
                id=f"needs:{key}/{handle}",
                sender=f"agent:{self.identity.handle}",
                body=body,
                timestamp=utc_now(),
            )
            await self._find("service", "inboxes").ask(deliver, timeout=ASK_S)

    async def _listed(self) -> TerminalInfo | None:
        found = await self._owner().ask(ListTerminals(), timeout=ASK_S)
        names = [each for each in found.result if name_key(each.name) == name_key(self.name)]
        return names[0] if names else None

    def _owner(self) -> Ref[Any]:
        return self._find("service", "terminals")

    async def _ask(self, request: Request[T], timeout_s: float = ASK_S) -> T:
        front = self._find("terminal", name_key(self.name))
        reply: T = await front.ask(request, timeout=timeout_s)
        return reply

    def _find(self, kind: str, name: str) -> Ref[Any]:
        found = self.system.registry.find(kind, name)
        if found is None or found.is_stopped:
            raise Unavailable(f"terminal {self.name!r} is not available")
        return found


FAILURES = (AegisError, ActorError)
"""The errors of all methods."""

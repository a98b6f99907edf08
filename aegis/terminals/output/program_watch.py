"""``ProgramWatch``: judges the state of the newest command on one terminal, once one asks for it.

Sequences count as they come. The text of the screen is compared
a few times per second, and more rarely where that takes long: so a flood of output costs a tenth of
the loop's time at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import trio

from actors import Reply
from aegis.errors import Busy
from aegis.lifecycle.events import (
    Event,
    Output,
    ProcessExited,
    ProcessStarted,
    Resized,
    TimerExpired,
    VerdictChanged,
)
from aegis.lifecycle.feed import FollowProgram, ProgramNews, TakeHook
from aegis.lifecycle.keys import KeyReader
from aegis.lifecycle.machine import LifeCycle
from aegis.lifecycle.screen_text import ScreenText
from aegis.lifecycle.tty_facts import TtyFact, tty_fact
from aegis.processes.input_wait import Foreground
from aegis.terminals import messages as msg
from aegis.terminals.parse.control_sequences import ControlSequence
from aegis.terminals.parse.statements import statement_of
from aegis.terminals.screen.emulator import Screenshot
from aegis.terminals.screen.live import LiveScreen

LOOK_S = 0.25
"""The shortest time between two comparisons of the screen, in seconds."""

PACES = (1.0, 1.16, 1.01, 1.82, 1.68, 1.7, 1.94)
"""The factors of the pauses, one after the other.

At equal pauses, a spinner whose period fits them is seen in the same two states, as a blink. With
these, searched for with all periods from 0.1 to 5 s, its third state is seen each three seconds.
"""

LONGEST_PAUSE_S = 2.0
SHARE = 10
"""The pause after a comparison is so many times as long as that took."""

MAX_FOLLOWERS = 16

StartSoon = Callable[..., object]


class ProgramWatch:
    """The life cycle of the commands on one terminal; ``start_soon`` starts helper tasks.

    ``is_running``: a watched command runs, so output and keys are evidence.
    """

    def __init__(self, screen: LiveScreen, start_soon: StartSoon) -> None:
        self._screen = screen
        self._start_soon = start_soon
        self._cycle: LifeCycle | None = None
        self._raw_start: int | None = None
        self.is_running = False
        self._number = 0
        self._followers: list[tuple[int, Reply[ProgramNews]]] = []
        self._keys, self._text = KeyReader(), ScreenText()
        self._looks = 0
        self._is_looking = self._has_printed = False
        self._fact: TtyFact | None = None
        self._timer: trio.CancelScope | None = None

    # Requests.

    def follow(self, request: FollowProgram, reply: Reply[ProgramNews]) -> None:
        """Answer once the verdict has another number; watch from now on. Raises ``Busy``."""
        if self._cycle is None:
            self._cycle = LifeCycle(idle_s=request.idle_s, stale_s=request.stale_s)
        if request.after != self._number:
            reply.send(self._news())
            return
        self._followers = [each for each in self._followers if not each[1].is_settled]
        if len(self._followers) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} requests follow the program of {request.name!r} already")
        self._followers.append((request.after, reply))

    def take_hook(self, request: TakeHook, reply: Reply[bool]) -> None:
        """Take a hook event, if a watched command runs."""
        self._give(request.hook)
        reply.send(self.is_running)

    def _news(self) -> ProgramNews:
        verdict = None if self._cycle is None or self._raw_start is None else self._cycle.verdict
        return ProgramNews(number=self._number, raw_start=self._raw_start, verdict=verdict)

    # Evidence.

    def output(self, sequences: Iterable[ControlSequence]) -> None:
        """Note output of the running command, in which ``sequences`` end."""
        for sequence in sequences:
            statement = statement_of(sequence)
            if statement is not None:
                self._give(statement)
        self._has_printed, self._fact = True, None
        if not self._is_looking:
            self._is_looking = True
            self._give(Output("none"))  # its effect on the text follows
            self._start_soon(self._look)

    def typed(self, keys: bytes) -> None:
        """Note keys of a client for the running command."""
        self._give(self._keys.read(keys))

    def resized(self) -> None:
        """Note a new size of the window."""
        self._give(Resized())

    def checked(self, front: Foreground | None, quiet_s: float) -> None:
        """Note the result of a check of the tty, after ``quiet_s`` seconds without output."""
        fact = tty_fact(front, quiet_s)
        if self._is_looking:
            self._fact = fact  # the output before it is not compared yet, and would refute it
        else:
            self._give(fact)

    def handle_news(self, news: object) -> None:
        """Take a message that was sent to the front, about a command or the shell."""
        match news:
            case msg.CommandStarted(raw_start=raw_start) if self._cycle is not None:
                self._begin(raw_start)
            case msg.CommandEnded() | msg.ShellEnded():
                self._end()

    def _begin(self, raw_start: int) -> None:
        self._end()  # the end of the one before was lost
        self._raw_start, self.is_running = raw_start, True
        self._keys, self._text = KeyReader(), ScreenText()
        self._give(ProcessStarted())

    def _end(self) -> None:
        self._give(ProcessExited())
        self.is_running = False

    # The text of the screen.

    async def _look(self) -> None:
        pause_s = LOOK_S
        while self._has_printed and self.is_running:
            await trio.sleep(pause_s * PACES[self._looks % len(PACES)])
            self._looks += 1
            self._has_printed = False
            began = trio.current_time()
            shot = await self._screenshot()
            changed = self._text.update(shot.lines, reads_keys=self._screen.modes.now.is_pasting)
            self._give(Output(changed))
            fact, self._fact = self._fact, None
            if fact is not None:
                self._give(fact)
            took_s = trio.current_time() - began
            pause_s = max(LOOK_S, min(SHARE * took_s, LONGEST_PAUSE_S))
        self._is_looking = False

    async def _screenshot(self) -> Screenshot:
        shots: list[Screenshot] = []
        drawn = trio.Event()

        def take(shot: Screenshot) -> None:
            shots.append(shot)
            drawn.set()

        self._screen.look(take)
        await drawn.wait()
        return shots[0]

    # The machine.

    def _give(self, event: Event) -> None:
        if self._cycle is not None and self.is_running:
            self._handle(self._cycle, event)

    def _handle(self, cycle: LifeCycle, event: Event) -> None:
        is_changed = False
        for action in cycle.handle(event, trio.current_time()):
            if isinstance(action, VerdictChanged):
                is_changed = True
            else:
                self._wake_after(action.after_s)
        if is_changed:
            self._number += 1
            waiting, self._followers = self._followers, []
            for _, reply in waiting:
                reply.send(self._news())

    def _wake_after(self, seconds: float) -> None:
        deadline = trio.current_time() + seconds
        if self._timer is not None:
            self._timer.deadline = deadline
            return
        self._timer = trio.CancelScope(deadline=deadline)
        self._start_soon(self._wait, self._timer)

    async def _wait(self, timer: trio.CancelScope) -> None:
        """Sleep until the timer's deadline, which may move; then ask the machine again."""
        with timer:
            await trio.sleep(math.inf)
        self._timer = None
        if self._cycle is not None:  # the machine has to know, also after the end of the command
            self._handle(self._cycle, TimerExpired())

"""Keys that were pressed too early: they are kept in order, and carried out once they can act.

A person types ahead: Alt-1 before the daemon's list has arrived, a command before its tab is shown,
a name, Enter and a command in one read. Each key would act on what has the focus at that moment,
and be lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from textual.app import App
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer
from textual.widgets import Input

MAX_HELD = 16 * 1024
"""Keys and pastes that are kept; more are dropped with a bell."""

LOOK_S = 0.25
"""How often it is checked that the queue for which keys wait can still answer."""

MAX_LOOKS = 20
"""Checks, not seconds: on a busy machine time passes in which no message could be handled."""

NEVER_HELD = "ctrl+q"
"""The way out: it works at once."""


class Hold:
    """A reason to keep keys, from its creation until ``PatientApp.release_keys``."""


class EffectHold(Hold):
    """Keys wait for the effect of the one before, until the queues ``pumps`` have been followed."""

    def __init__(self, pumps: Iterator[MessagePump]) -> None:
        self.pumps = pumps
        self.pump: MessagePump | None = None
        self.step = 0
        self.looks = 0
        self.timer: Timer | None = None


class PatientApp(App[None]):
    """An app whose keys wait while there is a ``Hold``."""

    def __init__(self) -> None:
        super().__init__()
        self._holds: set[Hold] = set()
        self._held: deque[Message] = deque()

    def hold_keys(self, seconds: float | None = None) -> Hold:
        """Keep keys until the hold is released, for ``seconds`` at most."""
        hold = Hold()
        self._holds.add(hold)
        if seconds is not None:
            self.set_timer(seconds, partial(self.release_keys, hold))
        return hold

    def release_keys(self, hold: Hold) -> None:
        """End a hold; after the last one the kept keys are carried out. Idempotent."""
        self._holds.discard(hold)
        if self._held and not self._holds:
            # Behind the callbacks that give the focus to what has just been opened.
            self.call_later(self._carry_out)

    @property
    def holds_keys(self) -> bool:
        """Whether a key that is pressed now would wait."""
        return bool(self._holds or self._held)

    async def _carry_out(self) -> None:
        while self._held and not self._holds:  # one of them may open something, and hold the rest
            await self._act(self._held.popleft())

    async def on_event(self, event: Event) -> None:
        is_typed = isinstance(event, Key | Paste) and not event.is_forwarded
        if not is_typed or (isinstance(event, Key) and event.key == NEVER_HELD):
            await super().on_event(event)
        else:
            await self.take(event)

    async def take(self, message: Message) -> None:
        """Carry out what was typed, or keep it while keys wait."""
        if not self.holds_keys:
            await self._act(message)
        elif len(self._held) < MAX_HELD:
            self._held.append(message)
        else:
            self.bell()

    async def _act(self, message: Message) -> None:
        focused = self.focused
        await self.act_on(message)
        if not isinstance(message, Key):
            return
        if message.is_printable and isinstance(focused, Input) and focused is self.focused:
            return  # a character of a text moves no focus
        # Enter in a dialog closes it only once the messages of its widgets have been handled. A key
        # goes from the widget up to the app, whose binding for it sends a message to the widget,
        # and that goes up too: the queues on this way are followed twice, each to what a message in
        # it has added.
        way: Sequence[MessagePump] = (
            [self.screen, self] if focused is None else focused.ancestors_with_self
        )
        settling = EffectHold(iter([each for each in way for _ in range(2)] * 2))
        self._holds.add(settling)
        settling.timer = self.set_interval(LOOK_S, partial(self._look, settling))
        self._settle(settling, settling.step)

    def _settle(self, settling: EffectHold, step: int) -> None:
        """Follow the next queue once that of ``step`` has been followed."""
        if step != settling.step:
            return  # it was given up
        for pump in settling.pumps:
            settling.step += 1
            settling.pump, settling.looks = pump, 0
            if pump.call_later(self._settle, settling, settling.step):
                return
        settling.step += 1
        if settling.timer is not None:
            settling.timer.stop()
        self.release_keys(settling)

    def _look(self, settling: EffectHold) -> None:
        """Give a queue up that does not answer: its widget was removed, or is stuck."""
        settling.looks += 1
        is_gone = settling.pump is not None and not settling.pump.is_running
        if is_gone or settling.looks > MAX_LOOKS:
            self._settle(settling, settling.step)

    async def act_on(self, message: Message) -> None:
        """Carry out what was typed."""
        if isinstance(message, Event):
            await super().on_event(message)

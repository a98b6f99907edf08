"""A life cycle with a clock that runs its timer, and short names for its events."""

from __future__ import annotations

import math

from aegis.lifecycle import events as ev
from aegis.lifecycle.hooks import Hook, read_hook
from aegis.lifecycle.keys import KeyInput, KeyReader
from aegis.lifecycle.machine import LifeCycle
from aegis.lifecycle.notices import Notice, TitleChanged, read_notice, read_title
from aegis.lifecycle.reports import Report, read_report
from aegis.lifecycle.states import Evidence, Need, State, Verdict
from aegis.lifecycle.tty_facts import TtyFact

TEXT = ev.Output("text")
SMALL = ev.Output("small")
TURN = ev.Output("turn")
BLINK = ev.Output("none")
BYTES = ev.Output()
BELL = Notice()

Shown = tuple[State, Evidence]


def keys(data: bytes) -> KeyInput:
    return KeyReader().read(data)


def report(content: str) -> Report:
    found = read_report(content.encode())
    assert found is not None
    return found


def title(text: str) -> TitleChanged:
    return read_title(text.encode())


def hook(name: str, fields: str = "", session: str = "s1") -> Hook:
    more = f", {fields}" if fields else ""
    found = read_hook(f'{{"hook_event_name": "{name}", "session_id": "{session}"{more}}}'.encode())
    assert found is not None
    return found


def osc(number: int, content: str) -> ev.Event | None:
    """Return the event of an OSC sequence; None if there is none."""
    if number == 7501:
        return read_report(content.encode())
    if number in (0, 2):
        return title(content)
    return read_notice(number, content.encode())


LINE_READ = TtyFact(Need(kind="input", text="sh reads a line"))
NO_READ = TtyFact(None)
IS_BUSY = TtyFact(None, is_busy=True)


class Player:
    """Plays events at their moments; the timer of the machine runs in between."""

    def __init__(self, idle_s: float = 5.0, stale_s: float = 60.0) -> None:
        self.cycle = LifeCycle(idle_s=idle_s, stale_s=stale_s)
        self.now = 0.0
        self.wake_at = math.inf
        self.verdicts: list[Verdict] = []
        self.wakes = 0
        self.give(ev.ProcessStarted())

    @property
    def verdict(self) -> Verdict:
        return self.cycle.verdict

    @property
    def shown(self) -> Shown:
        return self.verdict.state, self.verdict.source

    def give(self, *events: ev.Event) -> Verdict:
        for event in events:
            for action in self.cycle.handle(event, self.now):
                if isinstance(action, ev.VerdictChanged):
                    self.verdicts.append(action.verdict)
                else:
                    self.wakes += 1
                    self.wake_at = self.now + action.after_s
        return self.verdict

    def at(self, moment: float, *events: ev.Event) -> Verdict:
        """Let the time pass until ``moment``; then give it the events."""
        while self.wake_at <= moment:
            self.now, self.wake_at = max(self.now, self.wake_at), math.inf
            self.give(ev.TimerExpired())
        self.now = moment
        return self.give(*events)


def given(*events: ev.Event, at: float = 1.0) -> Player:
    """Return a player whose program printed text, and then the events at once."""
    player = Player()
    player.at(0.5, TEXT)
    player.at(at, *events)
    return player

"""Plays a recorded program to the life cycle, and compares the verdicts with the true states."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator

import attrs

from aegis.lifecycle import events as ev
from aegis.lifecycle.hooks import read_hook
from aegis.lifecycle.keys import KeyReader
from aegis.lifecycle.screen_text import ScreenText
from aegis.lifecycle.states import State, Verdict
from aegis.lifecycle.tty_facts import tty_fact
from aegis.processes.input_wait import CHECK_AFTER_S, Foreground, next_check_after
from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.parse.statements import statement_of
from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.screen.modes import ModeWatch
from tests.aegis.lifecycle.playing import Player
from tests.agents_real.tui import recording as rec

SETTLED_S = 0.5
"""A verdict may follow its evidence by so much; shorter differences are not counted."""


@attrs.frozen(kw_only=True)
class Span:
    """A time during which the verdict differed from the true state; ``verdict`` is the last one."""

    begin: float
    end: float
    truth: rec.Truth
    verdict: Verdict


@attrs.frozen(kw_only=True)
class Played:
    """A recording as it was judged: the wrong verdicts, and all that were reported."""

    seconds: float
    wrong: tuple[Span, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def wrong_s(self) -> float:
        return sum(each.end - each.begin for each in self.wrong)


class _Stage:
    """The terminal, the classifiers and the life cycle that a recording is played to.

    ``without`` names the events that are left out; with ``screen``, no output is classified.
    """

    def __init__(self, about: rec.About, without: frozenset[str]) -> None:
        self._without = without
        self._emulator = new_emulator(about.rows, about.cols)
        self._text, self._keys = ScreenText(), KeyReader()
        self._scanner, self._modes = SequenceScanner(), ModeWatch()
        self._front: Foreground | None = None
        self._quiet_since, self._check_at = 0.0, CHECK_AFTER_S[0]
        self.player = Player()
        self.judged: list[tuple[float, Verdict]] = [(0.0, self.player.verdict)]

    def let_pass(self, moment: float) -> None:
        """Let the timer and the checks of the tty run until ``moment``."""
        while (due := min(self.player.wake_at, self._check_at)) <= moment:
            if due == self._check_at:
                quiet_s = due - self._quiet_since
                self._give(due, tty_fact(self._front, quiet_s))
                self._check_at = due + next_check_after(quiet_s)
            else:
                self.player.at(due)
                self.judged.append((due, self.player.verdict))

    def play(self, event: rec.Event) -> None:
        match event:
            case rec.Output(data=data):
                self._emulator.feed(data)
                sequences = self._scanner.feed(data, 0)
                for each in sequences:
                    self._modes.follow(each)
                lines, reads_keys = self._emulator.screen().lines, self._modes.now.is_pasting
                changed = self._text.update(lines, reads_keys=reads_keys)
                stated = [each for each in map(statement_of, sequences) if each is not None]
                output = ev.Output("unknown" if "screen" in self._without else changed)
                self._give(event.t, *stated, output)
                self._begin_quiet(event.t)
            case rec.Keys(data=data):
                self._give(event.t, self._keys.read(data))
                self._begin_quiet(event.t)
            case rec.Resized(rows=rows, cols=cols):
                self._emulator.resize(rows, cols)
                self._text.update(self._emulator.screen().lines)
                self._give(event.t, ev.Resized())
            case rec.TtySample(front=front):
                self._front = front
            case rec.Hook(event=fields):
                hook = read_hook(json.dumps(dict(fields)).encode())
                assert hook is not None
                self._give(event.t, hook)
            case rec.Exited():
                self._give(event.t, ev.ProcessExited())

    def _begin_quiet(self, now: float) -> None:
        self._quiet_since, self._check_at = now, now + CHECK_AFTER_S[0]

    def _give(self, moment: float, *events: ev.Event) -> None:
        for each in events:
            if type(each).__name__ not in self._without:
                self.player.at(moment, each)
                self.judged.append((moment, self.player.verdict))


def play(recording: rec.Recording, without: frozenset[str] = frozenset()) -> Played:
    """Play a recording; compare the verdict with the true state at each moment."""
    stage = _Stage(recording.about, without)
    for event in recording.events:
        stage.let_pass(event.t)
        stage.play(event)
    return Played(
        seconds=recording.events[-1].t,
        wrong=tuple(_wrong(stage.judged, recording)),
        verdicts=tuple(stage.player.verdicts),
    )


_SAME = {
    "working": (State.STARTING, State.RUNNING),
    "needs_input": (State.NEEDS_INPUT, State.STALE),
    "exited": (State.EXITED,),
}


def _wrong(judged: list[tuple[float, Verdict]], recording: rec.Recording) -> Iterator[Span]:
    """Yield the spans of more than ``SETTLED_S`` seconds in which verdict and truth differ."""
    ends = [each.t for each in recording.truths()[1:]] + [recording.events[-1].t]
    for truth, end in zip(recording.truths(), ends, strict=True):
        before = [verdict for at, verdict in judged if at <= truth.t][-1]
        here = [(at, verdict) for at, verdict in judged if truth.t < at < end]
        pairs_of = itertools.pairwise([(truth.t, before), *here, (end, before)])
        right = _SAME[truth.state]
        for is_right, group in itertools.groupby(pairs_of, _is_in(right)):
            pairs = list(group)
            begin, stop = pairs[0][0][0], pairs[-1][1][0]
            if not is_right and stop - begin > SETTLED_S:
                yield Span(begin=begin, end=stop, truth=truth, verdict=pairs[-1][0][1])


def _is_in(states: tuple[State, ...]) -> Callable[[tuple[tuple[float, Verdict], object]], bool]:
    return lambda pair: pair[0][1].state in states

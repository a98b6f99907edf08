"""An independent statement of the rules: the verdict from the whole history, without state.

``judge`` looks back through all events for each question, and knows nothing of how the machine
keeps its evidence. Left out: the texts of needs, hook sessions, and the time of ``stale``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from aegis.lifecycle import events as ev
from aegis.lifecycle.hooks import Hook
from aegis.lifecycle.notices import Notice, ProgressNotice, TitleChanged
from aegis.lifecycle.reports import Report
from aegis.lifecycle.states import Evidence, State
from aegis.lifecycle.tty_facts import TtyFact

History = Sequence[tuple[float, ev.Event]]
Shown = tuple[State, Evidence]
Is = Callable[[ev.Event], bool]


@attrs.frozen
class Model:
    """The rules for these times; only for histories that begin with ``ProcessStarted`` and have no
    keys, since the effect of a key depends on the verdict before it."""

    idle_s: float
    settle_s: float

    def judge(self, history: History, now: float) -> Shown:
        if _last(history, ev.ProcessExited):
            return State.EXITED, Evidence.EXIT
        for source, works in self._claims(history, now):
            return (State.RUNNING if works else State.NEEDS_INPUT), source
        activity = self._activity(history)
        if activity is None and now < history[0][0] + self.idle_s:
            return State.STARTING, Evidence.START
        if activity is not None and now < activity[0] + self.idle_s:
            return State.RUNNING, activity[1]
        return State.NEEDS_INPUT, Evidence.SILENCE

    def _claims(self, history: History, now: float) -> list[tuple[Evidence, bool]]:
        """Return the claims in force, the strongest first, and whether each is of work."""
        flows = now < max([history[0][0], *self._painted(history)]) + self.idle_s
        found = []
        for source, statement in (
            (Evidence.REPORT, self._report(history)),
            (Evidence.HOOK, self._hook(history)),
            (Evidence.TITLE, self._title(history)),
            (Evidence.NOTICE, self._notice(history)),
            (Evidence.PROGRESS, self._progress(history)),
            (Evidence.TTY, self._tty(history)),
        ):
            if statement is None:
                continue
            at, works = statement
            is_fresh = flows or now < at + self.idle_s
            if not works or source in (Evidence.REPORT, Evidence.TTY) or is_fresh:
                found.append((source, works))
        return found

    def _report(self, history: History) -> tuple[float, bool] | None:
        roots = [
            (index, at, event)
            for index, (at, event) in enumerate(history)
            if isinstance(event, Report) and not event.id
        ]
        if not roots:
            return None
        index, at, event = roots[-1]
        later = [type(each) for _, each in history[index + 1 :]]
        is_work = event.state in ("working", "blocked")
        if (
            event.state == "clear"
            or ev.TerminalReset in later
            or (is_work and ev.PromptBegun in later)
        ):
            return None
        return at, event.state == "working"

    def _hook(self, history: History) -> tuple[float, bool] | None:
        found: tuple[float, Hook] | None = None
        for at, event in history:
            if isinstance(event, ev.PromptBegun | ev.TerminalReset):
                found = None
            if not isinstance(event, Hook) or event.kind == "other":
                continue
            asked = "" if found is None or found[1].need is None else found[1].need.tool
            is_other = event.kind == "working" and event.tool not in ("", asked)
            is_less = event.kind == "reminds" and event.need and event.need.kind != "ready"
            if not asked or not (is_other or is_less):
                found = None if event.kind == "ends" else (at, event)
        return None if found is None else (found[0], found[1].need is None)

    def _title(self, history: History) -> tuple[float, bool] | None:
        last = _last(history, TitleChanged, ev.PromptBegun, ev.TerminalReset)
        if last is None or not isinstance(last[1], TitleChanged) or last[1].kind is None:
            return None
        return last[0], last[1].kind == "working"

    def _notice(self, history: History) -> tuple[float, bool] | None:
        notices = [
            (index, at)
            for index, (at, event) in enumerate(history)
            if isinstance(event, Notice)
            and (event.text or not self._is_settling(history[: index + 1], at))
        ]
        if not notices:
            return None
        index, at = notices[-1]
        later = history[index + 1 :]
        refuted = any(
            isinstance(event, ev.PromptBegun | ev.TerminalReset)
            or (isinstance(event, ProgressNotice) and event.in_progress)
            for _, event in later
        )
        texts = [moment for moment in self._texts(history) if moment >= at + self.settle_s]
        return None if refuted or texts else (at, False)

    def _progress(self, history: History) -> tuple[float, bool] | None:
        last = _last(history, ProgressNotice, ev.PromptBegun, ev.TerminalReset)
        if last is None or not isinstance(last[1], ProgressNotice) or not last[1].in_progress:
            return None
        return last[0], True

    def _tty(self, history: History) -> tuple[float, bool] | None:
        facts = [index for index, (_, event) in enumerate(history) if isinstance(event, TtyFact)]
        if not facts:
            return None
        at, fact = history[facts[-1]]
        assert isinstance(fact, TtyFact)
        # That it is busy was seen before all later output, whatever that shows.
        refuting = ("text", "unknown", "none") if fact.is_busy else ("text", "unknown")
        later = self._counted(history, *refuting, after=facts[-1])
        says_nothing = fact.need is None and not fact.is_busy
        return None if says_nothing or later else (at, fact.need is None)

    def _activity(self, history: History) -> tuple[float, Evidence] | None:
        found: list[tuple[int, float, Evidence]] = []
        for index, (at, event) in enumerate(history):
            is_fact = isinstance(event, TtyFact) and event == TtyFact(None)
            if is_fact and self._tty(history[:index]):
                found.append((index, at, Evidence.TTY))
        for index, at in self._counted(history, "none"):
            claim = self._tty(history[:index])
            if claim is not None and claim[1]:
                found.append((index, at, Evidence.TTY))
        for index, at in self._counted(history, "text"):
            found.append((index, at, Evidence.SCREEN))
        for index, at in self._counted(history, "unknown"):
            found.append((index, at, Evidence.OUTPUT))
        first = self._counted(history, "text", "unknown", "none")[:1]
        if first and not any(index < first[0][0] for index, _, _ in found):
            found.append((*first[0], Evidence.OUTPUT))
        if not found:
            return None
        # The first output can be in the list twice: then its text counts.
        _, at, source = max(found, key=lambda each: (each[0], each[2] is not Evidence.OUTPUT))
        return at, source

    def _painted(self, history: History) -> list[float]:
        return [at for _, at in self._counted(history, "text", "unknown", "none")]

    def _texts(self, history: History) -> list[float]:
        return [at for _, at in self._counted(history, "text")]

    def _counted(self, history: History, *changes: str, after: int = -1) -> list[tuple[int, float]]:
        """Return the outputs with one of the effects that are no repaint, with their places."""
        return [
            (index, at)
            for index, (at, event) in enumerate(history)
            if index > after
            and isinstance(event, ev.Output)
            and event.change in changes
            and not self._is_settling(history[: index + 1], at)
        ]

    def _is_settling(self, history: History, now: float) -> bool:
        last = _last(history, ev.Resized)
        return last is not None and now < last[0] + self.settle_s


def _last(history: History, *kinds: type[ev.Event]) -> tuple[float, ev.Event] | None:
    return next(((at, event) for at, event in reversed(history) if isinstance(event, kinds)), None)

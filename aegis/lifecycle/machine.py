"""The machine of a terminal agent's life cycle: evidence in, verdicts out. Pure.

    starting → running → needs_input → stale        any → exited, and starting again by a restart

``handle(event, now)`` returns the actions to carry out. A program can change its verdict with each
sequence that it writes: limit the rate at which verdicts are published. Rules:

- The strongest claim in force decides (``Claims``). Without one, the last activity does: a change
  of the screen's text, output of unknown effect, or a key that answered a prompt. It means
  ``running`` for the idle time, then ``needs_input``.
- Echo of keys, and the repaint after a resize, are no output.
- ``needs_input`` becomes ``stale`` after the stale time, counted from its begin. Another question
  begins it anew. A claim that holds against output holds in ``stale`` too.
- Only a restart ends ``exited``, with none of the old evidence.

Moments are seconds of one clock that never goes back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from aegis.lifecycle import events as ev
from aegis.lifecycle.hooks import Hook, HookSession
from aegis.lifecycle.keys import KeyInput
from aegis.lifecycle.notices import Notice, ProgressNotice, TitleChanged
from aegis.lifecycle.reports import Report
from aegis.lifecycle.screen_text import Change
from aegis.lifecycle.states import Evidence, Need, State, Verdict
from aegis.lifecycle.tty_facts import TtyFact

IDLE_S = 5.0
STALE_S = 60.0

_WAITING = (State.NEEDS_INPUT, State.STALE)
_UNKNOWN_NEED = Need(kind="input")

BY_STRENGTH = (
    Evidence.REPORT,
    Evidence.HOOK,
    Evidence.TITLE,
    Evidence.NOTICE,
    Evidence.PROGRESS,
    Evidence.TTY,
)

SETTLE_S = 1.0
"""Seconds for which output counts as echo after a key, as repaint after a resize, and as part of
the prompt after a notification; less if the idle time is short."""

_LASTING = frozenset({Evidence.REPORT, Evidence.TITLE})
"""Sources whose claim is true until the program changes it."""

_LAPSING = frozenset({Evidence.HOOK, Evidence.TITLE, Evidence.PROGRESS})
"""Sources whose claim of work is in force only while bytes flow."""

_VAGUE = frozenset({Evidence.TITLE, Evidence.NOTICE, Evidence.TTY})
"""Sources that do not say for sure what kind of input is needed."""


@attrs.frozen(kw_only=True)
class Statement:
    """A statement of ``source`` at the moment ``at``; without ``need`` the program works.

    ``answered_at`` is the moment of the last key that may have answered it.
    """

    source: Evidence
    at: float
    need: Need | None
    answered_at: float | None = None


class Claims:
    """The last claim of each source; ``idle_s`` is the idle time.

    A claim says that the program works, or what it needs: it is the last statement of its source.
    The strongest claim in force decides.

    | source, the strongest first | a claim that it works | a claim that it needs input |
    |---|---|---|
    | report | until it is replaced or cleared | the same |
    | hook | while bytes flow; an interrupt ends it | until the next hook; an answer ends it |
    | title | while bytes flow | until the next title |
    | notification | | until the text changes, progress is reported, or an answer |
    | progress | while bytes flow, until it is removed | |
    | tty | until output or the next check | until output, the next check, or an answer |

    - "While bytes flow": an agent at work paints all the time, so a claim without bytes for the
      idle time is outdated: its program was killed, or an event is missing. Reports are exempt:
      their protocol requires no heartbeat.
    - An answer (keys) suspends a report or title that needs input, since it is true until the
      program changes it: with the idle time over and nothing else known, it is in force again. A
      change of the screen's text after the answer ends it: the program has gone on without a new
      report. Claims of other sources are events of the past, which an answer ends at once.

    ``painted_at`` is the moment of the last bytes of output that were no echo and no repaint.
    """

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self.settle_s = min(SETTLE_S, idle_s / 2)
        self._claims: dict[Evidence, Statement] = {}
        self.painted_at = 0.0

    def clear(self, now: float) -> None:
        """Drop all claims: another program is started."""
        self._claims.clear()
        self.painted_at = now

    def put(self, source: Evidence, need: Need | None, now: float) -> None:
        """Replace the claim of ``source``."""
        old = self._claims.get(source)
        answered_at = None if old is None or old.need != need else old.answered_at
        # The same need again, just after the answer, was sent before the program read the key.
        if answered_at is None or now >= answered_at + self.settle_s:
            self._claims[source] = Statement(source=source, at=now, need=need)

    def drop(self, *sources: Evidence) -> None:
        """Drop the claims of these sources."""
        for source in sources:
            self._claims.pop(source, None)

    def of(self, source: Evidence) -> Statement | None:
        """Return the claim of ``source``, in force or not."""
        return self._claims.get(source)

    def answer(self, keys: KeyInput, now: float) -> bool:
        """End or suspend the needs that ``keys`` answer; return whether the prompt is answered."""
        hook = self._claims.get(Evidence.HOOK)
        if keys.interrupts and hook is not None and hook.need is None:
            self.drop(Evidence.HOOK)
        decided = self.deciding(now)
        prompt = None if decided is None or decided.need is None else decided
        for claim in list(self._claims.values()):
            # A weaker need is about the same prompt as the one that decides.
            if claim.need is not None and _answers(keys, prompt or claim):
                self._end_need(claim, claim.need, keys, now)
        return keys.is_answer if prompt is None else _answers(keys, prompt)

    def _end_need(self, claim: Statement, need: Need, keys: KeyInput, now: float) -> None:
        if claim.source not in _LASTING:
            self.drop(claim.source)
        elif not (keys.interrupts and need.takes_line):
            # Escape is no order to a program that takes one: such a claim holds.
            self._claims[claim.source] = attrs.evolve(claim, answered_at=now)

    def text_changed(self, now: float, *, is_certain: bool) -> None:
        """End the claims that new text refutes. ``is_certain``: it is more than a blink."""
        self.drop(Evidence.TTY)
        for claim in list(self._claims.values()):
            is_past = claim.source is Evidence.NOTICE and now >= claim.at + self.settle_s
            if is_certain and (is_past or claim.answered_at is not None):
                self.drop(claim.source)

    def deciding(self, now: float) -> Statement | None:
        """Return the strongest claim in force, with the fullest text of its need."""
        claim = next(self._in_force(now), None)
        if claim is None or claim.need is None:
            return claim
        weaker = (each for each in self._in_force(now) if each is not claim)
        need = claim.need
        for each in weaker:
            if each.need is not None:
                need = _completed(need, each.need, is_vague=claim.source in _VAGUE)
        return attrs.evolve(claim, need=need)

    def _in_force(self, now: float) -> Iterator[Statement]:
        for source in BY_STRENGTH:
            claim = self._claims.get(source)
            if claim is not None and self._is_in_force(claim, now):
                yield claim

    def _is_in_force(self, claim: Statement, now: float) -> bool:
        changes_at = self._changes_at(claim)
        if changes_at is None:
            return True
        is_over = now >= changes_at
        return is_over if claim.answered_at is not None else not is_over

    def _changes_at(self, claim: Statement) -> float | None:
        """Return the moment at which the claim lapses, or is in force again; None if never."""
        if claim.answered_at is not None:
            return claim.answered_at + self._idle_s
        if claim.need is None and claim.source in _LAPSING:
            return max(claim.at, self.painted_at) + self._idle_s
        return None

    def changes(self, now: float) -> Iterator[float]:
        """Yield the moments after ``now`` at which a claim changes by time alone."""
        for claim in self._claims.values():
            changes_at = self._changes_at(claim)
            if changes_at is not None and changes_at > now:
                yield changes_at


def _answers(keys: KeyInput, claim: Statement) -> bool:
    takes_line = claim.source is Evidence.TTY or (claim.need is not None and claim.need.takes_line)
    return keys.ends_line if takes_line else keys.is_answer


def _completed(need: Need, other: Need, *, is_vague: bool) -> Need:
    """Return ``need`` with what ``other``, a need by a weaker source, adds to it."""
    if not need.text and other.text and (is_vague or need.kind in (other.kind, "input")):
        need = attrs.evolve(need, kind=other.kind, text=other.text)
    if need.kind == other.kind and other.tool:
        need = attrs.evolve(need, tool=other.tool, tool_input=other.tool_input)
    return need


class LifeCycle:
    """The life cycle of one agent; without a process, so ``exited``, until ``ProcessStarted``.

    ``idle_s`` and ``stale_s`` are the idle and the stale time. Readable: the ``verdict``.
    """

    def __init__(self, *, idle_s: float = IDLE_S, stale_s: float = STALE_S) -> None:
        self._idle_s, self._stale_s = idle_s, stale_s
        self.verdict = Verdict(state=State.EXITED, since=0.0, source=Evidence.EXIT)
        self._claims = Claims(idle_s)
        self._wake_at = math.inf
        self._begin(0.0)

    def _begin(self, now: float) -> None:
        self._root: Report | None = None
        self._claims.clear(now)
        self._hooks = HookSession()
        self._title = ""
        self._percent: int | None = None
        self._started_at = now
        self._activity: tuple[float, Evidence] | None = None
        self._settled_at = now
        self._small_at = -math.inf
        self._turns_since = self._turned_at = -math.inf
        self._waits_since = now

    def handle(self, event: ev.Event, now: float) -> list[ev.Action]:
        """Take ``event``; return the new verdict, if it has changed, and the next timer."""
        if isinstance(event, ev.TimerExpired):
            self._wake_at = math.inf
        if isinstance(event, ev.ProcessStarted):
            self._begin(now)
            verdict = Verdict(state=State.STARTING, since=now, source=Evidence.START)
        elif self.verdict.state is State.EXITED:
            return []
        elif isinstance(event, ev.ProcessExited):
            verdict = Verdict(state=State.EXITED, since=now, source=Evidence.EXIT)
        else:
            self._take(event, now)
            verdict = self._judge(now)
        actions: list[ev.Action] = []
        if verdict != self.verdict:
            self.verdict = verdict
            actions.append(ev.VerdictChanged(verdict))
        return [*actions, *self._wake(now)]

    # Evidence.

    def _take(self, event: ev.Event, now: float) -> None:
        match event:
            case ev.Output(change=change):
                self._take_output(change, now)
            case KeyInput():
                self._take_keys(event, now)
            case ev.Resized():
                self._settle(now)
            case TtyFact():
                self._take_fact(event, now)
            case _:
                self._take_statement(event, now)

    def _take_statement(self, event: ev.Event, now: float) -> None:
        """Take what the program or its shell says by a sequence or a hook."""
        match event:
            case Report():
                self._take_report(event, now)
            case Hook():
                self._take_hook(event, now)
            case TitleChanged():
                self._take_title(event, now)
            case Notice(text=text):
                if text or now >= self._settled_at:  # else it is the bell that answers a key
                    self._claims.put(Evidence.NOTICE, Need(kind="input", text=text), now)
            case ProgressNotice():
                self._take_progress(event, now)
            case ev.PromptBegun():
                if self._root is not None and self._root.is_work:
                    self._root = None
                self._drop_program()
            case ev.TerminalReset():
                self._root = None
                self._drop_program()

    def _take_output(self, change: Change, now: float) -> None:
        if now < self._settled_at:
            return
        self._claims.painted_at = now
        busy = self._claims.of(Evidence.TTY)
        if busy is not None and busy.need is None:
            # It may have been busy for that moment only, on a machine that stalls; and while it
            # blinks there is no quiet, so no check would find that it waits.
            self._claims.drop(Evidence.TTY)
            self._activity = (now, Evidence.TTY)
        if change == "unknown":
            self._claims.text_changed(now, is_certain=False)
            self._activity = (now, Evidence.OUTPUT)
        elif change == "text" or (change == "small" and self._is_repeated(now)):
            self._claims.text_changed(now, is_certain=True)
            self._activity = (now, Evidence.SCREEN)
            if change == "text":
                self._small_at = -math.inf
        elif change == "turn" and self._turns_steadily(now):
            # It answers no prompt: agents turn a glyph beside one, too.
            self._activity = (now, Evidence.SCREEN)
        elif self._activity is None:
            self._activity = (now, Evidence.OUTPUT)

    def _is_repeated(self, now: float) -> bool:
        """Return whether a small change follows another one, so that it may be a counter's."""
        since = now - self._small_at
        # One repaint can arrive in several pieces.
        if self._claims.settle_s / 2 <= since:
            self._small_at = now
        return self._claims.settle_s / 2 <= since <= self._idle_s

    def _turns_steadily(self, now: float) -> bool:
        """Return whether a glyph has turned for a while without a pause."""
        if now > self._turned_at + self._idle_s / 2:
            self._turns_since = now
        self._turned_at = now
        return now >= self._turns_since + self._claims.settle_s

    def _take_keys(self, keys: KeyInput, now: float) -> None:
        self._settle(now)
        if self._claims.answer(keys, now) and self.verdict.state is not State.STARTING:
            self._activity = (now, Evidence.KEYS)

    def _take_fact(self, fact: TtyFact, now: float) -> None:
        if fact.need is not None or fact.is_busy:
            self._claims.put(Evidence.TTY, fact.need, now)
        elif self._claims.of(Evidence.TTY) is not None:
            # It has got what it read, or has just stopped to compute.
            self._claims.drop(Evidence.TTY)
            self._activity = (now, Evidence.TTY)

    def _settle(self, now: float) -> None:
        self._settled_at = now + self._claims.settle_s

    def _take_report(self, report: Report, now: float) -> None:
        if report.id:  # a child never changes the state of its parent
            return
        if report.state == "clear":
            self._root = None
            self._claims.drop(Evidence.REPORT)
        else:
            self._root = report
            self._claims.put(Evidence.REPORT, _need_of(report), now)

    def _take_hook(self, hook: Hook, now: float) -> None:
        if not self._hooks.accepts(hook) or hook.kind == "other":
            return
        claim = self._claims.of(Evidence.HOOK)
        if hook.kind == "ends":
            self._claims.drop(Evidence.HOOK)
        elif claim is None or claim.need is None or not _leaves_open(hook, claim.need):
            self._claims.put(Evidence.HOOK, hook.need, now)

    def _take_title(self, title: TitleChanged, now: float) -> None:
        self._title = title.text
        match title.kind:
            case None:
                self._claims.drop(Evidence.TITLE)
            case "working":
                self._claims.put(Evidence.TITLE, None, now)
            case "ready":
                self._claims.put(Evidence.TITLE, Need(kind="ready"), now)
            case "blocked":
                self._claims.put(Evidence.TITLE, Need(kind="input", text=title.text), now)

    def _take_progress(self, progress: ProgressNotice, now: float) -> None:
        self._percent = progress.percent
        if progress.in_progress:
            self._claims.drop(Evidence.NOTICE)
            self._claims.put(Evidence.PROGRESS, None, now)
        else:
            self._claims.drop(Evidence.PROGRESS)

    def _drop_program(self) -> None:
        """Drop what the program in front has claimed, except a report that remains."""
        if self._root is None:
            self._claims.drop(Evidence.REPORT)
        self._claims.drop(Evidence.HOOK, Evidence.TITLE, Evidence.NOTICE, Evidence.PROGRESS)
        self._percent = None

    # Verdict.

    def _judge(self, now: float) -> Verdict:
        claim = self._claims.deciding(now)
        if claim is not None:
            state = State.RUNNING if claim.need is None else State.NEEDS_INPUT
            return self._verdict(state, claim.source, claim.need, now)
        if self._activity is None and now < self._started_at + self._idle_s:
            return self._verdict(State.STARTING, Evidence.START, None, now)
        if self._activity is not None and now < self._activity[0] + self._idle_s:
            return self._verdict(State.RUNNING, self._activity[1], None, now)
        return self._verdict(State.NEEDS_INPUT, Evidence.SILENCE, _UNKNOWN_NEED, now)

    def _verdict(self, state: State, source: Evidence, need: Need | None, now: float) -> Verdict:
        if need is not None:
            if self.verdict.state not in _WAITING or _asks_anew(self.verdict.need, need):
                self._waits_since = now
            if now >= self._waits_since + self._stale_s:
                state = State.STALE
        is_same = state is self.verdict.state and (need is None or self._waits_since < now)
        root = self._root
        return Verdict(
            state=state,
            since=self.verdict.since if is_same else now,
            source=source,
            need=need,
            progress=self._percent if root is None or root.progress is None else root.progress,
            title=self._title if root is None or not root.title else root.title,
        )

    # Time.

    def due(self, now: float) -> float | None:
        """Return the next moment at which the verdict may change without an event."""
        return min((each for each in self._moments(now) if each > now), default=None)

    def _moments(self, now: float) -> Iterator[float]:
        if self.verdict.state is State.EXITED:
            return
        yield from self._claims.changes(now)
        yield (self._started_at if self._activity is None else self._activity[0]) + self._idle_s
        if self.verdict.state is State.NEEDS_INPUT:
            yield self._waits_since + self._stale_s

    def _wake(self, now: float) -> Iterator[ev.StartTimer]:
        """Yield the timer, if none runs that ends early enough: output does not move it."""
        due = self.due(now)
        if due is not None and due < self._wake_at:
            self._wake_at = due
            yield ev.StartTimer(due - now)


def _need_of(report: Report) -> Need | None:
    match report.state:
        case "working":
            return None
        case "blocked":
            return Need(kind=report.kind or "input", text=report.msg)
        case "error":
            return Need(kind="failed", text=report.msg)
        case _:
            return Need(kind="ready", text=report.msg)


def _leaves_open(hook: Hook, need: Need) -> bool:
    """Return whether ``hook`` leaves a request of an earlier hook for a tool unanswered.

    Another tool may run beside it, and a reminder says less than the request.
    """
    if not need.tool:
        return False
    is_other_tool = hook.kind == "working" and hook.tool not in ("", need.tool)
    is_less = hook.kind == "reminds" and hook.need is not None and hook.need.kind != "ready"
    return is_other_tool or is_less


def _asks_anew(old: Need | None, new: Need) -> bool:
    """Return whether ``new`` is another question than ``old``, not a fuller or shorter form."""
    # Where the question is unknown, the old one may still be asked.
    if old is None or new == _UNKNOWN_NEED:
        return old is None
    is_other_text = old.text != new.text and "" not in (old.text, new.text)
    return old == _UNKNOWN_NEED or old.kind != new.kind or is_other_text

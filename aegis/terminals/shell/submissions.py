"""The rules for typing at one shell: what, when, and by which keys. Pure.

Times are monotonic seconds.

- A command is typed while the shell is at its prompt with an empty line, as far as marks and keys
  show (``Boundaries``). Where keys may be on the line unnoticed, the hook is asked for the line's
  length first, and the command is pending until the answer. It is refused while a line is typed, or
  a command runs.
- Keys and signals are sent at once, but are queued while the shell reads a command: a Ctrl-C in the
  middle would cut its text in two, and other keys would become part of it.
- A text that the shell cannot finish reading is dropped, by keys that are tried several times.
- The line editor is asked whether the line is empty, once after ``ASK_AFTER_S`` without keys: if
  the line may be empty by its keys, the shell is at its prompt by its marks, and it has read all
  keys and waits for more. Until then it is looked at less and less often. An unanswered question is
  not repeated until the next prompt. Bash draws the last line of the prompt once more for it, which
  is removed from the output, so that viewers see no flicker: the output is held for a moment.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import attrs
import structlog

from actors import Reply
from aegis.clock import utc_now
from aegis.protocol.terminals import Done, Typing
from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import PROBE_S, ShellAdapter
from aegis.terminals.parse import boundaries as bd

log = structlog.get_logger("aegis.terminals")

READING_S = 1.0
READING_BYTES_PER_S = 50_000
"""The time a shell gets to read a submission: ``READING_S`` and its bytes at this rate.

Readline on a slow machine takes a fifth of that.
"""

ROUNDS = 3
"""How often the sequence of keys that drop a text is tried."""

ASK_AFTER_S = 0.4
"""Seconds without a key before the question whether the line is empty."""

MAX_WAIT_S = 5.0
"""The longest time between two checks of a shell that cannot be asked now, in seconds."""

HOLD_S = 0.1
"""Seconds that output is held back for the answer, which takes a fraction of a millisecond."""

CLOCK_S = 0.001
"""Times that differ by less are equal: sums of seconds are not exact."""

MAX_HELD_BYTES = 64 * 1024
"""The most output that is held back: the line editor draws far less."""


# The steps of the owner, in the order in which they come.


@attrs.frozen
class PtyInput:
    """Write ``data`` to the PTY, after all bytes that were sent before."""

    data: bytes
    kind: Literal["keys", "submission", "probe"] = "keys"


@attrs.frozen
class LookAfter:
    """Look again after ``seconds``."""

    seconds: float


@attrs.frozen(eq=False)
class SignalDue:
    """Signal the foreground now; if that was an interrupt, call ``interrupted`` afterwards."""

    request: msg.SendSignal
    reply: Reply[Done]


class ShellQuestion(enum.Enum):
    """A fact about the shell that its owner has to look up.

    ``IS_IN_FRONT``: if the shell itself would read what is typed, call ``probe``.
    ``WAITS_FOR_KEYS``: call ``ask`` with whether it has read all keys and waits for more.
    """

    IS_IN_FRONT = "is_in_front"
    WAITS_FOR_KEYS = "waits_for_keys"


Step: TypeAlias = (
    PtyInput
    | LookAfter
    | SignalDue
    | ShellQuestion
    | bd.BoundaryEvent
    | msg.SubmissionRefused
    | msg.SubmissionFailed
    | msg.TypingChanged
)
"""A step; a ``CommandBegin`` is that of a line whose Enter is taken for its start."""


@attrs.frozen
class _QueuedKeys:
    writer: str
    data: bytes


class Submissions:
    """The rules of one shell, whose hook is that of ``adapter``.

    ``sent`` is the newest command that was typed, and ``is_incomplete`` whether the shell is being
    made to drop its text. ``is_used``: a command began, or keys were sent. ``is_below_prompt``:
    output came below the prompt since it was drawn. ``queued`` is the input that waits; ``held`` is
    the output that is held back for an answer, or None.
    """

    def __init__(self, adapter: ShellAdapter) -> None:
        self.adapter = adapter
        self.boundaries = boundaries_of(adapter)
        self.typing: Typing | None = None
        self.sent: msg.Submit | None = None
        self.is_incomplete = self.is_used = self.is_below_prompt = False
        self._pending: msg.Submit | None = None
        self._typed_wanted: ShellAdapter | None = None
        self._drops: Iterator[bytes] = iter(())
        self.queued: list[_QueuedKeys | SignalDue] = []
        self._queued_until = 0.0
        self._reading_s = READING_S
        self._last_key = self._held_until = 0.0
        self._wait_s = ASK_AFTER_S
        self._look_at: float | None = None
        self._is_asking = self._was_asked = False
        self.held: bytes | None = None

    def follow_anew(self) -> None:
        """Start with new boundaries, at the first mark of a hook that was read again."""
        self.sent, self.is_incomplete = None, False
        self.boundaries = boundaries_of(self.adapter)

    # Commands.

    @property
    def submitted(self) -> int | None:
        """The call whose text is pending, or with the shell, and did not begin yet."""
        if self._pending is not None:
            return self._pending.call
        is_unread = self.boundaries.is_submitting or self.is_incomplete
        return self.sent.call if self.sent is not None and is_unread else None

    def submit(self, submission: msg.Submit) -> Iterable[Step]:
        """Type a command, now or once the line is known to be empty; or refuse it."""
        if self.boundaries.can_submit():
            return self._send(submission)
        if not self.boundaries.can_probe():
            return self._refuse(submission)
        self._pending = submission
        if self.adapter.probe_delay_s:
            return [LookAfter(self.adapter.probe_delay_s)]
        return self._probe_soon()

    def withdraw(self, call: int) -> Iterable[Step]:
        """Refuse the command of ``call`` if it is pending; else return no steps."""
        is_pending = self._pending is not None and self._pending.call == call
        return self._refuse(self._pending) if is_pending and self._pending is not None else ()

    def probe(self) -> Iterable[Step]:
        """Ask the hook for the length of the line, for the pending command."""
        self.boundaries.probed()
        return [PtyInput(self.adapter.probe_key, "probe")]

    def prompted(self, now: float) -> Iterable[Step]:
        """Note a new prompt; type the pending command if it may be."""
        # Keys that were sent before the prompt was drawn are on its line.
        self._is_asking = self.is_below_prompt = False
        planned = self._plan(now, ASK_AFTER_S)
        if self._pending is None:
            return planned
        if self.boundaries.can_submit():
            # A Ctrl-C may have taken the probe with it; the prompt behind it needs none.
            return [*planned, *self._send(self._pending)]
        # No second probe yet: the first may be answered before the keys after it are read.
        return [*planned, LookAfter(PROBE_S)]

    def line_reported(self, report: bd.LineReport, now: float) -> Iterable[Step]:
        """Take the hook's answer to a probe."""
        self._is_asking = False
        steps = [*self._plan(now, ASK_AFTER_S)]
        if report.at_prompt:
            steps += self._drop_again()
        if self._pending is not None:
            # Not submitted yet if the report was of an earlier probe, or a Ctrl-C came behind it.
            steps += self.submit(self._pending)
        return steps

    def drop(self) -> Iterable[Step]:
        """Make the shell drop the text that it cannot finish reading."""
        self.is_incomplete = True
        self._drops = iter(self.adapter.interrupts * ROUNDS)
        return self._drop_again()

    def failed(self, why: msg.WhyNotRun) -> Iterable[Step]:
        """Report that the newest command was typed and did not run."""
        self.is_incomplete = False
        return () if self.sent is None else [msg.SubmissionFailed(call=self.sent.call, why=why)]

    def look(self, now: float) -> Iterable[Step]:
        """Do what is due: the question about the line, a probe, the next key that drops a text."""
        steps = [*self._look_at_line(now), *self.typing_news()]
        if self._pending is not None and self.boundaries.phase is bd.ShellPhase.PROMPT:
            steps += self._probe_soon()
        return [*steps, *self._drop_again()]

    def _send(self, submission: msg.Submit) -> Iterable[Step]:
        self.sent, self.is_incomplete, self._pending = submission, False, None
        try:
            data = self._encoded(submission.cmd)
        except OSError as error:
            log.warning("submission not written", error=str(error))
            return self.failed("unwritten")
        self.boundaries.submitted()
        self._reading_s = READING_S + len(data) / READING_BYTES_PER_S
        return [PtyInput(data, "submission")]

    def _encoded(self, cmd: str) -> bytes:
        if not self.boundaries.is_plain:
            return self.adapter.encode(cmd)
        self._want_typed(wanted=False)  # every typed line was answered
        return self.adapter.encode_on_plain_line(cmd)

    def _want_typed(self, *, wanted: bool) -> None:
        if (self.adapter if wanted else None) is not self._typed_wanted:
            self._typed_wanted = self.adapter if wanted else None
            self.adapter.want_typed(wanted=wanted)

    def _refuse(self, submission: msg.Submit) -> Iterable[Step]:
        self._pending = None
        is_prompt = self.boundaries.phase is bd.ShellPhase.PROMPT
        refused = msg.SubmissionRefused(call=submission.call, at_prompt=is_prompt)
        return [*self.typing_news(), refused]

    def _probe_soon(self) -> Iterable[Step]:
        if self.adapter.types_probe:
            return [ShellQuestion.IS_IN_FRONT, LookAfter(PROBE_S)]
        return [*self.probe(), LookAfter(PROBE_S)]

    def _drop_again(self) -> Iterable[Step]:
        """Send the next key that drops the text, if the shell still waits for more of it."""
        if not self.is_incomplete or self.boundaries.phase is not bd.ShellPhase.SECONDARY:
            return ()
        keys = next(self._drops, b"")
        if not keys:
            return ()
        self.boundaries.asked()  # the hook answers it like a probe
        return [PtyInput(keys), LookAfter(PROBE_S)]

    # Keys and signals.

    @property
    def queued_bytes(self) -> int:
        """How many bytes of keys are queued."""
        return sum(len(each.data) for each in self.queued if isinstance(each, _QueuedKeys))

    def keys(self, writer: str, data: bytes, now: float) -> Iterable[Step]:
        """Send keys, or queue them."""
        if self._is_reading():
            return self._queue(_QueuedKeys(writer, data), now)
        return [*self._typed(writer, data, now), PtyInput(data)]

    def signal(self, due: SignalDue, now: float) -> Iterable[Step]:
        """Signal the foreground, or queue that."""
        return self._queue(due, now) if self._is_reading() else [due]

    def interrupted(self, writer: str, now: float) -> Iterable[Step]:
        """Note that the foreground was interrupted."""
        # It drops the line, as Ctrl-C does. Also while a command runs by the marks: the shell may
        # be at its prompt already, and would end a line of its own.
        return self._typed(writer, b"\x03", now)

    def release(self, now: float) -> Iterable[Step]:
        """Send the queued input, if the command was read or its time is up."""
        if self.queued and (not self._is_reading() or now >= self._queued_until):
            queued, self.queued = self.queued, []
            for each in queued:
                if isinstance(each, SignalDue):
                    yield each
                else:
                    yield from self._typed(each.writer, each.data, now)
                    yield PtyInput(each.data)

    def typing_news(self) -> Iterable[Step]:
        """Report a change of the writer of an unfinished line at the prompt."""
        writer = self.boundaries.typing
        if writer == (self.typing and self.typing.writer):
            return ()
        self.typing = None if writer is None else Typing(writer=writer, since=utc_now())
        return [msg.TypingChanged(typing=self.typing)]

    def _is_reading(self) -> bool:
        """Whether the shell has the text of a command that it has not answered."""
        return self.is_incomplete or self.boundaries.phase is bd.ShellPhase.SUBMITTED

    def _queue(self, item: _QueuedKeys | SignalDue, now: float) -> Iterable[Step]:
        is_first = not self.queued
        self.queued.append(item)
        if not is_first:
            return ()
        self._queued_until = now + self._reading_s
        return [LookAfter(self._reading_s)]

    def _typed(self, writer: str, data: bytes, now: float) -> Iterable[Step]:
        self.is_used = True
        self._want_typed(wanted=True)
        begun = self.boundaries.keys(writer, data)
        self._last_key, self._wait_s, self._was_asked = now, ASK_AFTER_S, False
        return [*begun, *self._plan(now, ASK_AFTER_S)]

    # The question whether the line is empty.

    def ask(self, now: float, *, waits_for_keys: bool) -> Iterable[Step]:
        """Ask the line editor, or look later if it does not wait for keys."""
        if not waits_for_keys:
            return self._look_later(now)
        keys = self.adapter.ask_line()
        if keys is None:
            return ()
        self.boundaries.asked()
        self._is_asking = self._was_asked = True
        steps: list[Step] = [PtyInput(keys)] if keys else []
        if self.adapter.redraw is not None:
            self.held, self._held_until = b"", now + HOLD_S
            steps.insert(0, LookAfter(HOLD_S))
        return steps

    def _plan(self, now: float, wait_s: float) -> Iterable[Step]:
        if self._look_at is not None or self._was_asked or not self.boundaries.can_ask():
            return ()
        self._look_at = now + wait_s
        return [LookAfter(wait_s)]

    def _look_at_line(self, now: float) -> Iterable[Step]:
        if self._look_at is None or now < self._look_at - CLOCK_S:
            return ()
        self._look_at = None
        if self._is_asking or self._was_asked or not self.boundaries.can_ask():
            return ()
        rested_s = now - self._last_key
        if rested_s < ASK_AFTER_S - CLOCK_S:
            return self._plan(now, ASK_AFTER_S - rested_s)
        # A completion may be asking whether to list its results, or showing a pager: the cursor is
        # below the prompt then, and the prompt was not drawn again.
        has_completed = self.adapter.uses_readline and self.boundaries.has_completed
        if has_completed and self.is_below_prompt:
            return self._look_later(now)
        return [ShellQuestion.WAITS_FOR_KEYS]

    def _look_later(self, now: float) -> Iterable[Step]:
        self._wait_s = min(2 * self._wait_s, MAX_WAIT_S)
        return self._plan(now, self._wait_s)

    # Output that bash draws on the question.

    def without_redraw(self, data: bytes) -> bytes:
        """Return the output to pass on after ``data`` came, without the redraw of a question."""
        if self.held is None:
            return data
        self.held += data
        redraw = self.adapter.redraw
        found = None if redraw is None else redraw.search(self.held)
        if found is not None:
            rest = self.held[: found.start()] + found["report"] + self.held[found.end() :]
            self.held = None
            return rest
        return self.take_held() if len(self.held) > MAX_HELD_BYTES else b""

    def overdue(self, now: float) -> bytes:
        """Return the held output if the answer did not come in time."""
        return self.take_held() if now >= self._held_until - CLOCK_S else b""

    def take_held(self) -> bytes:
        """Return the held output, and hold no more."""
        held, self.held = self.held or b"", None
        return held


def boundaries_of(adapter: ShellAdapter) -> bd.Boundaries:
    """Return new boundaries for a shell with this hook."""
    return bd.Boundaries(reports_starts=adapter.reports_starts, is_one_line=adapter.is_one_line)

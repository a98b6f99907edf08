"""The boundaries of commands: a state machine over marks, paste mode, submissions and keys. Pure.

Rules of ``Boundaries``, which follows one shell:

- A C with a number above the last begins a command; more C before its D are further lines of it.
  Output between a P with ``k=e`` and such a C is not the command's.
- A D with a number above the last ends the open command. Without one it ends a line that ran
  nothing: empty, a comment, not valid syntax, or interrupted.
- ``b=`` on a mark is the number of the last D before it. A C or D whose ``b`` is above the number
  of the open command means that its end was lost: a Ctrl-C discards what the tty has not passed on.
- A B while a command is open means the same. B is repeated whenever the prompt is drawn; otherwise
  it, like the line editor's paste mode, only means that the prompt is shown.
- A number may jump forward. A C or D with a number seen before, or a smaller one, is data.
- ``s=1`` on a mark means that the daemon submitted the line. Without a pending submission it means
  nothing (the submit key was sent by hand); a C without it is still ours while a submission is
  pending and no other writer has sent an Enter that could have caused it.
- ``e=1`` on a B means that an empty line there needs no submit key. Then nothing has ``s=1``, and
  what answers is ours.

``keystrokes`` follows keys only as far as needed to know whose Enter began a command and whether
the line at the prompt is empty.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import attrs

from aegis.terminals.parse.keystrokes import Keystrokes
from aegis.terminals.parse.osc133 import Mark

INTERRUPTED = 130
"""The status of a line that a Ctrl-C dropped."""

MAX_UNANSWERED = 64
"""Limit of unanswered probes that are remembered. Later reports then count as older."""


class ShellPhase(enum.Enum):
    """The state of the shell. ``RETURNING``: a line has ended, the next prompt is not shown yet."""

    STARTING = "starting"
    PROMPT = "prompt"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SECONDARY = "secondary"
    RETURNING = "returning"


@attrs.frozen
class CommandBegin:
    """A command began: ours (``submitted``), or one typed by ``writer`` (None: unknown)."""

    submitted: bool
    writer: str | None


@attrs.frozen
class CommandEnd:
    """The command that began last has ended.

    ``exit`` is None when the end was ``lost`` (a prompt came without it). ``history`` is the number
    under which the hook stored the text of a typed command. ``prompt_lines`` is the number of lines
    of the prompt that were drawn before the end was reported. ``commands`` counts the reported
    starts: more than one where the shell runs a pasted text line by line. ``continuations`` counts
    the secondary prompts before the first start.
    """

    exit: int | None
    lost: bool = False
    history: int | None = None
    prompt_lines: int = 0
    commands: int = 1
    continuations: int = 0


@attrs.frozen
class NoCommand:
    """A line was read that began no command; ``submitted``: it was ours.

    ``exit`` is the shell's ``$?`` now and ``previous`` what it was before: see ``exit_of_nothing``.
    """

    submitted: bool
    exit: int
    previous: int


@attrs.frozen
class SubmissionLost:
    """Our submission reached no prompt: a program that was typed ahead read it."""


@attrs.frozen
class AcceptedLine:
    """The line editor returned a line: output follows, no longer echo."""


@attrs.frozen
class OutputEnded:
    """The output of the open command ended, at least of its current line.

    ``CommandEnd`` follows with the prompt, or ``OutputResumed`` with the command's next line.
    """


@attrs.frozen
class OutputResumed:
    """Another line of the open command begins: its output follows."""


@attrs.frozen
class SecondaryPrompt:
    """The shell waits for more input at a secondary prompt; ``submitted``: of our text."""

    submitted: bool


@attrs.frozen
class PromptShown:
    """The prompt is shown; not repeated when it is only redrawn."""


@attrs.frozen
class LineReport:
    """The answer to the probe key: the line at the prompt holds ``length`` characters.

    ``rearmed``: the prompts had lost their marks and have them again. ``at_prompt`` is False while
    a command runs: then the answer is from a line editor that the command uses.
    """

    length: int
    rearmed: bool = False
    at_prompt: bool = True


BoundaryEvent: TypeAlias = (
    CommandBegin
    | CommandEnd
    | NoCommand
    | SubmissionLost
    | AcceptedLine
    | OutputEnded
    | OutputResumed
    | SecondaryPrompt
    | PromptShown
    | LineReport
)


def exit_of_nothing(nothing: NoCommand, *, printed: bool) -> int:
    """Return the exit code of a line that began no command; ``printed``: text came after it.

    An empty line or a comment leaves ``$?`` alone and prints nothing: that counts as 0. A syntax
    error does one or the other.
    """
    return nothing.exit if printed or nothing.exit != nothing.previous else 0


class Boundaries:
    """The state machine of one shell.

    ``skipped`` counts the numbers of marks that never came. Where the hook does not report the
    start of a typed command (``reports_starts`` is false) its Enter is taken for that. Unless a
    submission ``is_one_line``, a line editor behind the end of its command is no prompt.
    """

    def __init__(self, *, reports_starts: bool = True, is_one_line: bool = True) -> None:
        self._reports_starts = reports_starts
        self._is_one_line = is_one_line
        self.phase = ShellPhase.STARTING
        self.skipped = 0
        self._keys = Keystrokes()
        self._probes = Probes()
        self._number = 0
        self._open: int | None = None
        self._open_is_ours = False
        self._output_ended = False
        self._commands = 0
        self._continuations = 0
        self._submission = False
        self._probed_submission = False
        self._is_plain_prompt = self._is_plain_submission = self._has_keys = False
        self._returned_line = False
        self._last_exit = 0

    @property
    def typing(self) -> str | None:
        """The writer of an unfinished line at the prompt, or of an Enter that no mark answered."""
        return self._keys.typing

    @property
    def uncertain(self) -> str | None:
        """The writer of keys that may be on the line unnoticed; a probe decides.

        They were sent while a command ran, or are a Ctrl-C that no mark answered.
        """
        # Bash may keep a Ctrl-C until the next key, and would drop a submission with it.
        return self._keys.uncertain

    @property
    def is_submitting(self) -> bool:
        """Whether a submission was sent and no mark has answered it."""
        return self._submission

    def can_submit(self) -> bool:
        """Return whether the shell is at a prompt with an empty line, as far as is known."""
        return self.can_probe() and self.uncertain is None

    @property
    def is_plain(self) -> bool:
        """Whether a submission needs no submit key now.

        The hook said so at this prompt, and nobody has sent keys since the last submission. One
        of them may act at a later prompt: Ctrl-O of readline fetches the next line.
        """
        return self._is_plain_prompt and not self._has_keys

    def can_probe(self) -> bool:
        """Return whether the shell is at a prompt where no line is known to be typed."""
        return self.phase is ShellPhase.PROMPT and self.typing is None

    def can_ask(self) -> bool:
        """Return whether the line may be empty and the line editor may be asked for it."""
        return self.phase is ShellPhase.PROMPT and self._keys.may_be_empty

    @property
    def has_completed(self) -> bool:
        """Whether TAB is among the keys of the line at the prompt."""
        return self._keys.has_completed

    def asked(self) -> None:
        """Note that the line editor is asked for the length of its line."""
        self._probes.sent()

    @property
    def typed_text(self) -> str | None:
        """The text of the line of the newest command, by its keys; None if it is not known."""
        return self._keys.text

    def submitted(self) -> None:
        """Note that a submission is sent to the PTY."""
        assert self.can_submit()
        self.phase = ShellPhase.SUBMITTED
        self._submission = True
        self._is_plain_submission = self.is_plain
        self._has_keys = False
        self._probes.submitted()
        self._probed_submission = False

    def probed(self) -> None:
        """Note that the probe key is sent to the PTY."""
        self._probes.sent()
        self._probed_submission = self._submission

    def keys(self, writer: str, data: bytes) -> list[BoundaryEvent]:
        """Note that ``writer`` sends these bytes to the PTY."""
        self._probes.typed()
        self._has_keys = True
        reading = self._open is None and self.phase is not ShellPhase.STARTING
        at_prompt = reading or self.phase is ShellPhase.SECONDARY
        is_next = self.phase in (ShellPhase.PROMPT, ShellPhase.RETURNING)
        begins_line = is_next and self.typing is None and self.uncertain is None
        self._keys.sent(writer, data, at_prompt=at_prompt, begins_line=begins_line)
        if self._reports_starts or self.phase is not ShellPhase.PROMPT:
            return []
        who = self._keys.take_line()
        return [] if who is None else self._line_begins(who)

    def _line_begins(self, writer: str) -> list[BoundaryEvent]:
        """Take a typed line for a command, before the shell has read it."""
        self.phase = ShellPhase.RUNNING
        self._open, self._open_is_ours = self._number, False
        self._keys.command_began()
        return [CommandBegin(submitted=False, writer=writer)]

    def prompt_unseen(self) -> list[BoundaryEvent]:
        """Note that the prompt is shown where its output is not seen."""
        is_due = self.phase is ShellPhase.RETURNING and self._is_one_line
        return self._prompted() if is_due else []

    def replaced(self) -> list[BoundaryEvent]:
        """End the open command as lost: by another shell in its place, say."""
        if self._open is None:
            return []
        self._open = None
        return [CommandEnd(exit=None, lost=True)]

    def mark(self, mark: Mark) -> list[BoundaryEvent]:
        """Return the events of a mark of our own hook."""
        if mark.kind == "C":
            return self._command_begins(mark)
        if mark.kind == "D":
            return self._line_ends(mark)
        if mark.kind == "B":
            return self._prompt_drawn(mark)
        if mark.kind == "P":
            return self._other_prompt(mark)
        return []

    def paste_mode(self, on: bool) -> list[BoundaryEvent]:
        """Take a switch of paste mode, by the line editor or by a program."""
        if on:
            # A prompt, even one whose mark was lost: a D came, and no command is open.
            is_due = (self.phase is ShellPhase.RETURNING and self._is_one_line) or (
                self.phase is ShellPhase.STARTING and self._number
            )
            if is_due:
                return self._prompted()
            # The editor read our text to its end and starts again, without a C or D between: a
            # secondary prompt whose mark is missing (a readonly PS2, a theme's own widget).
            reads_on = self.phase is ShellPhase.SUBMITTED and self._returned_line
            return [self._secondary_prompt(ours=self._submission)] if reads_on else []
        if self.phase not in (ShellPhase.PROMPT, ShellPhase.SUBMITTED, ShellPhase.SECONDARY):
            return []
        self._returned_line = True
        return [AcceptedLine()]

    def _command_begins(self, mark: Mark) -> list[BoundaryEvent]:
        if mark.number <= self._number:
            return []
        lost = self._lost_before(mark)
        self._is_plain_prompt = False
        self.phase = ShellPhase.RUNNING
        if self._open is not None:
            self._number = mark.number
            self._commands += 1
            return self._output_continues()
        self._advance(mark.number)
        self._open, self._output_ended, self._commands = mark.number, False, 1
        self._open_is_ours = self._submission and (
            self._is_marked_ours(mark) or not self._keys.has_enter()
        )
        writer = None
        if self._open_is_ours:
            self._submission_read()
        else:
            writer = self._keys.take_enter()
        self._keys.command_began()
        return [*lost, CommandBegin(submitted=self._open_is_ours, writer=writer)]

    def _lost_before(self, mark: Mark) -> list[BoundaryEvent]:
        """End the open command if this mark shows that it has ended before."""
        if self._open is None or mark.ended is None or mark.ended <= self._open:
            return []
        self._number = max(self._number, mark.ended)
        return self.replaced()

    def _output_ends(self, mark: Mark) -> list[BoundaryEvent]:
        if self._open is None or mark.number < self._number:
            return []
        self._output_ended = True
        return [OutputEnded()]

    def _output_continues(self) -> list[BoundaryEvent]:
        ended, self._output_ended = self._output_ended, False
        return [OutputResumed()] if ended else []

    def _line_ends(self, mark: Mark) -> list[BoundaryEvent]:
        if mark.number <= self._number:
            return []
        events = self._lost_before(mark)
        self._is_plain_prompt = False
        self._keys.line_ended()
        self._advance(mark.number)
        if self._open is not None:
            events.append(self._reported_end(mark))
            self._open = None
            if not self._reports_starts and self.phase is ShellPhase.SECONDARY:
                self._keys.take_line_end()
        elif self.phase is not ShellPhase.STARTING:
            events.append(self._nothing_ran(mark, is_interrupt=bool(events)))
        self._last_exit = mark.exit or 0
        if self.phase is not ShellPhase.STARTING:
            self.phase = ShellPhase.RETURNING
        return events

    def _reported_end(self, mark: Mark) -> CommandEnd:
        is_late = mark.params.get("r") == "1"
        return CommandEnd(
            exit=mark.exit,
            history=mark.history,
            prompt_lines=max(mark.length or 1, 1) if is_late else 0,
            commands=self._commands,
            continuations=self._continuations,
        )

    def _nothing_ran(self, mark: Mark, *, is_interrupt: bool) -> NoCommand:
        """Return the event of a line that ran nothing.

        ``is_interrupt``: it was dropped by a Ctrl-C that was sent while a command seemed to run,
        so no line end waits for this mark.
        """
        ours = self._submission and self._is_marked_ours(mark)
        if ours:
            self._submission_read()
        elif not is_interrupt:
            self._keys.take_line_end()
        return NoCommand(submitted=ours, exit=mark.exit or 0, previous=self._last_exit)

    def _is_marked_ours(self, mark: Mark) -> bool:
        return mark.submitted or self._is_plain_submission

    def _submission_read(self) -> None:
        self._submission = False
        self._probes.submission_read()

    def _advance(self, number: int) -> None:
        self.skipped += number - self._number - 1 if self._number else 0
        self._number = number

    def _prompt_drawn(self, mark: Mark) -> list[BoundaryEvent]:
        self._is_plain_prompt = mark.params.get("e") == "1" and mark.number >= self._number
        if self._open is not None:
            return self._end_lost(mark)
        if self.phase in (ShellPhase.STARTING, ShellPhase.RETURNING):
            return self._prompted()
        if self._returned_line or self.phase is ShellPhase.SECONDARY:
            # A line was read without a mark: the hook was not in PROMPT_COMMAND.
            return [*self._unmarked_end(), *self._prompted()]
        return []

    def _unmarked_end(self) -> list[BoundaryEvent]:
        """Return the events of a primary prompt after a line without C and D.

        The line was our submission, unless another writer's Enter is unanswered.
        """
        if not self._submission or self._keys.has_enter():
            self._keys.take_line_end()
            return []
        self._submission, self._has_keys = False, True
        exit_code = INTERRUPTED if self._keys.take_interrupt() else self._last_exit
        return [NoCommand(submitted=True, exit=exit_code, previous=self._last_exit)]

    def _end_lost(self, mark: Mark) -> list[BoundaryEvent]:
        assert self._open is not None
        if mark.number < self._open:
            return []
        self._number = max(self._number, mark.number)
        self._open = None
        return [CommandEnd(exit=None, lost=True), *self._prompted()]

    def _prompted(self) -> list[BoundaryEvent]:
        self.phase = ShellPhase.SUBMITTED if self._submission else ShellPhase.PROMPT
        self._returned_line = False
        self._keys.fresh_line()
        self._continuations = 0
        return [PromptShown()]

    def _other_prompt(self, mark: Mark) -> list[BoundaryEvent]:
        if mark.params.get("k") == "s":
            ours = self._is_marked_ours(mark) and (self._submission or self._open_is_ours)
            return [self._secondary_prompt(ours=ours)]
        if mark.params.get("k") == "e":
            return self._output_ends(mark)
        if mark.params.get("k") == "l" and mark.length is not None:
            return self._line_report(mark.length, rearmed=mark.params.get("r") == "1")
        return []

    def _secondary_prompt(self, *, ours: bool) -> SecondaryPrompt:
        if not ours:
            self._keys.line_continues(self._keys.take_enter())
        if self._open is None:
            self._continuations += 1
        self.phase = ShellPhase.SECONDARY
        self._returned_line = False
        return SecondaryPrompt(submitted=ours)

    def _line_report(self, length: int, *, rearmed: bool) -> list[BoundaryEvent]:
        covers_all = self._probes.answered()
        if self.phase is ShellPhase.RUNNING:
            lost = self.replaced() if rearmed else []
            if lost:
                self.phase = ShellPhase.RETURNING
            return [*lost, LineReport(length, rearmed=rearmed, at_prompt=False)]
        if self.phase is not ShellPhase.SECONDARY:
            self._keys.line_reported(length, covers_all=covers_all)
        report = LineReport(length, rearmed=rearmed)
        if not (self.phase is ShellPhase.SUBMITTED and self._probed_submission):
            return [report]
        self._submission, self._has_keys = False, True
        self.phase = ShellPhase.PROMPT
        return [SubmissionLost(), report]


class Probes:
    """The unanswered probes of one shell's line, in the order of keys, probes and submissions.

    The line editor answers probes in order, and a report does not name its probe. So a report
    counts as the answer to the oldest unanswered probe, and says nothing about keys that were sent
    after that one, even if a newer probe has been sent since. A probe that is never answered (a
    Ctrl-C flushed the tty, a program read it) makes the next reports count as older than they are,
    which costs another probe. The start or the end of a submission proves that every byte before
    it was read.
    """

    def __init__(self) -> None:
        self._moment = 0
        self._last_key = 0
        self._last_probe = 0
        self._submission = 0
        self._unanswered: list[int] = []

    def typed(self) -> None:
        """Note keys."""
        self._last_key = self._next()

    def sent(self) -> None:
        """Note that the probe key is sent."""
        self._last_probe = self._next()
        if len(self._unanswered) < MAX_UNANSWERED:
            self._unanswered.append(self._last_probe)

    def submitted(self) -> None:
        """Note that a submission is sent."""
        self._submission = self._next()

    def submission_read(self) -> None:
        """Note that the shell has read the submission, and so everything before it."""
        self._unanswered = [probe for probe in self._unanswered if probe > self._submission]

    def answered(self) -> bool:
        """Take a report; return whether it covers all keys that were sent."""
        probe = self._unanswered.pop(0) if self._unanswered else self._last_probe
        return probe >= self._last_key

    def _next(self) -> int:
        self._moment += 1
        return self._moment

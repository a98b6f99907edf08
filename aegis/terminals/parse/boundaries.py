"""Where commands begin and end on a terminal: marks, pastes, submissions and keys in, facts out.

Pure: no time, no I/O. ``Boundaries`` is a state machine of one shell. Its rules:

- A C with a number above the last begins a command; more C before its D are further lines of it.
  What a shell shows before such a line is no output: from a P with ``k=e`` to the C.
- A D with a number above the last ends the command that is open. Without one it ends a line that
  ran nothing: empty, a comment, not valid syntax, or interrupted.
- A B while a command is open means that its end was lost. B comes again whenever the prompt is
  drawn; otherwise it only says that the prompt stands, as does the line editor's paste mode.
- A number may jump forward. A C or D with a number seen before, or a smaller one, is data.
- ``s=1`` on a mark says that the line was submitted by the daemon. Without a submission under way
  it says nothing (somebody sent the submit key by hand); a C without it is still ours while a
  submission is under way and nobody else has sent an Enter that could have caused it.

Keys are followed in ``keystrokes`` only as far as needed to know whose Enter began a command and
whether the line at the prompt is empty.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import attrs

from aegis.terminals.parse.keystrokes import Keystrokes
from aegis.terminals.parse.osc133 import Mark

INTERRUPTED = 130
"""The status of a line that a Ctrl-C dropped."""


class Phase(enum.Enum):
    """Where the shell stands. ``RETURNING``: a line has ended, its prompt is on the way."""

    STARTING = "starting"
    PROMPT = "prompt"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SECONDARY = "secondary"
    RETURNING = "returning"


@attrs.frozen
class Started:
    """A command began: ours (``submitted``), or one that ``writer`` typed, if that is known."""

    submitted: bool
    writer: str | None


@attrs.frozen
class Ended:
    """The command that began last has ended.

    ``exit`` is None when the end was ``lost`` (the prompt is back without a word of it).
    ``history`` is the history number under which the hook kept the text of a typed command.
    ``behind_prompt``: how many lines of the prompt were drawn before this was told. ``commands``
    counts the starts that the shell reported: more than one where it runs a pasted text line by
    line. ``continuations`` counts the secondary prompts before the first of them.
    """

    exit: int | None
    lost: bool = False
    history: int | None = None
    behind_prompt: int = 0
    commands: int = 1
    continuations: int = 0


@attrs.frozen
class NothingRan:
    """A line was read that began no command; ``submitted``: it was ours.

    ``exit`` is the shell's ``$?`` now and ``previous`` what it was before: see ``exit_of_nothing``.
    """

    submitted: bool
    exit: int
    previous: int


@attrs.frozen
class SubmissionLost:
    """Our submission reached no prompt: a program that was typed ahead has read it."""


@attrs.frozen
class AcceptedLine:
    """The line editor let go of a line: what follows is output, no longer echo."""


@attrs.frozen
class OutputEnded:
    """The open command has printed all it had to, of this line at least.

    How it ended is told with the prompt, unless another line of it begins (``OutputGoesOn``).
    """


@attrs.frozen
class OutputGoesOn:
    """Another line of the open command begins: what follows is its output again."""


@attrs.frozen
class Secondary:
    """The shell waits for more input at a secondary prompt; ``submitted``: of our text."""

    submitted: bool


@attrs.frozen
class Prompted:
    """The prompt stands (said once, not again when it is only redrawn)."""


@attrs.frozen
class LineReport:
    """The answer to the probe key: the line at the prompt holds ``length`` characters.

    ``rearmed``: the prompts had lost their marks, and have them again. ``at_prompt`` is False while
    a command runs: then a line editor that the command itself uses has answered.
    """

    length: int
    rearmed: bool = False
    at_prompt: bool = True


Happening: TypeAlias = (
    Started
    | Ended
    | NothingRan
    | SubmissionLost
    | AcceptedLine
    | OutputEnded
    | OutputGoesOn
    | Secondary
    | Prompted
    | LineReport
)


def exit_of_nothing(nothing: NothingRan, *, printed: bool) -> int:
    """The exit code of a line that began no command; ``printed``: text came after it.

    An empty line or a comment leaves ``$?`` alone and prints nothing: that counts as 0. A syntax
    error does one or the other.
    """
    return nothing.exit if printed or nothing.exit != nothing.previous else 0


class Boundaries:
    """The state machine of one shell.

    ``phase`` is where the shell stands. ``skipped`` counts numbers that were jumped over: marks
    that never came. Where the hook does not tell the beginning of a typed command (``tells_starts``
    is false) its Enter is taken for that.
    """

    def __init__(self, *, tells_starts: bool = True) -> None:
        self._tells_starts = tells_starts
        self.phase = Phase.STARTING
        self.skipped = 0
        self._keys = Keystrokes()
        self._number = 0
        self._open: int | None = None
        self._open_is_ours = False
        self._output_ended = False
        self._commands = 0
        self._continuations = 0
        self._submission = False
        self._probed_submission = False
        self._let_go = False
        self._last_exit = 0

    @property
    def typing(self) -> str | None:
        """Who has a line half typed at the prompt, or sent an Enter that no mark has answered."""
        return self._keys.typing

    @property
    def uncertain(self) -> str | None:
        """Who sent keys that may lie on the line unseen; a probe tells.

        They were sent while a command ran, or are a Ctrl-C that no mark has answered: bash may
        keep that one until the next key, and would drop a submission with it.
        """
        return self._keys.uncertain

    @property
    def is_submitting(self) -> bool:
        """Whether a submission went to the PTY, and no mark has said what became of it."""
        return self._submission

    def can_submit(self) -> bool:
        """Whether the shell stands at a prompt with an empty line, as far as can be known."""
        return self.phase is Phase.PROMPT and self.typing is None and self.uncertain is None

    def can_ask(self) -> bool:
        """Whether the line editor may be asked for its line, and that line may be empty."""
        return self.phase is Phase.PROMPT and self._keys.may_be_empty

    @property
    def has_completed(self) -> bool:
        """Whether TAB is among the keys of the line at the prompt."""
        return self._keys.has_completed

    def asked(self) -> None:
        """The line editor is asked for the length of its line now."""
        self._keys.probed()

    def is_line_empty(self) -> bool:
        """Whether keys that are sent now begin a line, at this prompt or the one on its way."""
        is_next = self.phase in (Phase.PROMPT, Phase.RETURNING)
        return is_next and self.typing is None and self.uncertain is None

    def submitted(self) -> None:
        """The bytes of a submission go to the PTY now."""
        assert self.can_submit()
        self.phase = Phase.SUBMITTED
        self._submission = True
        self._probed_submission = False

    def probed(self) -> None:
        """The probe key goes to the PTY now."""
        self._keys.probed()
        self._probed_submission = self._submission

    def keys(self, writer: str, data: bytes) -> list[Happening]:
        """These bytes of ``writer`` go to the PTY now."""
        reading = self._open is None and self.phase is not Phase.STARTING
        self._keys.sent(writer, data, at_prompt=reading or self.phase is Phase.SECONDARY)
        if self._tells_starts or self.phase is not Phase.PROMPT:
            return []
        who = self._keys.take_line()
        return [] if who is None else self._line_begins(who)

    def _line_begins(self, writer: str) -> list[Happening]:
        """A typed line is taken for a command, before the shell has read it."""
        self.phase = Phase.RUNNING
        self._open, self._open_is_ours = self._number, False
        self._keys.command_began()
        return [Started(submitted=False, writer=writer)]

    def prompt_unseen(self) -> list[Happening]:
        """The prompt stands though nothing was printed: what the shell draws goes elsewhere."""
        return self._prompted() if self.phase is Phase.RETURNING else []

    def replaced(self) -> list[Happening]:
        """The shell that ran the open command is gone; another one has its place."""
        if self._open is None:
            return []
        self._open = None
        return [Ended(exit=None, lost=True)]

    def mark(self, mark: Mark) -> list[Happening]:
        """What a mark of our own hook says, in order."""
        if mark.kind == "C":
            return self._command_begins(mark)
        if mark.kind == "D":
            return self._line_ends(mark)
        if mark.kind == "B":
            return self._prompt_stands(mark)
        if mark.kind == "P":
            return self._other_prompt(mark)
        return []

    def paste_mode(self, on: bool) -> list[Happening]:
        """The line editor took the line (``on``) or let go of it; programs do so as well."""
        if on:
            # The prompt stands, even one that lost its mark for once: a D came, no command is open.
            due = self.phase is Phase.RETURNING or (self.phase is Phase.STARTING and self._number)
            if due:
                return self._prompted()
            # The editor read our text to its end and reads on, and no C or D came between: a
            # secondary prompt whose mark is missing (a readonly PS2, a theme that took the widget).
            reads_on = self.phase is Phase.SUBMITTED and self._let_go
            return [self._secondary_prompt(ours=self._submission)] if reads_on else []
        if self.phase not in (Phase.PROMPT, Phase.SUBMITTED, Phase.SECONDARY):
            return []
        self._let_go = True
        return [AcceptedLine()]

    def _command_begins(self, mark: Mark) -> list[Happening]:
        if mark.number <= self._number:
            return []
        self.phase = Phase.RUNNING
        if self._open is not None:
            self._number = mark.number
            self._commands += 1
            return self._output_goes_on()
        self._advance(mark.number)
        self._open, self._output_ended, self._commands = mark.number, False, 1
        self._open_is_ours = self._submission and (mark.submitted or not self._keys.has_enter())
        writer = None
        if self._open_is_ours:
            self._submission = False
        else:
            writer = self._keys.take_enter()
        self._keys.command_began()
        return [Started(submitted=self._open_is_ours, writer=writer)]

    def _output_ends(self, mark: Mark) -> list[Happening]:
        if self._open is None or mark.number < self._number:
            return []
        self._output_ended = True
        return [OutputEnded()]

    def _output_goes_on(self) -> list[Happening]:
        ended, self._output_ended = self._output_ended, False
        return [OutputGoesOn()] if ended else []

    def _line_ends(self, mark: Mark) -> list[Happening]:
        if mark.number <= self._number:
            return []
        self._advance(mark.number)
        happenings: list[Happening] = []
        if self._open is not None:
            happenings.append(self._told_end(mark))
            self._open = None
            if not self._tells_starts and self.phase is Phase.SECONDARY:
                self._keys.take_line_end()
        elif self.phase is not Phase.STARTING:
            happenings.append(self._nothing_ran(mark))
        self._last_exit = mark.exit or 0
        if self.phase is not Phase.STARTING:
            self.phase = Phase.RETURNING
        return happenings

    def _told_end(self, mark: Mark) -> Ended:
        is_late = mark.params.get("r") == "1"
        return Ended(
            exit=mark.exit,
            history=mark.history,
            behind_prompt=max(mark.length or 1, 1) if is_late else 0,
            commands=self._commands,
            continuations=self._continuations,
        )

    def _nothing_ran(self, mark: Mark) -> NothingRan:
        ours = self._submission and mark.submitted
        if ours:
            self._submission = False
        else:
            self._keys.take_line_end()
        return NothingRan(submitted=ours, exit=mark.exit or 0, previous=self._last_exit)

    def _advance(self, number: int) -> None:
        self.skipped += number - self._number - 1 if self._number else 0
        self._number = number

    def _prompt_stands(self, mark: Mark) -> list[Happening]:
        if self._open is not None:
            return self._end_lost(mark)
        if self.phase in (Phase.STARTING, Phase.RETURNING):
            return self._prompted()
        if self._let_go or self.phase is Phase.SECONDARY:
            # A line was read, and nobody said so: the hook was not in PROMPT_COMMAND.
            return [*self._unmarked_end(), *self._prompted()]
        return []

    def _unmarked_end(self) -> list[Happening]:
        """The primary prompt is back after a line that had neither C nor D.

        It was our submission, unless somebody else's Enter is unanswered.
        """
        if not self._submission or self._keys.has_enter():
            self._keys.take_line_end()
            return []
        self._submission = False
        exit_code = INTERRUPTED if self._keys.take_interrupt() else self._last_exit
        return [NothingRan(submitted=True, exit=exit_code, previous=self._last_exit)]

    def _end_lost(self, mark: Mark) -> list[Happening]:
        assert self._open is not None
        if mark.number < self._open:
            return []
        self._number = max(self._number, mark.number)
        self._open = None
        return [Ended(exit=None, lost=True), *self._prompted()]

    def _prompted(self) -> list[Happening]:
        self.phase = Phase.SUBMITTED if self._submission else Phase.PROMPT
        self._let_go = False
        self._keys.fresh_line()
        self._continuations = 0
        return [Prompted()]

    def _other_prompt(self, mark: Mark) -> list[Happening]:
        if mark.params.get("k") == "s":
            ours = mark.submitted and (self._submission or self._open_is_ours)
            return [self._secondary_prompt(ours=ours)]
        if mark.params.get("k") == "e":
            return self._output_ends(mark)
        if mark.params.get("k") == "l" and mark.length is not None:
            return self._line_report(mark.length, rearmed=mark.params.get("r") == "1")
        return []

    def _secondary_prompt(self, *, ours: bool) -> Secondary:
        if not ours:
            self._keys.line_goes_on(self._keys.take_enter())
        if self._open is None:
            self._continuations += 1
        self.phase = Phase.SECONDARY
        self._let_go = False
        return Secondary(submitted=ours)

    def _line_report(self, length: int, *, rearmed: bool) -> list[Happening]:
        if self.phase is Phase.RUNNING:
            lost = self.replaced() if rearmed else []
            if lost:
                self.phase = Phase.RETURNING
            return [*lost, LineReport(length, rearmed=rearmed, at_prompt=False)]
        if self.phase is not Phase.SECONDARY:
            self._keys.line_reported(length)
        report = LineReport(length, rearmed=rearmed)
        if not (self.phase is Phase.SUBMITTED and self._probed_submission):
            return [report]
        self._submission = False
        self.phase = Phase.PROMPT
        return [SubmissionLost(), report]

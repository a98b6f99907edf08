"""The meaning of one shell's bytes: its output, queries, commands and prompts, in order. Pure.

Each byte goes through the parsers of marks. ``Boundaries`` assigns the marks to commands and
writers; here times, cursors and text are added. The events do not depend on how the stream is cut,
except for where its output is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import attrs

from aegis.clock import utc_now
from aegis.processes.capture import CapturedOutput, without_first_line_feed, without_last_lines
from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import Rearmed
from aegis.terminals.output.shell_output import CommandOutput
from aegis.terminals.parse import boundaries as bd
from aegis.terminals.parse.control_sequences import ControlSequence, SequenceScanner
from aegis.terminals.parse.osc133 import Event, Mark, PasteMode, Text
from aegis.terminals.parse.stderr_split import SPLIT_WAIT_S, ErrorText, ShellStreams
from aegis.terminals.screen.modes import RESET, Modes, ModeWatch
from aegis.terminals.shell.submissions import LookAfter, PtyInput, Step, Submissions
from aegis.terminals.typed import LOST, NOT_SAID, TypedLine, TypedText, UnknownText


@attrs.frozen
class ShellOutput:
    """Visible output, in which ``sequences`` end; marks come without secret."""

    data: bytes
    sequences: Sequence[ControlSequence] = ()


@attrs.frozen
class PromptReached:
    """The shell shows its prompt; ``is_first``: for the first time since its hook was read.

    Set ``cwd`` to its directory.
    """

    is_first: bool


ShellEvent: TypeAlias = (
    ShellOutput
    | PromptReached
    | Step
    | msg.CommandStarted
    | msg.CommandEnded
    | msg.NothingRan
    | msg.IntegrationChanged
    | msg.NeedsInputChanged
)
"""An event of a shell; handle it before the next one is taken."""


class ShellPipeline:
    """The stream of the shell called ``name``, whose output begins at the offset ``position``.

    The events of one mark are made together, before the owner handles the first of them.

    ``rules`` decide what is typed at it. ``is_pasting``: paste mode is on. ``editor_answered`` is
    False until an unexpected line editor has answered a probe, and None before a probe and after
    each start of a command.
    """

    def __init__(self, name: str, rules: Submissions, position: int) -> None:
        self._name = name
        self.rules = rules
        self.position = position
        self.cwd: str | None = None
        self.was_prompted = self.was_rearmed = self.is_pasting = False
        self.editor_answered: bool | None = None
        self.printed = CommandOutput()
        self.modes = ModeWatch()
        self._modes_before: Modes | None = None
        self._streams = self._new_streams()
        self._scanner = SequenceScanner()
        self._output: list[bytes] = []
        self._events: list[ShellEvent] = []
        self._command_start = 0
        self._has_echo = self._is_ours = False
        self._rearmed: CapturedOutput | None = None
        self._is_replaced = False

    def _new_streams(self) -> ShellStreams:
        adapter = self.rules.adapter
        return ShellStreams(adapter.secret, split=adapter.error_tty is not None)

    # What is read from the PTYs.

    def pass_on(self, data: bytes) -> bool:
        """Take a chunk of the PTY that is output and nothing else; return whether it is."""
        # Nearly all of a flood is such chunks, and their parsers are a fifth of their cost.
        if b"\x1b" in data or b"\x07" in data or not self._is_passing():
            return False
        self.printed.feed(data)
        self.rules.is_below_prompt = self.rules.is_below_prompt or b"\n" in data
        self.position += len(data)
        return True

    def feed(self, data: bytes, now: float) -> Iterator[ShellEvent]:
        """Take bytes of the PTY; yield what they mean."""
        if self.rules.held is not None:
            data = self.rules.without_redraw(data)
        return self._take(self._streams.feed(data), now)

    def feed_errors(self, data: bytes, now: float) -> Iterator[ShellEvent]:
        """Take bytes of the PTY of standard error."""
        return self._take(self._streams.feed_errors(data), now)

    def overdue(self, now: float) -> Iterator[ShellEvent]:
        """Yield what has been held back for too long."""
        yield from self.feed(self.rules.overdue(now), now)
        yield from self._take(self._streams.overdue(now), now)

    def close(self, now: float) -> Iterator[ShellEvent]:
        """Yield what is left in the parsers, after the end of the shell or of its hook."""
        yield from self._take(self._streams.feed(self.rules.take_held()), now)
        yield from self._take(self._streams.close(), now)

    def typed(self, step: PtyInput) -> None:
        """Note that the owner types a submission or a probe."""
        if step.kind == "submission":
            self._streams.submitted()
        elif step.kind == "probe":
            self._streams.probed(step.data)

    def restore_modes(self) -> list[ShellEvent]:
        """Switch the modes back that a shell, which has ended, has left on, for all viewers."""
        self._restore_modes(prompted=False)
        self._settle()
        return self._take_events()

    # What is known of the shell by its marks.

    @property
    def at_prompt(self) -> bool:
        """Whether the shell is at its prompt, without a submission."""
        return self.was_prompted and self.rules.boundaries.phase is bd.ShellPhase.PROMPT

    @property
    def is_at_work(self) -> bool:
        """Whether a command or a start-up file runs, or a prompt is still to come."""
        return self.rules.boundaries.phase in _AT_WORK

    @property
    def is_running(self) -> bool:
        """Whether a command runs, or was submitted and is about to."""
        return self.rules.boundaries.phase in _WITH_COMMAND

    @property
    def submitted(self) -> int | None:
        """The call whose text is pending, or with the shell, and did not begin yet."""
        return self.rules.submitted

    @property
    def is_holding_back(self) -> bool:
        """Whether output or marks of one PTY wait for the other; the end mark may be among them."""
        return self._streams.is_waiting

    def newest_line(self) -> str:
        """Return the newest line of the current command; empty without output or command."""
        return self.printed.newest_line() if self.is_running else ""

    # A shell whose marks are missed.

    def probe_editor(self) -> Iterable[Step]:
        """Ask whether an unexpected line editor is the shell's: see ``editor_answered``."""
        self.editor_answered = False
        self.rules.boundaries.asked()
        return [PtyInput(self.rules.adapter.probe_key)]

    def prompt_unseen(self, now: float) -> list[ShellEvent]:
        """Note a prompt without a mark."""
        self._happened(self.rules.boundaries.prompt_unseen(), now)
        return self._take_events()

    def rearm(
        self, rearmed: Rearmed, now: float, *, is_replaced: bool = False
    ) -> Iterator[ShellEvent]:
        """Make the shell at the prompt read its hook, and follow the marks of that hook.

        ``is_replaced``: it is another program than the one before, without its variables.
        The open command ends, as lost, with the first of those marks. Its output ends before the
        line of the prompt.
        """
        yield from self.close(now)
        self._rearmed = without_last_lines(self.printed.snapshot())
        self.rules.adapter = rearmed.adapter
        self._streams = self._new_streams()
        self.was_rearmed, self._is_replaced = True, is_replaced
        yield PtyInput(rearmed.keys)

    def fell_back(self) -> Iterable[ShellEvent]:
        """Switch to the fallback integration: the shell has not read its hook."""
        self.rules.adapter = attrs.evolve(self.rules.adapter, integration="fallback")
        return [msg.IntegrationChanged(integration="fallback")]

    def _answers_anew(self, now: float) -> None:
        """Start with new boundaries, at the first mark of a hook that was read again."""
        rules = self.rules
        lost = rules.boundaries.replaced()
        self.printed.discard()
        self._happened(lost, now)
        self._rearmed = None
        rules.follow_anew()
        self.was_prompted = False
        integration = rules.adapter.integration
        changed = msg.IntegrationChanged(integration=integration, is_replaced=self._is_replaced)
        self._events.append(changed)

    # The stream.

    def _take(self, events: Iterable[Event | ErrorText], now: float) -> Iterator[ShellEvent]:
        for event in events:
            if isinstance(event, Mark):
                self._follow_mark(event, now)
            else:
                self._follow_output(event, now)
            if self._events:
                yield from self._take_events()
        self._settle()
        yield from self._take_events()
        if self._streams.begins_to_wait(now):
            yield LookAfter(SPLIT_WAIT_S)

    def _is_passing(self) -> bool:
        """Whether a chunk without ESC and BEL is output and nothing else: no parser needs it."""
        is_due = self._output or self._events or self.rules.held is not None
        return self._streams.is_passing and not (self._scanner.is_within_sequence or is_due)

    def _follow_output(self, event: Text | PasteMode | ErrorText, now: float) -> None:
        data = event.data
        self._output.append(data)
        self.position += len(data)
        if isinstance(event, Text):
            self.printed.feed(data)
            self.rules.is_below_prompt = self.rules.is_below_prompt or b"\n" in data
        elif isinstance(event, ErrorText):
            self.printed.feed_errors(data)
        else:
            self.is_pasting = event.on
            self._happened(self.rules.boundaries.paste_mode(event.on), now)

    def _take_events(self) -> list[ShellEvent]:
        events, self._events = self._events, []
        return events

    def _settle(self) -> None:
        """Add the event of the output so far, before the one that comes behind it."""
        # Few large pieces: the parser of marks makes a dozen parts of a short command's output.
        if self._output:
            parts, self._output = self._output, []
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            sequences = self._scanner.feed(data, self.position - len(data))
            for sequence in sequences:
                self.modes.follow(sequence)
            self._events.append(ShellOutput(data, sequences))

    def _follow_mark(self, mark: Mark, now: float) -> None:
        if self._rearmed is not None:
            self._answers_anew(now)
        begins = self.position
        self._output.append(mark.visible)
        self.position += len(mark.visible)
        if mark.kind in ("C", "D"):
            self._settle()  # the modes are known up to here
            is_prompted = "r" in mark.params or "p" in mark.params
            if self._modes_before is None and not is_prompted:
                self._modes_before = self.modes.now  # what the user's start-up files have switched
            if mark.kind == "D" and self.modes.now != (self._modes_before or RESET):
                self._restore_modes(prompted=is_prompted)
        elif mark.kind == "B":
            self.rules.is_below_prompt = False
        self._happened(self.rules.boundaries.mark(mark), now, begins)

    def _restore_modes(self, *, prompted: bool) -> None:
        # Behind the end mark: so the bytes are in no record, and each cursor is the same for
        # everybody. What the prompt switches on comes after them.
        before = self._modes_before or RESET
        sequences = self.modes.now.restored(before, prompted=prompted)
        if sequences:
            self._output.append(sequences)
            self.position += len(sequences)

    def _happened(
        self, events: Iterable[bd.BoundaryEvent], now: float, mark_begins: int | None = None
    ) -> None:
        for event in events:
            at = self.position if mark_begins is None else mark_begins
            match event:
                case bd.CommandBegin():
                    self._begin(event, now)
                case bd.CommandEnd():
                    self._end(event, now, self.printed.ended_at or at)
                case bd.NoCommand(submitted=True):
                    self._nothing_ran(event, now, at)
                case bd.SubmissionLost():
                    self._events += self.rules.failed("swallowed")
                case bd.OutputEnded():
                    self.printed.suspend(at)
                case bd.AcceptedLine() | bd.OutputResumed():
                    self.printed.resume()
                case bd.SecondaryPrompt():
                    self._line_continues(event)
                case bd.PromptShown():
                    self._prompted(now)
                case bd.LineReport():
                    self._line_reported(event, now)

    def begin(self, begun: bd.CommandBegin, now: float) -> list[ShellEvent]:
        """Take the start of a command by the Enter of a typed line."""
        self._begin(begun, now)
        return self._take_events()

    def _begin(self, begun: bd.CommandBegin, now: float) -> None:
        rules = self.rules
        rules.is_used = True
        self.editor_answered = None
        self._is_ours = begun.submitted
        self._has_echo = not (begun.submitted or rules.adapter.reports_starts)
        if not self._has_echo:
            self.printed.begin()
        self._command_start = self.position
        sent = rules.sent if begun.submitted else None
        self._settle()
        self._events.append(
            msg.CommandStarted(
                shell=self._name,
                call=None if sent is None else sent.call,
                cmd=None if sent is None else sent.cmd,
                writer=begun.writer or "human" if sent is None else sent.writer,
                cwd=self.cwd,
                started_at=utc_now(),
                moment_s=now,
                raw_start=self._command_start,
            )
        )

    def _end(self, ended: bd.CommandEnd, now: float, raw_end: int) -> None:
        rules = self.rules
        output = self.printed.take() if self._rearmed is None else self._rearmed
        output = without_last_lines(output, ended.prompt_lines)
        typed: TypedText
        if self._has_echo:
            typed, output = rules.adapter.split_echo(output)
        else:
            typed = self._typed_text(ended)
            rules.is_incomplete |= rules.adapter.is_incomplete(ended.exit, output.text)
        self._settle()
        self._events.append(
            msg.CommandEnded(
                raw_start=self._command_start,
                exit=ended.exit,
                end="lost" if ended.lost else "exited",
                typed=typed if isinstance(typed, str) else None,
                untyped=typed.reason if isinstance(typed, UnknownText) else None,
                incomplete=rules.is_incomplete,
                output=output,
                finished_at=utc_now(),
                moment_s=now,
                raw_end=raw_end,
            )
        )
        rules.is_incomplete = False

    def _typed_text(self, ended: bd.CommandEnd) -> TypedText:
        if ended.lost:
            return UnknownText(LOST)
        if self._is_ours and ended.history is None:
            return UnknownText(NOT_SAID)  # nothing was stored, and the text is known
        line = TypedLine(
            commands=ended.commands,
            continuations=ended.continuations,
            keyed=self.rules.boundaries.typed_text,
        )
        return self.rules.adapter.read_typed(ended.history, line)

    def _nothing_ran(self, nothing: bd.NoCommand, now: float, raw_end: int) -> None:
        output = without_first_line_feed(self.printed.take())
        if self.rules.is_incomplete:
            self._events += self.rules.failed("incomplete")
            return
        assert self.rules.sent is not None
        has_printed = bool((output.text + output.errors).strip())
        self._settle()
        self._events.append(
            msg.NothingRan(
                call=self.rules.sent.call,
                exit=bd.exit_of_nothing(nothing, printed=has_printed),
                output=output,
                finished_at=utc_now(),
                moment_s=now,
                raw_end=raw_end,
            )
        )

    def _line_continues(self, secondary: bd.SecondaryPrompt) -> None:
        if self._has_echo:
            return
        self.printed.suspend(self.position)  # a line before may be an open command
        if secondary.submitted and not self.rules.is_incomplete:
            self._events += self.rules.drop()

    def _prompted(self, now: float) -> None:
        is_first, self.was_prompted = not self.was_prompted, True
        self.printed.discard()
        if not self.rules.adapter.reports_starts:
            self.printed.begin()
        self._settle()
        self._events.append(PromptReached(is_first))
        self._events += self.rules.prompted(now)

    def _line_reported(self, report: bd.LineReport, now: float) -> None:
        if not report.at_prompt:
            self.editor_answered = True
            if report.rearmed and not report.length:
                # An empty line makes the shell print the prompt again, now with its marks.
                self._events.append(PtyInput(b"\r"))
        self._settle()  # earlier queries are answered before a submission
        self._events += self.rules.line_reported(report, now)


_AT_WORK = (bd.ShellPhase.STARTING, bd.ShellPhase.RUNNING, bd.ShellPhase.RETURNING)
_WITH_COMMAND = (bd.ShellPhase.RUNNING, bd.ShellPhase.SUBMITTED)

"""``Tracker``: turns the bytes of one shell's PTY into notifications about its commands.

Each byte goes through the parser, the raw log and the capture. ``Boundaries`` assigns the marks to
commands and writers; the tracker adds times, cursors and text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import structlog
import trio

from aegis.clock import utc_now
from aegis.journal.raw_log import RawLog
from aegis.processes.capture import CapturedOutput, without_first_line_feed, without_last_lines
from aegis.protocol import terminals as api
from aegis.terminals import faults
from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import PROBE_S, Rearmed, ShellAdapter
from aegis.terminals.hooks.greeting import Greeting
from aegis.terminals.output.shell_output import CommandOutput, OutputObserver, VisibleOutput
from aegis.terminals.parse import boundaries as bd
from aegis.terminals.parse.osc133 import Event, Mark, PasteMode, Text
from aegis.terminals.parse.reported_directory import DirectoryReports
from aegis.terminals.parse.stderr_split import SPLIT_WAIT_S, ErrorText, ShellStreams
from aegis.terminals.screen.modes import RESET, Modes, ModeWatch
from aegis.terminals.shell.input_queue import InputQueue
from aegis.terminals.shell.notifications import command_ended, command_started, nothing_ran
from aegis.terminals.shell.port import ShellPort
from aegis.terminals.shell.typed_line import EmptyLineQuery, KeyedLines, LineDrop

log = structlog.get_logger("aegis.terminals")


class Tracker:
    """Follows the shell called ``name``; ``notify`` is called with each notification, in order.

    ``is_used``: a command began, or keys were sent. ``observers`` get every byte once it is in the
    raw log; one of them may put the directories that programs report into ``reports``. ``modes`` is
    fed here, for all.
    """

    def __init__(
        self,
        name: str,
        adapter: ShellAdapter,
        raw_log: RawLog,
        shell: ShellPort,
        notify: Callable[[Any], None],
        observers: Sequence[OutputObserver] = (),
        modes: ModeWatch | None = None,
    ) -> None:
        self._name = name
        self._modes = modes or ModeWatch()
        self._modes_before: Modes | None = None
        self.adapter = adapter
        self._streams = ShellStreams(adapter.secret, split=adapter.error_tty is not None)
        self._visible = VisibleOutput(raw_log, observers)
        self._shell = shell
        self._notify = notify
        self._boundaries = _boundaries_of(adapter)
        self.printed = CommandOutput()
        self._sent: msg.Submit | None = None
        self._command_start = 0
        self._pending: msg.Submit | None = None
        self.input = InputQueue(shell, self._typed, self._is_being_read)
        self._incomplete = self._has_echo = False
        self._drop = LineDrop(shell, lambda: self._boundaries.asked())
        self._keyed = KeyedLines()
        self.greeting = Greeting(adapter.greeting, shell.write, shell.look_again_after)
        self.cwd: str | None = None
        self._line_query = EmptyLineQuery(shell, lambda: self._boundaries, lambda: self.adapter)
        self.typing: api.Typing | None = None
        self.reports = DirectoryReports()
        self.was_prompted = self.is_used = False
        self.is_pasting = False
        self.editor_answered: bool | None = None
        self._rearmed: CapturedOutput | None = None
        self._is_replaced = False

    def feed(self, data: bytes) -> None:
        """Process bytes that were read from the PTY."""
        self._take(self._streams.feed(self._line_query.without_redraw(data)))
        self._was_fed()

    def feed_errors(self, data: bytes) -> None:
        """Process bytes that were read from the PTY of standard error."""
        self._take(self._streams.feed_errors(data))
        self._was_fed()

    def _take(self, events: Iterable[Event | ErrorText]) -> None:
        try:
            for event in events:
                match event:
                    case Text(data=text):
                        self._print(text)
                    case ErrorText(data=text):
                        self._print_error(text)
                    case PasteMode(on=on, data=sequence):
                        self._visible.write(sequence)
                        self._modes.feed(sequence)
                        self.is_pasting = on
                        self._happened(self._boundaries.paste_mode(on))
                    case Mark():
                        self._follow_mark(event)
        finally:
            self._visible.publish()  # a reader has what was printed before a crash

    def _was_fed(self) -> None:
        self.input.release()
        if self._streams.begins_to_wait(trio.current_time()):
            self._shell.look_again_after(SPLIT_WAIT_S)
        self._notify_typing()
        self._notify_directory()

    # A shell whose marks are missed (``Rearming``).

    @property
    def phase(self) -> bd.ShellPhase:
        """The phase of the shell, by its marks."""
        return self._boundaries.phase

    @property
    def is_holding_back(self) -> bool:
        """Whether output or marks of one PTY wait for the other; the end mark may be among them."""
        return self._streams.is_waiting

    @property
    def integration(self) -> api.Integration:
        """How its commands are followed."""
        return self.adapter.integration

    def probe_editor(self) -> None:
        """Probe whether an unexpected line editor is the shell's.

        ``editor_answered`` is False until it answers, and None before a probe and after each start
        of a command.
        """
        self.editor_answered = False
        self._boundaries.asked()
        self._shell.write(self.adapter.probe_key)

    def prompt_unseen(self) -> None:
        """Note a prompt without a mark."""
        self._happened(self._boundaries.prompt_unseen())

    def rearm(self, rearmed: Rearmed, *, is_replaced: bool = False) -> None:
        """Make the shell at the prompt read its hook, and follow the marks of that hook.

        ``is_replaced``: it is another program than the one before, without its variables.
        The open command ends, as lost, with the first of those marks. Its output ends before the
        line of the prompt.
        """
        self.close()
        self._rearmed = without_last_lines(self.printed.snapshot())
        self.adapter = rearmed.adapter
        self.greeting = Greeting(b"", self._shell.write, self._shell.look_again_after)
        self._streams = ShellStreams(self.adapter.secret, split=self.adapter.error_tty is not None)
        self._is_replaced = is_replaced
        self._shell.write(rearmed.keys)

    def fell_back(self) -> None:
        """Switch to the fallback integration: the shell has not read its hook."""
        self.adapter = attrs.evolve(self.adapter, integration="fallback")
        self._notify(msg.IntegrationChanged(integration="fallback"))

    def _answers_anew(self) -> None:
        """Start with new boundaries, at the first mark of a hook that was read again."""
        lost = self._boundaries.replaced()
        self.printed.discard()
        self._happened(lost)
        self._rearmed, self._sent, self._incomplete = None, None, False
        self._boundaries = _boundaries_of(self.adapter)
        self.was_prompted = False
        integration = self.adapter.integration
        self._notify(msg.IntegrationChanged(integration=integration, is_replaced=self._is_replaced))

    def submit(self, submission: msg.Submit) -> None:
        """Type a command, now or once the line is known to be empty; or refuse it."""
        if self._boundaries.can_submit():
            self._send(submission)
        elif self._boundaries.can_probe():
            self._pending = submission
            if self.adapter.probe_delay_s:
                self._shell.look_again_after(self.adapter.probe_delay_s)
            else:
                self._probe()
        else:
            self._refuse(submission)

    def keys(self, writer: str, data: bytes) -> None:
        """Send keys, or queue them."""
        self.input.keys(writer, data)
        self._notify_typing()

    def _typed(self, writer: str, data: bytes) -> None:
        self.is_used = True
        self._keyed.sent(data, is_empty=self._boundaries.is_line_empty())
        self._happened(self._boundaries.keys(writer, data))
        self._line_query.typed()

    def signal(self, writer: str, send: Callable[[], bool], *, is_interrupt: bool) -> None:
        """Signal the foreground process group, or queue that."""
        self.input.signal(writer, send, is_interrupt=is_interrupt)
        self._notify_typing()

    def look_again(self) -> None:
        """Check what is due: queued input, held output, probes."""
        self.input.release()
        self._take(self._streams.feed(self._line_query.overdue()))
        self._line_query.look()
        self._notify_typing()
        self._take(self._streams.overdue(trio.current_time()))
        if self._pending is not None and self._boundaries.phase is bd.ShellPhase.PROMPT:
            self._probe()
        if self._incomplete and self._boundaries.phase is bd.ShellPhase.SECONDARY:
            self._drop.again()
        if not self.was_prompted and self.greeting.is_due():
            self.greeting.send()

    def _probe(self) -> None:
        if not self.adapter.types_probe or self._shell.is_in_front():
            self._boundaries.probed()
            self._streams.probed(self.adapter.probe_key)
            self._shell.write(self.adapter.probe_key)
        self._shell.look_again_after(PROBE_S)

    def _is_being_read(self) -> bool:
        """Whether the shell has the text of a submission that it has not answered."""
        return self._boundaries.phase is bd.ShellPhase.SUBMITTED or self._incomplete

    @property
    def at_prompt(self) -> bool:
        """Whether the shell is at its prompt, without a submission."""
        return self.was_prompted and self._boundaries.phase is bd.ShellPhase.PROMPT

    @property
    def is_at_work(self) -> bool:
        """Whether a command or a start-up file runs, or a prompt is still to come."""
        return self.phase in (
            bd.ShellPhase.STARTING,
            bd.ShellPhase.RUNNING,
            bd.ShellPhase.RETURNING,
        )

    @property
    def submitted(self) -> int | None:
        """The call whose text is pending, or with the shell, and did not begin yet."""
        if self._pending is not None:
            return self._pending.call
        is_unread = self._boundaries.is_submitting or self._incomplete
        return self._sent.call if self._sent is not None and is_unread else None

    def report(self, call: int) -> None:
        """Send the output so far of the current command; refuse one that is not typed yet."""
        if self._pending is not None and self._pending.call == call:
            self._refuse(self._pending)
            return
        self._visible.flush()
        self._notify(
            msg.OutputSoFar(
                call=call, output=self.printed.snapshot(), raw_end=self._visible.position
            )
        )

    @property
    def is_running(self) -> bool:
        """Whether a command runs, or was submitted and is about to."""
        return self._boundaries.phase in (bd.ShellPhase.RUNNING, bd.ShellPhase.SUBMITTED)

    def newest_line(self) -> str:
        """Return the newest line of the current command; empty without output or command."""
        return self.printed.newest_line() if self.is_running else ""

    def close(self) -> None:
        """Flush the parsers, after the end of the shell or of its hook."""
        self._take(self._streams.feed(self._line_query.release()))
        self._take(self._streams.close())
        self._visible.flush()

    def switch_modes_back(self, *, prompted: bool = False) -> None:
        """Switch the modes back that a program has left on, for all viewers.

        ``prompted``: the prompt was drawn before the end of the command was reported.
        """
        # Written to the raw log behind the end mark: so the bytes are in no record, and each
        # cursor is the same for everybody. What the prompt switches on comes after them.
        before = self._modes_before or RESET
        sequences = self._modes.now.restored(before, prompted=prompted)
        if sequences:
            self._visible.write(sequences)
            self._modes.feed(sequences)

    def _print(self, text: bytes) -> None:
        self._visible.write(text)
        self._modes.feed(text)
        self.printed.feed(text)
        self._line_query.printed(text)

    def _print_error(self, text: bytes) -> None:
        self._visible.write(text)
        self._modes.feed(text)
        self.printed.feed_errors(text)

    def _send(self, submission: msg.Submit) -> None:
        self._sent, self._incomplete, self._pending = submission, False, None
        self._visible.publish()  # answers to earlier queries are sent before the submission
        try:
            data = self.adapter.encode(submission.cmd)
        except OSError as error:
            log.warning("submission not written", error=str(error))
            self._failed("unwritten")
            return
        self._boundaries.submitted()
        self._streams.submitted()
        self.input.submitting(len(data))
        self._shell.write(data)

    def _refuse(self, submission: msg.Submit) -> None:
        self._pending = None
        self._notify_typing()
        is_prompt = self._boundaries.phase is bd.ShellPhase.PROMPT
        self._notify(msg.SubmissionRefused(call=submission.call, at_prompt=is_prompt))

    def _follow_mark(self, mark: Mark) -> None:
        if self._rearmed is not None:
            self._answers_anew()
        if mark.kind == "D":
            self._keyed.ended()
        before = self._visible.write(mark.visible)
        if mark.kind in ("C", "D"):
            is_prompted = "r" in mark.params or "p" in mark.params
            if self._modes_before is None and not is_prompted:
                self._modes_before = self._modes.now  # what the user's start-up files have switched
            if mark.kind == "D":
                self.switch_modes_back(prompted=is_prompted)
        if mark.kind == "B":
            self._line_query.drawn()
        self._happened(self._boundaries.mark(mark), mark_begins=before)

    def _happened(self, events: list[bd.BoundaryEvent], *, mark_begins: int | None = None) -> None:
        for event in events:
            match event:
                case bd.CommandBegin():
                    self._started(event)
                case bd.CommandEnd():
                    self._ended(event, self.printed.ended_at or self._at(mark_begins))
                case bd.NoCommand(submitted=True):
                    self._nothing_ran(event, self._at(mark_begins))
                case bd.SubmissionLost():
                    self._failed("swallowed")
                case bd.AcceptedLine() | bd.OutputEnded() | bd.OutputResumed():
                    self._output_turns(event, self._at(mark_begins))
                case bd.SecondaryPrompt():
                    self._line_continues(event)
                case bd.PromptShown():
                    self._prompted()
                case bd.LineReport():
                    self._line_reported(event)

    def _output_turns(self, event: bd.BoundaryEvent, cursor: int) -> None:
        if isinstance(event, bd.OutputEnded):
            self.printed.suspend(cursor)
        else:
            self.printed.resume()

    def _at(self, mark_begins: int | None) -> int:
        return self._visible.position if mark_begins is None else mark_begins

    def _started(self, begun: bd.CommandBegin) -> None:
        faults.START_MARK_AFTER.hit()
        self.is_used = True
        self.editor_answered = None
        self._keyed.began()
        self._has_echo = not (begun.submitted or self.adapter.reports_starts)
        if not self._has_echo:
            self.printed.begin()
        self._command_start = self._visible.position
        sent = self._sent if begun.submitted else None
        self._notify(
            command_started(self._name, begun, sent, cwd=self.cwd, raw_start=self._command_start)
        )

    def _ended(self, ended: bd.CommandEnd, raw_end: int) -> None:
        faults.END_MARK_AFTER.hit()
        output = self._take_output() if self._rearmed is None else self._rearmed
        output = without_last_lines(output, ended.prompt_lines)
        if self._has_echo:
            typed, output = self.adapter.split_echo(output)
        else:
            typed = self._keyed.text_of(ended, self.adapter)
            self._incomplete |= self.adapter.is_incomplete(ended.exit, output.text)
        self._notify(
            command_ended(
                ended,
                output,
                typed=typed,
                incomplete=self._incomplete,
                raw_start=self._command_start,
                raw_end=raw_end,
            )
        )
        self._incomplete = False

    def _nothing_ran(self, nothing: bd.NoCommand, raw_end: int) -> None:
        output = without_first_line_feed(self._take_output())
        if self._incomplete:
            self._failed("incomplete")
            return
        assert self._sent is not None
        self._notify(nothing_ran(self._sent, nothing, output, raw_end=raw_end))

    def _line_continues(self, secondary: bd.SecondaryPrompt) -> None:
        if self._has_echo:
            return
        self.printed.suspend(self._visible.position)  # a line before may be an open command
        if secondary.submitted and not self._incomplete:
            self._incomplete = True
            self._drop.begin(self.adapter.interrupts)

    def _failed(self, why: msg.WhyNotRun) -> None:
        self._incomplete = False
        if self._sent is not None:
            self._notify(msg.SubmissionFailed(call=self._sent.call, why=why))

    def _prompted(self) -> None:
        if not self.was_prompted:
            self._shell.hook_answered()
        self.was_prompted = True
        self._line_query.prompted()
        self.printed.discard()
        if not self.adapter.reports_starts:
            self.printed.begin()
        self.cwd = self._shell.working_directory()
        self._visible.publish()
        self.reports.reset()
        self._notify(msg.Prompted(cwd=self.cwd))
        if self._pending is not None and self._boundaries.can_submit():
            # A Ctrl-C may have taken the probe with it; the prompt behind it needs none.
            self._send(self._pending)
        elif self._pending is not None:
            # No second probe yet: the first may be answered before the keys after it are read.
            self._shell.look_again_after(PROBE_S)

    def _line_reported(self, report: bd.LineReport) -> None:
        self._line_query.answered()
        if not report.at_prompt:
            self._editor_reported(report)
        elif self._incomplete and self._boundaries.phase is bd.ShellPhase.SECONDARY:
            self._drop.again()
        if self._pending is not None:
            # Not submitted yet if the report was of an earlier probe, or a Ctrl-C came behind it.
            self.submit(self._pending)

    def _editor_reported(self, report: bd.LineReport) -> None:
        self.editor_answered = True
        if report.rearmed and not report.length:
            # An empty line makes the shell print the prompt again, now with its marks.
            self._shell.write(b"\r")

    def _take_output(self) -> CapturedOutput:
        self._visible.flush()
        return self.printed.take()

    def _notify_directory(self) -> None:
        """Notify the front of a directory that a program has reported."""
        # At the prompt, /proc is more reliable than the report.
        reported = self.reports.take()
        is_prompt = self._boundaries.phase is not bd.ShellPhase.RUNNING
        if reported is not None and is_prompt:
            reported = self.cwd = self._shell.working_directory()
        if reported is not None:  # None: the directory was removed, even if a prompt reports it
            self._notify(msg.DirectoryChanged(cwd=reported, is_prompt=is_prompt))

    def _notify_typing(self) -> None:
        writer = self._boundaries.typing
        if writer != (self.typing and self.typing.writer):
            self.typing = None if writer is None else api.Typing(writer=writer, since=utc_now())
            self._notify(msg.TypingChanged(typing=self.typing))


def _boundaries_of(adapter: ShellAdapter) -> bd.Boundaries:
    return bd.Boundaries(reports_starts=adapter.reports_starts, is_one_line=adapter.is_one_line)

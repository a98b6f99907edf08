"""The messages between the actors of one terminal.

The front (``Terminal``) owns the queue and the records, the ``Shell`` owns the PTY, the
``LedgerWriter`` the ledger. Cursors are byte offsets since the terminal's first spawn;
``moment_s`` is monotonic seconds.
"""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.processes.capture import CapturedOutput
from aegis.protocol.feeds import OwnedSize
from aegis.protocol.output import OutputChunk, Progress
from aegis.protocol.terminals import (
    CommandRecord,
    Done,
    Integration,
    NeedsInput,
    TerminalInfo,
    Typing,
)

WhyEnded = Literal["closed", "killed_by_restart"]

NO_OUTPUT = CapturedOutput(text="", total_bytes=0, truncated=False)


@attrs.frozen(kw_only=True)
class CommandKey:
    """The identity of a command of the shell named ``shell``.

    ``began_at`` is the cursor at which the shell reported its start; until then it is only
    submitted, for the call of number ``call``. Its output begins at ``raw_start`` for readers.
    """

    shell: str
    call: int | None
    began_at: int | None
    raw_start: int


# To the shell.


@attrs.frozen(kw_only=True)
class Introduce:
    """Send ``Introduction`` to the front, which has just started."""


@attrs.frozen(kw_only=True)
class Submit:
    """Type ``cmd`` for call number ``call`` of ``writer``, if the shell is at an empty prompt."""

    call: int
    cmd: str
    writer: str


@attrs.frozen(kw_only=True)
class TypeKeys(Request[Done]):
    """Write these keys to the PTY, as ``writer``."""

    keys: bytes
    writer: str


@attrs.frozen(kw_only=True)
class SendSignal(Request[Done]):
    """Send the signal of this name (``INT``) to the foreground process group, for ``writer``.

    ``command``: only while this one runs; else ``NotFound``.
    """

    signal: str
    writer: str
    command: CommandKey | None = None


@attrs.frozen(kw_only=True)
class SetSize:
    """Set the size of the window, for fresh shells too; ``owner`` owns the size from now on."""

    rows: int
    cols: int
    owner: OwnedSize | None = None


@attrs.frozen(kw_only=True)
class ReportOutput:
    """Send the output of the current command so far (``OutputSoFar``), for ``call``."""

    call: int


@attrs.frozen(kw_only=True)
class FetchOutput(Request[OutputChunk]):
    """Read output from ``cursor`` on (None: from the current end).

    Answered when there is output, at the latest after ``wait_s``. ``max_chars`` limits the
    characters of plain text. ``end``: read up to this cursor, and do not wait there. ``command``:
    read up to the end of this command, which has not ended as far as is known.
    """

    cursor: int | None
    max_bytes: int
    wait_s: float = 0.0
    plain: bool = True
    max_chars: int | None = None
    end: int | None = None
    command: CommandKey | None = None


@attrs.frozen(kw_only=True)
class PrintedSoFar:
    """The output of the current command, up to ``raw_end``."""

    output: CapturedOutput
    raw_end: int


@attrs.frozen(kw_only=True)
class FetchPrinted(Request[PrintedSoFar]):
    """Return the output of the current command so far, as in its record."""


@attrs.frozen(kw_only=True)
class FetchLine(Request[Progress]):
    """Return the newest line of the current command, once there is output after ``after``."""

    after: int


@attrs.frozen(kw_only=True)
class CommandRecorded:
    """The record of the command whose output ended at ``raw_end`` is in the ledger.

    Notifications about it and about earlier commands need not be sent again.
    """

    raw_end: int


@attrs.frozen(kw_only=True)
class StartNow:
    """Start the fresh shell that is delayed because the ones before it ended without use."""


@attrs.frozen(kw_only=True)
class EndShell:
    """End the shell and all its processes, for good; ``ShellEnded`` follows with this ``end``."""

    end: WhyEnded


# From the shell to the front.


@attrs.frozen(kw_only=True)
class ShellStarted:
    """A fresh shell runs, named ``shell``; ``first_cursor`` is where its output begins.

    ``program`` is its path if that is not the one in the settings. ``gone`` is the last directory,
    where it could not start.
    """

    shell: str
    pid: int
    integration: Integration
    first_cursor: int
    program: str | None = None
    gone: str | None = None


@attrs.frozen(kw_only=True)
class Prompted:
    """The shell is at its prompt, in directory ``cwd``."""

    cwd: str | None


@attrs.frozen(kw_only=True)
class DirectoryChanged:
    """A program reported ``cwd`` as its directory; ``is_prompt``: the shell itself is there."""

    cwd: str
    is_prompt: bool


@attrs.frozen(kw_only=True)
class TypingChanged:
    """``typing`` names the writer of an unfinished line at the prompt; None: there is none."""

    typing: Typing | None


@attrs.frozen(kw_only=True)
class NeedsInputChanged:
    """The current command waits for input; None: it does not, as far as is known.

    ``may_need_input``: a program reads the terminal, but something else is done meanwhile. Output
    or keys end the wait until the command is quiet again.
    """

    needs_input: NeedsInput | None
    may_need_input: NeedsInput | None = None


@attrs.frozen(kw_only=True)
class IntegrationChanged:
    """The integration of the running shell has changed.

    ``is_replaced``: another program runs in place of the shell now (``exec bash``).
    """

    integration: Integration
    is_replaced: bool = False


@attrs.frozen(kw_only=True)
class SubmissionRefused:
    """The command of ``call`` was not typed.

    ``at_prompt``: a line is being typed at the prompt; else a command runs.
    """

    call: int
    at_prompt: bool


WhyNotRun = Literal["incomplete", "swallowed", "unwritten"]


@attrs.frozen(kw_only=True)
class SubmissionFailed:
    """The command of ``call`` was typed and did not run.

    ``incomplete``: the shell could not finish reading it and was interrupted. ``swallowed``: a
    program that was typed ahead read the text as its input. ``unwritten``: it was not typed, as
    the disk refused the file from which the shell reads it.
    """

    call: int
    why: WhyNotRun


@attrs.frozen(kw_only=True)
class CommandStarted:
    """A command began: that of ``call``, or (None) one that ``writer`` typed.

    ``cmd`` is None if the text is not known yet. ``raw_start`` is unique to this command.
    """

    shell: str
    call: int | None
    cmd: str | None
    writer: str
    cwd: str | None
    started_at: str
    moment_s: float
    raw_start: int


@attrs.frozen(kw_only=True)
class CommandEnded:
    """The command that began at ``raw_start`` has ended.

    ``typed`` is the text of a typed command; None if it is not known, for the reason in
    ``untyped``. ``end`` is ``lost`` if the shell showed a prompt without reporting the end.
    ``incomplete``: the rest of the submitted text was incomplete and was interrupted.
    """

    raw_start: int
    exit: int | None
    end: Literal["exited", "lost"]
    typed: str | None
    untyped: str | None = None
    incomplete: bool
    output: CapturedOutput
    finished_at: str
    moment_s: float
    raw_end: int


@attrs.frozen(kw_only=True)
class NothingRan:
    """The text of ``call`` started no command: it was empty, a comment, or not valid syntax."""

    call: int
    exit: int
    output: CapturedOutput
    finished_at: str
    moment_s: float
    raw_end: int


@attrs.frozen(kw_only=True)
class OutputSoFar:
    """The answer to ``ReportOutput``."""

    call: int
    output: CapturedOutput
    raw_end: int


@attrs.frozen(kw_only=True)
class ShellLoss:
    """The loss of a shell between two commands: ``words`` were printed since its prompt.

    They begin at the cursor ``raw_start``. ``replaced`` is a sentence about a shell that was ended
    because another program had replaced it.
    """

    words: str
    raw_start: int
    replaced: str | None = None


@attrs.frozen(kw_only=True)
class ShellEnded:
    """The shell's process has ended, and all processes that it had started.

    ``exit`` is its exit code, -n for a signal, None without a shell; ``output`` is that of the
    current command. ``leftover`` names processes that could not be ended. ``end``: it was ended on
    purpose, and no fresh shell follows. ``loss`` is set where the end has to be recorded even if no
    command ran.
    """

    shell: str
    exit: int | None
    output: CapturedOutput
    finished_at: str
    moment_s: float
    raw_end: int
    leftover: tuple[str, ...] = ()
    end: WhyEnded | None = None
    loss: ShellLoss | None = None

    def without_output(self) -> ShellEnded:
        """Return the notification for a command that was queued behind the current one."""
        return attrs.evolve(self, output=NO_OUTPUT)


@attrs.frozen(kw_only=True)
class ShellFailed:
    """No shell could be kept running; ``why`` includes the remedy. A retry may still start one."""

    why: str


CommandNotification = (
    CommandStarted | CommandEnded | NothingRan | SubmissionRefused | SubmissionFailed | ShellEnded
)
"""Notifications that decide about commands and their records; sent again to a restarted front."""


@attrs.frozen(kw_only=True)
class Introduction:
    """The state of the shell's actor, for a front that does not know this incarnation of it.

    ``life`` is the incarnation, from 1; it began with the output at ``first_cursor``, and the
    output ends at ``cursor`` now. ``shells`` are the names of its shells and ``shell`` the newest
    of them; ``pid`` is None while none runs. ``was_prompted``: the running shell has shown a
    prompt; ``at_prompt``: it is at the prompt now. ``submitted`` is the call whose text is with the
    shell and did not begin yet. ``needs_input`` is the input for which the current command waits.
    ``ending``: no further shell follows. ``notifications`` are those that may not be in the ledger
    yet, oldest first.
    """

    life: int
    first_cursor: int
    cursor: int
    shells: tuple[str, ...]
    shell: str
    pid: int | None
    integration: Integration
    was_prompted: bool
    at_prompt: bool
    cwd: str | None
    typing: Typing | None
    submitted: int | None
    needs_input: NeedsInput | None
    failure: str
    ending: WhyEnded | None
    notifications: tuple[CommandNotification, ...]


# To and from the ledger writer.


@attrs.frozen(kw_only=True)
class AppendRecord:
    """Append this record to the ledger; ``RecordAppended`` or ``AppendFailed`` follows.

    ``after`` is the record that must be in the ledger before it, -1 if none is pending. Numbers
    between the two were lost with a ledger that was damaged or removed.
    """

    record: CommandRecord
    after: int


@attrs.frozen(kw_only=True)
class SyncedLedger:
    """The records up to the number ``newest`` are synced; -1 if there are none."""

    newest: int


@attrs.frozen(kw_only=True)
class ReportSynced(Request[SyncedLedger]):
    """Return which records of the ledger are synced.

    ``settled``: once each record that is written is synced, or refused by the disk.
    """

    settled: bool = False


@attrs.frozen(kw_only=True)
class RecordAppended:
    """The record ``seq`` is in the ledger, synced, and so are all before it."""

    seq: int


@attrs.frozen(kw_only=True)
class AppendFailed:
    """The record ``seq`` could not be made durable; ``why`` is one sentence."""

    seq: int
    why: str


# To the front, from the directory and from its own timers.


@attrs.frozen
class OpenCommand:
    """The writer's tag, the start and the end of a command, as in its record.

    ``ended_at`` is None while it runs.
    """

    writer: str
    started_at: str
    ended_at: str | None = None


@attrs.frozen(kw_only=True)
class OpenCommands:
    """The commands without a record, oldest first. ``shell`` is the pid of the shell.

    ``opener`` is the tag of the caller who opened the terminal.
    """

    shell: int | None
    opener: str
    commands: list[OpenCommand]


@attrs.frozen
class ReadOpenCommands(Request[OpenCommands]):
    """Return the commands that have not been recorded yet."""


@attrs.frozen(kw_only=True)
class Describe(Request[TerminalInfo]):
    """Return the description of the terminal."""


@attrs.frozen(kw_only=True)
class AwaitPrompt(Request[TerminalInfo]):
    """Answer when the shell shows its first prompt, or has failed, or after ``timeout_s``."""

    timeout_s: float


@attrs.frozen(kw_only=True)
class EndedTerminal:
    """The terminal has ended; ``leftover`` names processes that could not be ended."""

    leftover: tuple[str, ...]


@attrs.frozen(kw_only=True)
class EndTerminal(Request[EndedTerminal]):
    """End the shell and write the record of the current command, with this ``end``."""

    end: WhyEnded


@attrs.frozen(kw_only=True)
class RunDeadline:
    """The time of call number ``call`` is up."""

    call: int


@attrs.frozen(kw_only=True)
class PromptDeadline:
    """The time of the call number ``call``, which waits for the first prompt, is up."""

    call: int


@attrs.frozen(kw_only=True)
class RetryAppends:
    """Try again to write the records that the disk refused."""

"""What the actors of one terminal say to each other.

The front (``Terminal``) owns the queue and the records, the ``Shell`` owns the PTY, the
``LedgerWriter`` the ledger. Cursors are byte offsets since the terminal's first spawn;
``moment_s`` is monotonic seconds.
"""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.processes.capture import CapturedOutput
from aegis.protocol.output import OutputChunk, Progress
from aegis.protocol.terminals import (
    CommandRecord,
    Done,
    Integration,
    NeedsInput,
    TerminalInfo,
    Typing,
)
from aegis.terminals.command_key import CommandKey

WhyEnded = Literal["closed", "killed_by_restart"]

NO_OUTPUT = CapturedOutput(text="", total_bytes=0, truncated=False)


# To the shell.


@attrs.frozen(kw_only=True)
class Introduce:
    """Tell the front (a fresh one) how the shell stands."""


@attrs.frozen(kw_only=True)
class Submit:
    """Type ``cmd`` for call number ``call`` of ``writer``, if nothing runs and nobody is typing."""

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
    """Send the signal of this name (``INT``) to the process group in front, for ``writer``.

    ``command``: only while this one runs; else ``NotFound``.
    """

    signal: str
    writer: str
    command: CommandKey | None = None


@attrs.frozen(kw_only=True)
class SetSize:
    """The window has this size from now on, for fresh shells too."""

    rows: int
    cols: int


@attrs.frozen(kw_only=True)
class ReportOutput:
    """Say what the command in flight printed so far (``OutputSoFar``), for ``call``."""

    call: int


@attrs.frozen(kw_only=True)
class FetchOutput(Request[OutputChunk]):
    """Read output from ``cursor`` (None: from where it stands now) on.

    Answered when there is some, after ``wait_s`` in any case. ``max_chars``: no more characters of
    plain text than that. ``end``: no byte from this cursor on, and nothing to wait for there.
    ``command``: nothing behind the end of this one, which has not ended as far as is known.
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
    """What the command in flight has printed, up to ``raw_end``."""

    output: CapturedOutput
    raw_end: int


@attrs.frozen(kw_only=True)
class FetchPrinted(Request[PrintedSoFar]):
    """Say what the command in flight printed so far, as its record would."""


@attrs.frozen(kw_only=True)
class FetchLine(Request[Progress]):
    """Say which line the command in flight printed last, once output stands beyond ``after``."""

    after: int


@attrs.frozen(kw_only=True)
class CommandRecorded:
    """The record of the command whose output ended at ``raw_end`` is in the ledger.

    News of it, and of what was before it, need not be told again.
    """

    raw_end: int


@attrs.frozen(kw_only=True)
class EndShell:
    """End the shell and all its processes, for good; ``ShellEnded`` follows with this ``end``."""

    end: WhyEnded


# From the shell to the front.


@attrs.frozen(kw_only=True)
class ShellStarted:
    """A fresh shell runs, named ``shell``; ``first_cursor`` is where its output begins."""

    shell: str
    pid: int
    integration: Integration
    first_cursor: int


@attrs.frozen(kw_only=True)
class Prompted:
    """The shell waits at its prompt, in directory ``cwd``."""

    cwd: str | None


@attrs.frozen(kw_only=True)
class DirectoryChanged:
    """A program reported ``cwd`` as its directory; ``is_prompt``: the shell itself is there."""

    cwd: str
    is_prompt: bool


@attrs.frozen(kw_only=True)
class TypingChanged:
    """``typing`` says who has an unfinished line at the prompt; None: nobody."""

    typing: Typing | None


@attrs.frozen(kw_only=True)
class NeedsInputChanged:
    """The command that runs waits for input; None: for none (any more), as far as is known.

    Output or keys end it until the command is quiet again.
    """

    needs_input: NeedsInput | None


@attrs.frozen(kw_only=True)
class IntegrationChanged:
    """How commands are followed on the running shell is different from now on."""

    integration: Integration


@attrs.frozen(kw_only=True)
class SubmissionRefused:
    """The command of ``call`` was not typed.

    ``at_prompt``: somebody is typing there; else something runs.
    """

    call: int
    at_prompt: bool


WhyNotRun = Literal["incomplete", "swallowed", "unwritten"]


@attrs.frozen(kw_only=True)
class SubmissionFailed:
    """The command of ``call`` was typed and did not run.

    ``incomplete``: the shell could not finish reading it and was interrupted. ``swallowed``: a
    program that somebody had started by typing ahead read the text as its input. ``unwritten``:
    it was not typed, the disk refused the file that the shell would have read it from.
    """

    call: int
    why: WhyNotRun


@attrs.frozen(kw_only=True)
class CommandStarted:
    """A command began: that of ``call``, or (None) one that ``writer`` typed.

    ``cmd`` is None where the text is not known yet. ``raw_start`` belongs to no other command.
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
    ``untyped``. ``end`` is ``lost`` when the
    shell showed a prompt without saying how the command ended. ``incomplete``: the rest of the
    submitted text could not be read to its end and was interrupted.
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
class ShellEnded:
    """The shell's process is gone, and all that it left behind.

    ``exit`` is its exit code, -n for a signal, None if there was none; ``output`` what the command
    in flight printed. ``leftover`` names processes that could not be ended. ``end``: it was ended
    for good, no fresh shell follows.
    """

    shell: str
    exit: int | None
    output: CapturedOutput
    finished_at: str
    moment_s: float
    raw_end: int
    leftover: tuple[str, ...] = ()
    end: WhyEnded | None = None

    def without_output(self) -> ShellEnded:
        """What it is to a command that stood behind the one that ran."""
        return attrs.evolve(self, output=NO_OUTPUT)


@attrs.frozen(kw_only=True)
class ShellFailed:
    """No shell could be kept running; ``why`` says what to do, too. One may still be started."""

    why: str


CommandNotification = (
    CommandStarted | CommandEnded | NothingRan | SubmissionRefused | SubmissionFailed | ShellEnded
)
"""What decides about commands and their records: told again to a front that has just begun."""


@attrs.frozen(kw_only=True)
class Introduction:
    """How the shell's actor stands, to a front that knows nothing of this life of it.

    ``life`` counts from 1, and began when output stood at ``first_cursor``; it stands at
    ``cursor`` now. ``shells`` are the names of its shells and ``shell`` the newest of them, ``pid``
    is None while none runs. ``was_prompted``: the running one has shown a prompt,
    ``at_prompt``: it stands there now. ``submitted`` is the call whose text is with the shell and
    did not begin yet. ``needs_input`` is what the running command waits for. ``ending``: no further
    shell is to come. ``news`` is what may not be in the ledger yet, oldest first.
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
    news: tuple[CommandNotification, ...]


# To and from the ledger writer.


@attrs.frozen(kw_only=True)
class AppendRecord:
    """Put this record into the ledger; ``RecordAppended`` or ``AppendFailed`` follows.

    ``after`` is the record that must be there before it, -1 if none is on its way: numbers between
    it and this one were lost, with a ledger that was damaged or removed.
    """

    record: CommandRecord
    after: int


@attrs.frozen(kw_only=True)
class SyncedLedger:
    """The good part of the ledger ends at byte ``end``: everything before is synced."""

    end: int


@attrs.frozen(kw_only=True)
class ReportSynced(Request[SyncedLedger]):
    """Say how much of the ledger is synced."""


@attrs.frozen(kw_only=True)
class RecordAppended:
    """The record ``seq`` is in the ledger, synced; the ledger's good part ends at ``end``."""

    seq: int
    end: int


@attrs.frozen(kw_only=True)
class AppendFailed:
    """The record ``seq`` could not be made durable; ``why`` is one sentence."""

    seq: int
    why: str


# To the front, from the directory and from its own timers.


@attrs.frozen(kw_only=True)
class Describe(Request[TerminalInfo]):
    """Say how the terminal stands."""


@attrs.frozen(kw_only=True)
class AwaitPrompt(Request[TerminalInfo]):
    """Answer when the shell shows its first prompt, or has failed, or after ``timeout_s``."""

    timeout_s: float


@attrs.frozen(kw_only=True)
class Ended:
    """The terminal has ended; ``leftover`` names processes that could not be ended."""

    leftover: tuple[str, ...]


@attrs.frozen(kw_only=True)
class EndTerminal(Request[Ended]):
    """End the shell and write the record of what is in flight, with this ``end``."""

    end: WhyEnded


@attrs.frozen(kw_only=True)
class RunDeadline:
    """The time of call number ``call`` is up."""

    call: int


@attrs.frozen(kw_only=True)
class PromptDeadline:
    """Whoever waits for the first prompt since ``call`` has waited long enough."""

    call: int


@attrs.frozen(kw_only=True)
class RetryAppends:
    """Try again to write the records that the disk refused."""

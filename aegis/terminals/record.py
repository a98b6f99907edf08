"""The records of commands, from the events of a terminal to the lines of its ledger. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.journal.ledger import encode_line
from aegis.path_text import text_of_path
from aegis.processes.capture import CapturedOutput
from aegis.protocol.terminals import CommandRecord, End, NeedsInput
from aegis.terminals.messages import CommandKey, CommandStarted
from aegis.terminals.typed import LOST, NOT_ENDED, NOT_SAID, SHELL_ENDED

T = TypeVar("T")

NO_NUMBERS: frozenset[int] = frozenset()
"""The numbers of no commands: one for all terminals, as an empty set takes 216 bytes."""

SHELL_WRITER = "shell"
"""The writer of a record that is of no command."""

_UNTYPED: dict[End | None, str] = {None: NOT_ENDED, "exited": NOT_SAID, "lost": LOST}


@attrs.frozen(kw_only=True)
class Outcome:
    """The end of a command and of its output; times as in its record."""

    end: End
    exit: int | None
    finished_at: str
    duration_s: float | None
    raw_end: int


@attrs.frozen(kw_only=True)
class UnrecordedCommand:
    """A command that has its ``seq`` and no final record yet.

    ``cmd`` is None while the text of a typed command is not known. ``moment_s`` is the monotonic
    time of its start, None after a restart of the front. ``shell`` names its shell. ``began_at`` is
    the cursor at which the shell reported its start; until then it is only submitted, for the call
    of number ``call``. Its output begins at ``raw_start`` for readers. ``outcome`` is set once it
    has ended and its record is not in the ledger yet. ``new_shell_since``: see ``CommandRecord``.
    ``notice`` is the text of a record that is of no command.
    """

    seq: int
    cmd: str | None
    writer: str
    cwd: str | None
    started_at: str
    moment_s: float | None
    raw_start: int
    timed_out: bool = False
    shell: str = ""
    call: int | None = None
    began_at: int | None = None
    outcome: Outcome | None = None
    new_shell_since: int | None = None
    notice: str | None = None

    @property
    def key(self) -> CommandKey:
        """The identity of the command for its shell."""
        return CommandKey(
            shell=self.shell, call=self.call, began_at=self.began_at, raw_start=self.raw_start
        )

    def note(self) -> dict[str, object]:
        """Return the entry of the command in the in-flight note."""
        return {
            "seq": self.seq,
            "cmd": self.cmd,
            "writer": self.writer,
            "cwd": self.cwd,
            "started_at": self.started_at,
            "raw_start": self.raw_start,
            "timed_out": self.timed_out,
            "shell": self.shell,
            "call": self.call,
            "began_at": self.began_at,
            "outcome": None if self.outcome is None else attrs.asdict(self.outcome),
            "new_shell_since": self.new_shell_since,
            "notice": self.notice,
        }


def from_note(fields: Mapping[str, object]) -> UnrecordedCommand | None:
    """Return the command of a note's entry; None if the entry is invalid."""
    match fields:
        case {
            "seq": int(seq),
            "cmd": str() | None as cmd,
            "writer": str(writer),
            "cwd": str() | None as cwd,
            "started_at": str(started_at),
            "raw_start": int(raw_start),
            "timed_out": bool(timed_out),
            "shell": str(shell),
            "call": int() | None as call,
            "began_at": int() | None as began_at,
            "outcome": dict() | None as outcome,
        }:
            return UnrecordedCommand(
                seq=seq,
                cmd=cmd,
                writer=writer,
                cwd=None if cwd is None else text_of_path(cwd),
                started_at=started_at,
                moment_s=None,
                raw_start=raw_start,
                timed_out=timed_out,
                shell=shell,
                call=call,
                began_at=began_at,
                outcome=_outcome_from_note(outcome),
                new_shell_since=_of_type(int, fields.get("new_shell_since")),
                notice=_of_type(str, fields.get("notice")),
            )
        case _:
            return None


def _of_type(kind: type[T], value: object) -> T | None:
    """Return a field that notes of earlier versions do not have; None for a wrong type."""
    return value if isinstance(value, kind) else None


def commands_in(fields: Mapping[str, object]) -> list[UnrecordedCommand]:
    """Return the commands in a note, without invalid entries."""
    entries = fields.get("commands")
    if not isinstance(entries, list):
        return []
    commands = [from_note(entry) for entry in entries if isinstance(entry, dict)]
    return [command for command in commands if command is not None]


def given_before(fields: Mapping[str, object]) -> int:
    """Return the highest number in use according to the note; -1 if it has none."""
    following = fields.get("next")
    return following - 1 if type(following) is int else -1


def _outcome_from_note(fields: Mapping[str, object] | None) -> Outcome | None:
    try:
        return None if fields is None else structure(Outcome, dict(fields))
    except CodecError:  # the command then counts as killed
        return None


def outcome_of(
    command: UnrecordedCommand,
    *,
    end: End,
    exit_code: int | None,
    finished_at: str,
    moment_s: float | None,
    raw_end: int,
) -> Outcome:
    """Return the outcome of ``command``; ``moment_s`` is None if its duration is not known."""
    duration = None
    if moment_s is not None and command.moment_s is not None:
        duration = round(max(0.0, moment_s - command.moment_s), 6)
    return Outcome(
        end=end, exit=exit_code, finished_at=finished_at, duration_s=duration, raw_end=raw_end
    )


def outcome_in(record: CommandRecord) -> Outcome:
    """Return the outcome in a final record."""
    assert record.end is not None
    assert record.raw_end is not None
    assert record.finished_at is not None
    return Outcome(
        end=record.end,
        exit=record.exit,
        finished_at=record.finished_at,
        duration_s=record.duration_s,
        raw_end=record.raw_end,
    )


def unfinished_record(
    command: UnrecordedCommand,
    output: CapturedOutput,
    raw_end: int,
    needs: NeedsInput | None = None,
) -> CommandRecord:
    """Return the record so far of a running command.

    ``needs`` is the input for which it waits: known only while it runs, so no final record has it.
    """
    return _record(command, output, raw_end=raw_end, timed_out=command.timed_out, needs_input=needs)


def final_record(
    command: UnrecordedCommand, output: CapturedOutput, outcome: Outcome, untyped: str | None = None
) -> CommandRecord:
    """Return the final record of a command; ``untyped`` is the reason if its text is not known."""
    return _record(
        command,
        output,
        end=outcome.end,
        exit_code=outcome.exit,
        finished_at=outcome.finished_at,
        duration_s=outcome.duration_s,
        raw_end=outcome.raw_end,
        timed_out=command.timed_out,
        untyped=untyped,
    )


def begun_by(news: CommandStarted, seq: int) -> UnrecordedCommand:
    """Return the command ``seq``, whose start the shell has reported."""
    return UnrecordedCommand(
        seq=seq,
        cmd=news.cmd,
        writer=news.writer,
        cwd=news.cwd,
        started_at=news.started_at,
        moment_s=news.moment_s,
        raw_start=news.raw_start,
        shell=news.shell,
        call=news.call,
        began_at=news.raw_start,
    )


def behind(command: UnrecordedCommand, cursor: int) -> UnrecordedCommand:
    """Return a command that did not begin with its output at ``cursor`` or later.

    A command that was shown to a caller is returned unchanged.
    """
    if command.began_at is not None or command.timed_out:
        return command
    return attrs.evolve(command, raw_start=max(command.raw_start, cursor))


def record_line(record: CommandRecord) -> bytes:
    """Return the line of a record for the ledger."""
    fields = attrs.asdict(record, recurse=False)
    del fields["may_need_input"]  # of a running command only
    if record.new_shell_since is None:
        del fields["new_shell_since"]
    return encode_line(fields)


def record_in(fields: Mapping[str, Any]) -> CommandRecord:
    """Return the record in a line of a ledger. Raises ``CodecError``."""
    # An earlier version wrote directories that are not UTF-8 with lone surrogates.
    cwd = fields.get("cwd")
    given = {**fields, "cwd": text_of_path(cwd)} if isinstance(cwd, str) else fields
    return structure(CommandRecord, given)


def lost_record(command: UnrecordedCommand, finished_at: str, moment_s: float) -> CommandRecord:
    """Return the final record of a submission that was shown as running and never began."""
    outcome = outcome_of(
        command,
        end="lost",
        exit_code=None,
        finished_at=finished_at,
        moment_s=moment_s,
        raw_end=command.raw_start,
    )
    return final_record(command, CapturedOutput(text="", total_bytes=0, truncated=False), outcome)


def _record(
    command: UnrecordedCommand,
    output: CapturedOutput,
    *,
    raw_end: int,
    timed_out: bool,
    end: End | None = None,
    exit_code: int | None = None,
    finished_at: str | None = None,
    duration_s: float | None = None,
    needs_input: NeedsInput | None = None,
    untyped: str | None = None,
) -> CommandRecord:
    reason = None if command.cmd is not None else untyped or _UNTYPED.get(end, SHELL_ENDED)
    return CommandRecord(
        seq=command.seq,
        cmd=command.cmd,
        writer=command.writer,
        started_at=command.started_at,
        finished_at=finished_at,
        duration_s=duration_s,
        exit=exit_code,
        stdout=output.text,
        stderr=output.errors,
        killed_by_restart=end == "killed_by_restart",
        timed_out=timed_out,
        cwd=command.cwd,
        output_bytes=output.total_bytes,
        truncated=output.truncated,
        raw_start=command.raw_start,
        raw_end=raw_end,
        needs_input=needs_input,
        end=end,
        cmd_reason=command.notice or reason,
        new_shell_since=command.new_shell_since,
    )


def writer_tag(from_handle: str | None) -> str:
    """Return the writer's tag for a record: ``agent:<handle>``, or ``human``."""
    if from_handle is None or from_handle.lower() == "human":
        return "human"
    return f"agent:{from_handle}"


def handle_of(writer: str) -> str:
    """Return the handle in a writer's tag; for ``human:<name>`` it is ``human``.

    It is empty for the shell, which is nobody's.
    """
    kind, _, name = writer.partition(":")
    return "" if writer == SHELL_WRITER else name if kind == "agent" else "human"


def shell_exit_code(status: int) -> int:
    """Return a process's status as a shell reports it: signal n (given as -n) is 128+n."""
    return status if status >= 0 else 128 - status

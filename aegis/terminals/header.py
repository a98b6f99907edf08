"""The headers of commands: their records without output. Pure."""

from __future__ import annotations

from aegis.names import shorten
from aegis.protocol.terminals import (
    MAX_HEADER_CMD_CHARS,
    CommandHeader,
    CommandRecord,
    NeedsInput,
)
from aegis.terminals.record import UnrecordedCommand


def header_of_record(name: str, record: CommandRecord) -> CommandHeader:
    """Return the header of a record of the terminal ``name``."""
    return CommandHeader(
        name=name,
        seq=record.seq,
        cmd=_short(record.cmd),
        writer=record.writer,
        exit=record.exit,
        duration_s=record.duration_s,
        started_at=record.started_at,
        cwd=record.cwd,
        raw_start=record.raw_start,
        raw_end=record.raw_end,
        end=record.end,
    )


def header_of_unrecorded(
    name: str,
    command: UnrecordedCommand,
    needs_input: NeedsInput | None,
    may_need_input: NeedsInput | None = None,
) -> CommandHeader:
    """Return the header of a command that has no record yet.

    ``needs_input`` is the input for which it waits, if it still runs, and ``may_need_input`` the
    one for which it may wait.
    """
    outcome = command.outcome
    return CommandHeader(
        name=name,
        seq=command.seq,
        cmd=_short(command.cmd),
        writer=command.writer,
        exit=None if outcome is None else outcome.exit,
        duration_s=None if outcome is None else outcome.duration_s,
        started_at=command.started_at,
        cwd=command.cwd,
        raw_start=command.raw_start,
        raw_end=None if outcome is None else outcome.raw_end,
        end=None if outcome is None else outcome.end,
        needs_input=needs_input if outcome is None else None,
        may_need_input=may_need_input if outcome is None else None,
    )


def _short(cmd: str | None) -> str | None:
    return None if cmd is None else shorten(cmd, MAX_HEADER_CMD_CHARS)

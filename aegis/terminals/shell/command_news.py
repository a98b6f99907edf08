"""What the front is told of a command that began, ended, or was none: stamped with the time."""

from __future__ import annotations

import trio

from aegis.clock import utc_now
from aegis.processes.capture import CapturedOutput
from aegis.terminals import messages as msg
from aegis.terminals.parse import boundaries as bd
from aegis.terminals.typed import TypedText, Unknown


def command_started(
    shell: str, begun: bd.Started, sent: msg.Submit | None, *, cwd: str | None, raw_start: int
) -> msg.CommandStarted:
    """A command began on ``shell``: that of ``sent``, or one that somebody typed."""
    return msg.CommandStarted(
        shell=shell,
        call=None if sent is None else sent.call,
        cmd=None if sent is None else sent.cmd,
        writer=begun.writer or "human" if sent is None else sent.writer,
        cwd=cwd,
        started_at=utc_now(),
        moment_s=trio.current_time(),
        raw_start=raw_start,
    )


def command_ended(
    ended: bd.Ended,
    output: CapturedOutput,
    *,
    typed: TypedText,
    incomplete: bool,
    raw_start: int,
    raw_end: int,
) -> msg.CommandEnded:
    """The command that began at ``raw_start`` has ended."""
    return msg.CommandEnded(
        raw_start=raw_start,
        exit=ended.exit,
        end="lost" if ended.lost else "exited",
        typed=typed if isinstance(typed, str) else None,
        untyped=typed.reason if isinstance(typed, Unknown) else None,
        incomplete=incomplete,
        output=output,
        finished_at=utc_now(),
        moment_s=trio.current_time(),
        raw_end=raw_end,
    )


def nothing_ran(
    sent: msg.Submit, nothing: bd.NothingRan, output: CapturedOutput, *, raw_end: int
) -> msg.NothingRan:
    """The text of ``sent`` was read and began no command."""
    printed = bool((output.text + output.errors).strip())
    return msg.NothingRan(
        call=sent.call,
        exit=bd.exit_of_nothing(nothing, printed=printed),
        output=output,
        finished_at=utc_now(),
        moment_s=trio.current_time(),
        raw_end=raw_end,
    )

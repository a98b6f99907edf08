"""Values that several tests and benches begin with."""

from __future__ import annotations

from aegis.protocol.terminals import CommandRecord
from aegis.terminals import messages as msg

AT = "2026-01-01T00:00:00.000Z"

RECORD = CommandRecord(
    seq=7,
    cmd="pytest -q",
    writer="agent:alice",
    started_at="2026-05-22T14:03:21.000Z",
    finished_at="2026-05-22T14:03:25.200Z",
    duration_s=4.2,
    exit=0,
    stdout="",
    stderr="",
    killed_by_restart=False,
    timed_out=False,
    cwd="/work",
    output_bytes=0,
    truncated=False,
    raw_start=0,
    raw_end=10,
    needs_input=None,
    end="exited",
)


def started(position: int, call: int | None = None, shell: str = "sh") -> msg.CommandStarted:
    """A command without a text has begun at this cursor."""
    return msg.CommandStarted(
        shell=shell,
        call=call,
        cmd=None,
        writer="human",
        cwd=None,
        started_at=AT,
        moment_s=0.0,
        raw_start=position,
    )


def ended(start: int, end: int) -> msg.CommandEnded:
    """It has ended by itself, with exit 0 and no output."""
    return msg.CommandEnded(
        raw_start=start,
        exit=0,
        end="exited",
        typed=None,
        incomplete=False,
        output=msg.NO_OUTPUT,
        finished_at=AT,
        moment_s=0.0,
        raw_end=end,
    )

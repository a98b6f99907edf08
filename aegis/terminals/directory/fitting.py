"""Making the records of a broadcast fit one reply. Pure.

A record that is long gives up text, not its place: first what is long of its command, then the
middle of its outputs. Short ones stay whole, and what they do not need is shared by the long ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from aegis.journal.ledger import encode_line
from aegis.processes.capture import MIN_LIMIT, CapturedOutput, truncate
from aegis.protocol.broadcast import BroadcastOutcome
from aegis.protocol.terminals import CommandRecord

MAX_CMD_CHARS = 200
"""What a record that is too long keeps of its command."""


@attrs.frozen
class Sized:
    """An outcome and its length as JSON, in bytes."""

    outcome: BroadcastOutcome
    size: int


def sized(outcome: BroadcastOutcome) -> Sized:
    """``outcome``, measured: milliseconds for a command of a megabyte."""
    return Sized(outcome, _size(outcome))


def fair_limit(sizes: Sequence[int], budget: int) -> int:
    """The highest limit such that ``sizes``, each cut to it, are ``budget`` at most together."""
    left, count = budget, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return left // count
        left, count = left - size, count - 1
    return budget


def _size(outcome: BroadcastOutcome) -> int:
    return len(encode_line(attrs.asdict(outcome)))


def shortened(each: Sized, limit: int) -> BroadcastOutcome:
    """The outcome with ever less text until it takes ``limit`` bytes, or nothing is left to cut."""
    outcome = each.outcome
    if each.size <= limit or outcome.record is None:
        return outcome
    room = limit
    short = attrs.evolve(outcome, record=_cut(outcome.record, room))
    while _size(short) > limit and room > MIN_LIMIT:
        room = max(MIN_LIMIT, room * 3 // 4)
        short = attrs.evolve(outcome, record=_cut(outcome.record, room))
    return short


def _cut(record: CommandRecord, room: int) -> CommandRecord:
    out = CapturedOutput(record.stdout, record.output_bytes, record.truncated)
    err = CapturedOutput(record.stderr, len(record.stderr.encode()), truncated=False)
    # A limit that the text does not reach changes nothing, so each may have the whole room.
    stdout, stderr = (truncate(each, min(room, 65_536)) for each in (out, err))
    return attrs.evolve(
        record,
        cmd=_short(record.cmd),
        stdout=stdout.text,
        stderr=stderr.text,
        truncated=record.truncated or stdout.truncated or stderr.truncated,
    )


def _short(cmd: str | None) -> str | None:
    return cmd if cmd is None or len(cmd) <= MAX_CMD_CHARS else cmd[: MAX_CMD_CHARS - 1] + "…"

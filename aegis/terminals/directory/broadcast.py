"""A command on several terminals at once; their records are collected into one reply.

Records that are too long for one reply are shortened: first the command, then the middle of the
outputs. Short records stay whole, and the long ones share the room that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import structlog
import trio

from actors import AskError, NodeDied, Ref, Reply, describe
from aegis.errors import AegisError
from aegis.journal.ledger import encode_line
from aegis.processes.capture import MIN_LIMIT, CapturedOutput, truncate
from aegis.protocol.broadcast import Broadcast, BroadcastOutcome, BroadcastOutcomes
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.protocol.terminals import CommandRecord, RunCommand

log = structlog.get_logger("aegis.terminals")

Find = Callable[[str], Ref[Any]]
"""Return the front of the terminal of this name; raise ``AegisError`` if there is none."""


async def broadcast(request: Broadcast, reply: Reply[BroadcastOutcomes], find: Find) -> None:
    """Run the command on each terminal and answer ``request``; a helper task of an actor.

    When the caller abandons the request, queued commands are dropped and typed ones continue, as
    with a run.
    """
    outcomes: dict[str, Sized] = {}

    async def run_on(name: str) -> None:
        outcomes[name] = sized(await _outcome(name, request, find))

    with trio.CancelScope() as scope:
        reply.on_abandon(scope.cancel)
        async with trio.open_nursery() as running:
            for name in request.names:
                running.start_soon(run_on, name)
        reply.send(await _fitted([outcomes[name] for name in request.names]))


async def _outcome(name: str, request: Broadcast, find: Find) -> BroadcastOutcome:
    record: CommandRecord | None = None
    error: str | None = None
    try:
        record = await _run(find(name), name, request)
    except AegisError as refusal:
        error = str(refusal)
    except NodeDied as death:
        log.warning("run not answered", terminal=name, why=describe(death))
        error = (
            f"terminal {name!r} lost its worker, and is being started again; if your command was "
            "typed it was killed: look for its record with aegis_term_read before you run it again"
        )
    except AskError as unanswered:
        log.warning("run not answered", terminal=name, why=describe(unanswered))
        error = (
            f"terminal {name!r} did not answer; if your command was typed, it continues: look for "
            "its record with aegis_term_read before you run it again"
        )
    return BroadcastOutcome(name=name, record=record, error=error)


async def _fitted(outcomes: list[Sized]) -> BroadcastOutcomes:
    """Shorten the outcomes to ``MAX_REPLY_BYTES`` of JSON; yields to other tasks in between."""
    limit = fair_limit([each.size for each in outcomes], MAX_REPLY_BYTES)
    result = []
    for each in outcomes:
        result.append(shortened(each, limit))
        await trio.lowlevel.checkpoint()
    return BroadcastOutcomes(result=result, more=any(each.size > limit for each in outcomes))


async def _run(front: Ref[Any], name: str, request: Broadcast) -> CommandRecord:
    # Without a deadline: the front knows when the time is up.
    run = RunCommand(
        name=name, cmd=request.cmd, timeout=request.timeout, from_handle=request.from_handle
    )
    return await front.send_request(run).wait()


MAX_CMD_CHARS = 200
"""The most that a record which is too long keeps of its command."""


@attrs.frozen
class Sized:
    """An outcome and its length as JSON, in bytes."""

    outcome: BroadcastOutcome
    size: int


def sized(outcome: BroadcastOutcome) -> Sized:
    """Measure ``outcome``; this takes milliseconds for a command of a megabyte."""
    return Sized(outcome, _size(outcome))


def fair_limit(sizes: Sequence[int], budget: int) -> int:
    """Return the highest limit such that ``sizes``, each cut to it, sum to ``budget`` at most."""
    left, count = budget, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return left // count
        left, count = left - size, count - 1
    return budget


def _size(outcome: BroadcastOutcome) -> int:
    return len(encode_line(attrs.asdict(outcome)))


def shortened(each: Sized, limit: int) -> BroadcastOutcome:
    """Cut the text of the outcome until it takes ``limit`` bytes, or nothing is left to cut."""
    outcome = each.outcome
    if each.size <= limit or outcome.record is None:
        return outcome
    room = limit
    short = attrs.evolve(outcome, record=_truncated(outcome.record, room))
    while _size(short) > limit and room > MIN_LIMIT:
        room = max(MIN_LIMIT, room * 3 // 4)
        short = attrs.evolve(outcome, record=_truncated(outcome.record, room))
    return short


def _truncated(record: CommandRecord, room: int) -> CommandRecord:
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

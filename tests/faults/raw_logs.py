"""The scenario of the raw log: many rotations, beside a ledger that names its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from actors.faults import FaultTable
from aegis.journal.raw_log import RawLog
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.faults.retrying import until_done

DIRECTORY = Path("/state/terminals/build")
LIMIT_BYTES = 40
PIECES = (30, 25, 30)


def printed(start: int, end: int) -> bytes:
    """Return the output between two offsets: every byte shows its place, and none is zero."""
    return bytes(33 + offset % 89 for offset in range(start, end))


@attrs.frozen
class KeptBytes:
    """The log after recovery: the offset of the next byte, and every kept stretch."""

    position: int
    stretches: tuple[tuple[int, bytes], ...]


@attrs.frozen
class Rotation:
    """Bytes written and flushed piece by piece, over several rotations."""

    name: str = "raw log rotation"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = ()
    subjects: tuple[str, ...] = ()
    recovers_durably: bool = False
    shows_only_durable: bool = False

    async def play(self, world: World) -> None:
        async def opened() -> RawLog:
            return RawLog.open(DIRECTORY, disk=world.disk, limit_bytes=LIMIT_BYTES)

        log = await until_done(opened)

        async def flush() -> None:
            log.flush()

        for size in PIECES:
            end = log.position + size
            world.tries(end)
            log.write(printed(log.position, end))
            await until_done(flush)
            world.confirm(end)
        log.close()

    def recover(self, disk: SimulatedDisk) -> KeptBytes:
        log = RawLog.open(DIRECTORY, disk=disk, limit_bytes=LIMIT_BYTES)
        found, at = [], 0
        while at < log.position:
            start, data = log.stretch(at, LIMIT_BYTES)
            found.append((start, data))
            at = start + len(data)
        position = log.position
        log.close()
        return KeptBytes(position, tuple(found))

    def check(self, evidence: Evidence, found: KeptBytes, *, killed: bool) -> Iterator[str]:
        """Check the log. It is not synced: after a loss of power it must only be usable."""
        kept = sum(len(data) for _, data in found.stretches)
        if kept > 2 * LIMIT_BYTES or found.position < kept:
            yield f"{kept} bytes are kept before {found.position}"
        if killed:
            yield from self._check_killed(evidence, found)

    def _check_killed(self, evidence: Evidence, found: KeptBytes) -> Iterator[str]:
        flushed, begun = max(evidence.confirmed, default=0), max(evidence.tried, default=0)
        if not flushed <= found.position <= begun:
            yield f"the next offset is {found.position}; {flushed} bytes were flushed of {begun}"
        at = max(0, found.position - sum(len(data) for _, data in found.stretches))
        for start, data in found.stretches:
            if start != at or data != printed(start, start + len(data)):
                yield f"at {start} it reads {data!r}; the stretch before ends at {at}"
            at = start + len(data)
        kept = sum(len(data) for _, data in found.stretches)
        if at != found.position or kept < min(flushed, LIMIT_BYTES - max(PIECES)):
            yield f"{kept} bytes are kept up to {at}, and the next offset is {found.position}"

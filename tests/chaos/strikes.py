"""The possible faults at each place of a scenario, from the counted hits. Pure.

A place is a call of the disk (``disk.write``) or a fault point (``ledger.append.before``), with the
number of its pass, the first being 1.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

import attrs

from tests.chaos.machine.file_content import FailedSync

DISK_PREFIX = "disk."
"""The prefix of places that are calls of the disk; all others are fault points."""

STALL_S = 30.0
"""The length of a stall in seconds: longer than any timeout in the code."""


class Kind(enum.Enum):
    """A kind of fault."""

    DIE = "death"
    CRASH = "crash"
    EIO = "EIO"
    EIO_CLEAN = "EIO, pages kept as clean"
    EIO_DIRTY = "EIO, pages kept as dirty"
    ENOSPC = "ENOSPC"
    SHORT = "short write"
    STALL = "stall"

    @property
    def fate(self) -> FailedSync:
        """The effect of a failed sync on the pages."""
        fates = {Kind.EIO_CLEAN: FailedSync.CLEAN, Kind.EIO_DIRTY: FailedSync.DIRTY}
        return fates.get(self, FailedSync.DROPPED)


@attrs.frozen
class Strike:
    """A fault of ``kind`` at pass ``number`` of ``place``."""

    place: str
    number: int
    kind: Kind

    def __str__(self) -> str:
        return f"{self.place}@{self.number}={self.kind.name.lower()}"

    @property
    def call(self) -> str | None:
        """The call of the disk; None for a fault point."""
        is_call = self.place.startswith(DISK_PREFIX)
        return self.place.removeprefix(DISK_PREFIX) if is_call else None


ERRORS = (Kind.EIO, Kind.ENOSPC)
SYNC_KINDS = (Kind.EIO, Kind.EIO_CLEAN, Kind.EIO_DIRTY, Kind.ENOSPC)
KINDS_OF_CALL: Mapping[str, tuple[Kind, ...]] = {
    "write": (*ERRORS, Kind.SHORT),
    "pwrite": (*ERRORS, Kind.SHORT),
    "fdatasync": (*SYNC_KINDS, Kind.STALL),
    "fsync": SYNC_KINDS,
    "open": ERRORS,
    "mkdir": ERRORS,
    "rename": ERRORS,
    "rename_new": ERRORS,
    "link": ERRORS,
    "exchange": ERRORS,
}
"""The faults of a call beside death; any other call may fail with EIO."""


def kinds_of_call(call: str) -> tuple[Kind, ...]:
    """Return all kinds of fault of a call of the disk."""
    return (Kind.DIE, *KINDS_OF_CALL.get(call, (Kind.EIO,)))


def kinds_of_point(name: str, *, may_wait: bool) -> tuple[Kind, ...]:
    """Return all kinds of fault of a fault point: errors only at those around file calls."""
    kinds = (Kind.DIE, Kind.CRASH, *((Kind.STALL,) if may_wait else ()))
    return (*kinds, *ERRORS) if name.startswith(("ledger.", "note.", "workspace.")) else kinds


def all_strikes(hits: Mapping[str, int], may_wait: Mapping[str, bool]) -> Iterator[Strike]:
    """Yield every kind at every pass of every place; ``may_wait`` has the points that may stall."""
    for place, count in hits.items():
        call = place.removeprefix(DISK_PREFIX)
        known = may_wait.get(place.split("[")[0], False)
        kinds = kinds_of_call(call) if call != place else kinds_of_point(place, may_wait=known)
        for number in range(1, count + 1):
            yield from (Strike(place, number, kind) for kind in kinds)

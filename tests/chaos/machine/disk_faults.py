"""The effects of strikes on calls of a simulated disk."""

from __future__ import annotations

import errno

from tests.chaos.machine.simulated_disk import Die, DiskFault, Fail, FallShort, Stall
from tests.chaos.strikes import STALL_S, Kind


def disk_fault(kind: Kind) -> DiskFault:
    """Return the fault of a disk call for ``kind``."""
    match kind:
        case Kind.DIE | Kind.CRASH:
            return Die()
        case Kind.SHORT:
            return FallShort()
        case Kind.STALL:
            return Stall(STALL_S)
        case Kind.ENOSPC:
            return Fail(errno.ENOSPC, kind.fate)
        case _:
            return Fail(errno.EIO, kind.fate)

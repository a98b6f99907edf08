"""The ancestors of a process, by ``/proc``, and the cookies in their environments."""

from __future__ import annotations

import os
import time

import attrs

from aegis.processes.os_processes import environment_of, process_of
from aegis.processes.process_table import cookie_of

MAX_ANCESTORS = 64
"""Ancestors that are looked at. Each costs two reads of ``/proc``, about 20 µs."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

TICK_S = 1 / _TICKS_PER_S
"""The resolution of the start times of processes."""


@attrs.frozen(kw_only=True)
class Ancestor:
    """A process or one of its ancestors.

    ``started_at``: seconds since 1970 (UTC), up to ``TICK_S`` early. ``cookie``: None without one.
    """

    pid: int
    started_at: float
    cookie: str | None
    is_in_foreground: bool = False


def ancestry(pid: int) -> list[Ancestor]:
    """Return the process, its parent, and so on up to this process or the first one.

    Empty if the process is gone.
    """
    # The start time of a process counts from the boot and includes suspends, as this clock does.
    booted_at = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found: list[Ancestor] = []
    while pid not in (0, os.getpid()) and len(found) < MAX_ANCESTORS:
        process = process_of(pid)
        if process is None:
            break
        found.append(
            Ancestor(
                pid=pid,
                started_at=booted_at + process.start_time / _TICKS_PER_S,
                cookie=cookie_of(environment_of(pid) or b""),
                is_in_foreground=process.is_in_foreground,
            )
        )
        pid = process.parent
    return found

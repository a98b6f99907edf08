"""The ancestors of a process, by ``/proc``, and the cookies in their environments."""

from __future__ import annotations

import os
import time

import attrs

from aegis.processes.os_processes import environment_of, process_of
from aegis.processes.process_table import ProcessInfo, cookie_of

MAX_ANCESTORS = 64
"""Ancestors that are looked at. Each costs two reads of ``/proc``, about 20 µs."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

TICK_S = 1 / _TICKS_PER_S
"""The resolution of the start times of processes."""


@attrs.frozen(kw_only=True)
class Ancestor:
    """A process or one of its ancestors.

    ``started_at``: seconds since 1970 (UTC), up to ``TICK_S`` early. ``cookie``: None without one.
    ``foreground_group``: the one of its terminal, which may be another than its shell's.
    """

    pid: int
    started_at: float
    cookie: str | None
    group: int = 0
    foreground_group: int = -1


def ancestry(pid: int) -> list[Ancestor]:
    """Return the process, its parent, and so on up to this process or the first one.

    Empty if the process is gone, or has more than ``MAX_ANCESTORS``: a part of the ancestors could
    be without the one that has a cookie.
    """
    # The start time of a process counts from the boot and includes suspends, as this clock does.
    booted_at = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found: list[Ancestor] = []
    child: ProcessInfo | None = None
    while pid not in (0, os.getpid()):
        process = process_of(pid)
        if process is None or (child is not None and process.start_time > child.start_time):
            # The parent has ended since its child was read, and its pid may be another process
            # now. The child has another parent by now.
            pid = _next_parent(child, pid)
            if not pid:
                return []
            continue
        if len(found) == MAX_ANCESTORS:
            return []
        found.append(
            Ancestor(
                pid=pid,
                started_at=booted_at + process.start_time / _TICKS_PER_S,
                cookie=cookie_of(environment_of(pid) or b""),
                group=process.group,
                foreground_group=process.foreground_group,
            )
        )
        child, pid = process, process.parent
    return found


def _next_parent(child: ProcessInfo | None, ended: int) -> int:
    """Return the parent that a process has after its parent has ended; 0 without one."""
    now = None if child is None else process_of(child.pid)
    if child is None or now is None or now.start_time != child.start_time:
        return 0
    return 0 if now.parent == ended else now.parent

"""The ancestors of a process, by ``/proc``, and the cookies in their environments."""

from __future__ import annotations

import os
import time

import attrs

from aegis.processes.children import ChildCookies
from aegis.processes.os_processes import environment_of, known_process
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
    ``is_child``: it is a child of this process; ``is_remembered``: its cookie is the one with which
    this process started it.
    """

    pid: int
    started_at: float
    cookie: str | None
    group: int = 0
    foreground_group: int = -1
    is_child: bool = False
    is_remembered: bool = False


def ancestry(pid: int, children: ChildCookies | None = None) -> list[Ancestor]:
    """Return the process, its parent, and so on up to this process or the first one.

    Of ``children`` the remembered cookie counts, of other processes the one in the environment.
    Empty if the process is gone, or has more than ``MAX_ANCESTORS``: a part of the ancestors could
    be without the one that has a cookie. Raises ``LimitReached``: a process that cannot be looked
    at must not pass for one without a cookie.
    """
    # The start time of a process counts from the boot and includes suspends, as this clock does.
    booted_at = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found: list[Ancestor] = []
    child: ProcessInfo | None = None
    while pid not in (0, os.getpid()):
        process = known_process(pid)
        if process is None or (child is not None and process.start_time > child.start_time):
            # The parent has ended since its child was read, and its pid may be another process
            # now. The child has another parent by now.
            pid = _next_parent(child, pid)
            if not pid:
                return []
            continue
        if len(found) == MAX_ANCESTORS:
            return []
        remembered = None if children is None else children.cookie_of(process)
        found.append(
            Ancestor(
                pid=pid,
                started_at=booted_at + process.start_time / _TICKS_PER_S,
                cookie=remembered or cookie_of(environment_of(pid) or b""),
                group=process.group,
                foreground_group=process.foreground_group,
                is_child=process.parent == os.getpid(),
                is_remembered=remembered is not None,
            )
        )
        child, pid = process, process.parent
    return found


def _next_parent(child: ProcessInfo | None, ended: int) -> int:
    """Return the parent that a process has after its parent has ended; 0 without one."""
    now = None if child is None else known_process(child.pid)
    if child is None or now is None or now.start_time != child.start_time:
        return 0
    return 0 if now.parent == ended else now.parent

"""Finds and ends the processes that a terminal's shell left behind.

A process belongs to a shell if it is in the shell's session or was started with the shell's
cookie in its environment: ``nohup``, ``disown`` and ``setsid`` each escape one of these, none
escapes both unless it means to. Rules:

- One scan of /proc serves all terminals.
- A process is signalled through a pidfd whose start time was checked: a reused pid is never hit.
- HUP, then TERM, then KILL, each with CONT, each with a bounded wait, each after a new scan.
- Nothing here reaps a child: a zombie counts as gone and is left to who started it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import attrs
import trio

from aegis.terminals.process_scan import OwnedProcess, ProcessScan
from aegis.terminals.process_table import ProcessInfo, cookie_of, parse_stat

_PROC = Path("/proc")


@attrs.frozen
class Round:
    """One try: send ``signum`` to all, then wait ``wait_s`` seconds at most for them to end."""

    signum: signal.Signals
    wait_s: float


ROUNDS = (
    Round(signal.SIGHUP, 0.2),
    Round(signal.SIGTERM, 0.3),
    Round(signal.SIGKILL, 0.5),
    Round(signal.SIGKILL, 0.5),
)
"""The last one is for what was forked while the one before was under way."""


HASTY_ROUNDS = (
    Round(signal.SIGHUP, 0.1),
    Round(signal.SIGTERM, 0.1),
    Round(signal.SIGKILL, 0.25),
    Round(signal.SIGKILL, 0.25),
)
"""The same within the second that an actor has to clean up in after a crash."""


def find_processes(sids: Collection[int], cookies: Collection[str]) -> list[ProcessInfo]:
    """The live processes of these sessions or with one of these cookies, except this process.

    What cannot be read (another user's environment, a process that just ended) is left out. A
    scan of some hundred processes takes milliseconds: call it from a worker thread.
    """
    return _of_these(look_at_all(), sids, cookies)


def look_at_all() -> list[OwnedProcess]:
    """Every live process but this one, each with its cookie. For ``ProcessScan``."""
    processes = [process_of(pid) for pid in _pids()]
    return [
        OwnedProcess(process, _cookie(process.pid))
        for process in processes
        if process is not None and process.is_alive
    ]


def process_of(pid: int) -> ProcessInfo | None:
    """The process with this pid now; None if there is none."""
    try:
        return parse_stat((_PROC / str(pid) / "stat").read_bytes())
    except (OSError, ValueError):
        return None


def is_reused(sid: int, start_time: int) -> bool:
    """Whether ``sid`` now belongs to another session than the one whose leader began then.

    True only if a leader with another start time is there: never end such a session.
    """
    leader = process_of(sid)
    return leader is not None and leader.start_time != start_time


async def end_processes(
    sids: Collection[int],
    cookies: Collection[str],
    rounds: Sequence[Round] = ROUNDS,
    scan: ProcessScan | None = None,
) -> list[ProcessInfo]:
    """End every process of these sessions or with these cookies; gives those that did not end.

    Left over are what sleeps in the kernel beyond signals and what this user may not signal.
    ``scan`` is shared with others who end processes at the same time.
    """
    scan = ProcessScan(look_at_all) if scan is None else scan
    for each in rounds:
        processes = _of_these(await scan.processes(), sids, cookies)
        if not processes:
            return []
        await _signal_and_wait(processes, each)
    return _of_these(await scan.processes(), sids, cookies)


def _of_these(
    seen: Iterable[OwnedProcess], sids: Collection[int], cookies: Collection[str]
) -> list[ProcessInfo]:
    return [each.process for each in seen if each.process.session in sids or each.cookie in cookies]


async def _signal_and_wait(processes: Iterable[ProcessInfo], each: Round) -> None:
    pidfds = [pidfd for pidfd in map(_open_pidfd, processes) if pidfd is not None]
    try:
        for pidfd in pidfds:
            _send(pidfd, each.signum)
        with trio.move_on_after(each.wait_s):
            for pidfd in pidfds:
                await trio.lowlevel.wait_readable(pidfd)
    finally:
        for pidfd in pidfds:
            os.close(pidfd)


def _open_pidfd(process: ProcessInfo) -> int | None:
    """A descriptor of exactly this process; None if it is gone (or no descriptor is free)."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        return None
    now = process_of(process.pid)
    if now is None or now.start_time != process.start_time:
        os.close(pidfd)
        return None
    return pidfd


def _send(pidfd: int, signum: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signum)
        # What is stopped takes a signal only once it goes on.
        signal.pidfd_send_signal(pidfd, signal.SIGCONT)
    except OSError:
        # Gone, or not ours to signal: the next scan tells.
        return


def _pids() -> list[int]:
    own = os.getpid()
    names = [path.name for path in _PROC.iterdir()]
    return [int(name) for name in names if name.isdigit() and int(name) != own]


def _cookie(pid: int) -> str | None:
    try:
        return cookie_of((_PROC / str(pid) / "environ").read_bytes())
    except OSError:
        return None

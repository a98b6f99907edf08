"""Finds and ends the processes that a terminal's shell left behind.

A process belongs to a shell if it is in the shell's session or was started with the shell's
cookie in its environment: ``nohup``, ``disown`` and ``setsid`` each escape one of these, none
escapes both unless it means to. Rules:

- One scan of /proc serves all terminals.
- A process is signalled through a pidfd whose start time was checked: a reused pid is never hit.
  Where no descriptor is free for one, the start time is checked and the pid is signalled.
- HUP, then TERM, then KILL, each with CONT, each with a bounded wait, each after a new scan.
- This process and its ancestors are never ended: a daemon may run in a terminal.
- Nothing here reaps a child: a zombie counts as gone and is left to who started it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Container, Iterable, Sequence

import attrs
import trio

from aegis.terminals.process_scan import OwnedProcess, ProcessScan, Seen
from aegis.terminals.process_table import ProcessInfo, cookie_of, line_of, parse_stat


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


def find_processes(sids: Container[int], cookies: Container[str | None]) -> list[ProcessInfo]:
    """The live processes of these sessions or with one of these cookies.

    This process and its ancestors are left out.

    What cannot be read (another user's environment, a process that just ended) is left out. A
    scan of some hundred processes takes milliseconds: call it from a worker thread.
    """
    return Seen(look_at_all()).of(sids, cookies)


def look_at_all() -> list[OwnedProcess]:
    """Every live process but this one and its ancestors, with its cookie. For ``ProcessScan``."""
    found = {pid: process for pid in _pids() if (process := process_of(pid)) is not None}
    spared = line_of(os.getpid(), found)
    return [
        OwnedProcess(process, _cookie(pid))
        for pid, process in found.items()
        if process.is_alive and pid not in spared
    ]


def process_of(pid: int) -> ProcessInfo | None:
    """The process with this pid now; None if there is none."""
    try:
        return parse_stat(_read(f"/proc/{pid}/stat"))
    except (OSError, ValueError):
        return None


def is_reused(sid: int, start_time: int) -> bool:
    """Whether ``sid`` now belongs to another session than the one whose leader began then.

    True only if a leader with another start time is there: never end such a session.
    """
    leader = process_of(sid)
    return leader is not None and leader.start_time != start_time


async def end_processes(
    sids: Container[int],
    cookies: Container[str | None],
    rounds: Sequence[Round] = ROUNDS,
    scan: ProcessScan | None = None,
) -> list[ProcessInfo]:
    """End every process of these sessions or with these cookies; gives those that did not end.

    Left over are what sleeps in the kernel beyond signals and what this user may not signal.
    ``scan`` is shared with others who end processes at the same time. ``cookies`` may be all of a
    terminal or of a root (``CookiesOf``).
    """
    scan = ProcessScan(look_at_all) if scan is None else scan
    for each in rounds:
        processes = (await scan.processes()).of(sids, cookies)
        if not processes:
            return []
        await _signal_and_wait(processes, each)
    return (await scan.processes()).of(sids, cookies)


@attrs.frozen
class _Target:
    """A process to signal; ``pidfd`` is None where no descriptor was free for it."""

    process: ProcessInfo
    pidfd: int | None


async def _signal_and_wait(processes: Iterable[ProcessInfo], each: Round) -> None:
    targets = [target for target in map(_aim, processes) if target is not None]
    pidfds = [target.pidfd for target in targets if target.pidfd is not None]
    try:
        for target in targets:
            _send(target, each.signum)
        with trio.move_on_after(each.wait_s):
            for pidfd in pidfds:
                await trio.lowlevel.wait_readable(pidfd)
            if len(pidfds) < len(targets):
                await trio.sleep_forever()  # nobody tells of their end: the round lasts its time
    finally:
        for pidfd in pidfds:
            os.close(pidfd)


def _aim(process: ProcessInfo) -> _Target | None:
    """Exactly this process; None if it is gone."""
    try:
        pidfd: int | None = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    except OSError:  # no descriptor is free: better by its pid than not at all
        pidfd = None
    now = process_of(process.pid)
    if now is None or now.start_time != process.start_time:
        if pidfd is not None:
            os.close(pidfd)
        return None
    return _Target(process, pidfd)


def _send(target: _Target, signum: signal.Signals) -> None:
    try:
        # What is stopped takes a signal only once it goes on.
        for each in (signum, signal.SIGCONT):
            if target.pidfd is None:
                os.kill(target.process.pid, each)
            else:
                signal.pidfd_send_signal(target.pidfd, each)
    except OSError:
        # Gone, or not ours to signal: the next scan tells.
        return


def _pids() -> list[int]:
    names = os.listdir("/proc")  # noqa: PTH208 - a Path for each process costs more than it
    return [int(name) for name in names if name.isdigit()]


def _cookie(pid: int) -> str | None:
    try:
        return cookie_of(_read(f"/proc/{pid}/environ"))
    except OSError:
        return None


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - called for each process
        return file.read()

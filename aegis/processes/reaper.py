"""Finding and ending the processes that a terminal's shell left behind.

A process belongs to a shell if it is in the shell's session or was started with the shell's
cookie in its environment. ``nohup``, ``disown`` and ``setsid`` each escape one of these; only
intent escapes both. Rules:

- One scan of /proc serves all terminals.
- A process is signalled through a pidfd whose start time was checked: a reused pid is never hit.
  Where no descriptor is free for one, the start time is checked and the pid is signalled.
- HUP, then TERM, then KILL, each with CONT, each with a bounded wait, each after a new scan.
- This process and its ancestors are never ended: a daemon may run in a terminal.
- No child is reaped here: a zombie counts as gone and is left to its parent.
"""

from __future__ import annotations

import signal
from collections.abc import Container, Iterable, Sequence

import attrs
import trio

from aegis.processes.os_processes import OsProcessHost, read_processes
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import ProcessScan, ProcessSnapshot
from aegis.processes.process_table import ProcessInfo


@attrs.frozen
class Round:
    """One try: send ``signum`` to all, then wait at most ``wait_s`` seconds for their end."""

    signum: signal.Signals
    wait_s: float


ROUNDS = (
    Round(signal.SIGHUP, 0.2),
    Round(signal.SIGTERM, 0.3),
    Round(signal.SIGKILL, 0.5),
    Round(signal.SIGKILL, 0.5),
)
"""The last round is for processes that were forked during the one before."""


SHORT_ROUNDS = (
    Round(signal.SIGHUP, 0.1),
    Round(signal.SIGTERM, 0.1),
    Round(signal.SIGKILL, 0.25),
    Round(signal.SIGKILL, 0.25),
)
"""The same within one second: an actor's time for cleanup after a crash."""


def find_processes(sids: Container[int], cookies: Container[str | None]) -> list[ProcessInfo]:
    """Return the live processes of these sessions or with one of these cookies.

    This process and its ancestors are left out, and processes that cannot be read (another user's
    environment, a process that just ended). Takes milliseconds: call it in a worker thread.
    """
    return ProcessSnapshot(read_processes()).of(sids, cookies)


def is_reused(host: ProcessHost, sid: int, start_time: int) -> bool:
    """Return whether ``sid`` now is another session than the one whose leader began then.

    Never end such a session.
    """
    leader = host.process_of(sid)
    return leader is not None and leader.start_time != start_time


async def end_processes(
    sids: Container[int],
    cookies: Container[str | None],
    rounds: Sequence[Round] = ROUNDS,
    scan: ProcessScan | None = None,
) -> list[ProcessInfo]:
    """End every process of these sessions or with these cookies; return the remaining ones.

    Remaining are processes in uninterruptible sleep and those that this user may not signal.
    ``scan`` is shared by callers that end processes at the same time. ``cookies`` may be all of a
    terminal or of a root (``CookiesOf``).
    """
    scan = ProcessScan(OsProcessHost()) if scan is None else scan
    for each in rounds:
        processes = (await scan.processes()).of(sids, cookies)
        if not processes:
            return []
        await _signal_and_wait(scan.host, processes, each)
    return (await scan.processes()).of(sids, cookies)


async def _signal_and_wait(
    host: ProcessHost, processes: Iterable[ProcessInfo], each: Round
) -> None:
    targets = [target for target in map(host.open_target, processes) if target is not None]
    try:
        for target in targets:
            target.send(each.signum)
        with trio.move_on_after(each.wait_s):
            # A target whose end cannot be awaited is last: then the round takes its whole time.
            for target in sorted(targets, key=lambda target: not target.can_be_awaited):
                await target.ended()
    finally:
        for target in targets:
            target.close()

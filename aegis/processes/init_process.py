"""The process that reaps orphans, where the daemon was started in the place of init.

As pid 1 of a container, and as a child subreaper (prctl(2)), a process adopts every orphan below
it, and an orphan that ended stays a zombie until it is waited for. The daemon itself waits only for
its own children, each by pid: waiting for any child would take the exit codes of those. So it runs
in a child of a process that does nothing else, as below ``docker run --init``.

Only the standard library is imported: the process keeps what it has loaded.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG, _PR_GET_CHILD_SUBREAPER = 1, 37

_FORWARDED = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH),
)
"""Signals for the daemon. Pid 1 gets none for which it has no handler (kill(2))."""


def run_below_init(run: Callable[[], int]) -> int:
    """Return what ``run`` returns; where this process adopts orphans, call it in a child.

    This process then forwards signals and reaps until the child has ended, and returns its exit
    code. No thread may run yet.
    """
    if not _adopts_orphans():
        return run()
    parent = os.getpid()
    sys.stdout.flush()  # else both processes would print what is buffered
    # Blocked until there is a handler: a signal in between would be lost.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    try:
        child = os.fork()
    except OSError:  # the limit of processes: the daemon runs, and orphans are not reaped
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return run()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # else the daemon would outlive its supervisor's
        return run() if os.getppid() == parent else 128 + signal.SIGTERM
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: _forward(child, received))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    while True:
        pid, status = os.waitpid(-1, 0)  # restarted after a signal, PEP 475
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _adopts_orphans() -> bool:
    if os.getpid() == 1:
        return True
    is_subreaper = ctypes.c_int(0)
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(is_subreaper))
    return bool(is_subreaper.value)


def _prctl(option: int, argument: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(argument), 0, 0, 0)


def _forward(child: int, number: int) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        return

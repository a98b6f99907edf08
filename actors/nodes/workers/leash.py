"""The leash: it kills a worker as soon as its parent has ended.

A worker's standard input is a pipe that its parent holds open. The kernel is asked to kill this
process when the pipe closes, so it needs no thread and no loop that turns, and works on a worker
that is stopped or blocked. (A signal at the parent's death, ``PR_SET_PDEATHSIG``, would come when
the *thread* ends that started it.)
"""

from __future__ import annotations

import fcntl
import os
import select
import signal

STANDARD_INPUT = 0


def take_leash() -> int:
    """Move standard input to a private descriptor, die when it closes, and return it.

    Child processes of this one get an empty standard input.
    """
    leash = fcntl.fcntl(STANDARD_INPUT, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, STANDARD_INPUT)
    os.close(nothing)
    fcntl.fcntl(leash, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(leash, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(leash, fcntl.F_SETFL, fcntl.fcntl(leash, fcntl.F_GETFL) | os.O_ASYNC)
    if _is_closed(leash):  # it closed before the kernel was asked
        os.kill(os.getpid(), signal.SIGKILL)
    return leash


def _is_closed(leash: int) -> bool:
    poll = select.poll()
    poll.register(leash, select.POLLIN)
    return bool(poll.poll(0))

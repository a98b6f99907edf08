"""The guard of one agent: a small program that ends the agent's processes when the daemon dies.

    python -I -S guard.py CONTROL GRACE_S OPEN_FILES TTY PROGRAM [ARGUMENT…]

It starts PROGRAM (a path) in a session of its own, with its own standard streams, directory and
environment, and then holds none of them. TTY is empty, or the path of a terminal: then PROGRAM has
no input and prints there, but it has no controlling terminal. CONTROL is the descriptor of a socket
to the daemon. The guard writes lines to it: ``started PID`` or ``refused ERRNO``; ``exited CODE``
(minus the number of a signal); and at its own end ``gone``, or ``left PID…``. It ends the processes
when the daemon writes an order, and when the socket closes, which the kernel does when the daemon
dies.

The processes of the agent are those with the cookie of the guard's environment, and all descendants
of the guard, which adopts the ones whose parents ended: a process in a session of its own is found,
and so is one with another environment. Only if the guard itself is killed are the latter not found.

Why the kernel's signal at a parent's death is not enough: it reaches one process and not its
children, it is lost when a program changes its user, and some agents finish their turn first.

Only the standard library is imported, and little of it: one guard runs for each agent.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator

COOKIE_VARIABLE = b"AEGIS_TERMINAL"
"""``aegis.processes.process_table.COOKIE_VARIABLE``, which would take long to import."""

END_ORDER = b"e"
"""TERM, a grace period, and KILL."""

KILL_ORDER = b"k"
"""KILL at once."""

IGNORED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGUSR1")
"""Signals that an agent may send to its parent, and the ones of a terminal.

The guard ends after its agent. Only SIGKILL ends it before, which the daemon notices.
"""

KILL_ROUNDS = 40
KILL_S = 0.25
"""The number of times that all processes are killed, and the wait for their end each time.

Further rounds are for processes that were forked during the one before.
"""

CONFIRMATIONS = 3
CONFIRM_MS = 10
"""A process within an exec shows no environment for a moment: it is looked for again."""

_PR_SET_CHILD_SUBREAPER = 36

_READ_BYTES = 4096

_STATE, _PARENT, _START_TIME = 0, 1, 19
"""Fields of ``/proc/PID/stat``, counted from the one after the name."""

Identity = tuple[int, bytes]
"""A pid and a start time: together they are never reused."""


class Guard:
    """The guard of one started agent."""

    def __init__(self, control: int, grace_s: float) -> None:
        self._control = control
        self._grace_s = grace_s
        self._cookie = COOKIE_VARIABLE + b"=" + os.environb[COOKIE_VARIABLE]
        self._agent = 0
        self._strangers: set[Identity] = set()

    def run(self, command: list[str], tty: str) -> None:
        """Start the agent, wait for the order to end it or for the daemon's death, and end it."""
        woken = _wake_at_child_end()
        _adopt_orphans()
        try:
            self._agent = _start(command, tty)
        except OSError as error:
            self._report(f"refused {error.errno}")
            return
        self._report(f"started {self._agent}")
        _release_streams()
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(woken, select.POLLIN)
        while self._control not in {descriptor for descriptor, _ in poll.poll()}:
            os.read(woken, 4096)
            self._reap()
        self._end_all(is_urgent=self._order() == KILL_ORDER)
        left = [pid for pid, _ in self._processes()]
        self._reap()
        self._report(f"left {' '.join(map(str, left))}" if left else "gone")

    def _order(self) -> bytes:
        try:
            return os.read(self._control, 1)
        except OSError:  # the daemon is gone
            return b""

    def _report(self, line: str) -> None:
        try:
            os.write(self._control, line.encode() + b"\n")
        except OSError:  # the daemon is gone
            return

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._agent:
                self._report(f"exited {os.waitstatus_to_exitcode(status)}")

    def _end_all(self, *, is_urgent: bool) -> None:
        """End the processes: TERM, then KILL until none is left, for a limited time."""
        if not is_urgent:
            self._signal_all(signal.SIGTERM, self._grace_s)
        for _ in range(KILL_ROUNDS):
            self._signal_all(signal.SIGKILL, KILL_S)
            self._reap()
            if self._are_gone():
                return

    def _are_gone(self) -> bool:
        for _ in range(CONFIRMATIONS):
            if self._processes():
                return False
            select.poll().poll(CONFIRM_MS)
        return not self._processes()

    def _signal_all(self, signum: signal.Signals, wait_s: float) -> None:
        """Signal every process, and wait for their end."""
        ended = select.poll()
        waiting: set[int] = set()
        for identity in self._processes():
            pidfd = _signal(identity, signum)
            if pidfd is not None:
                ended.register(pidfd, select.POLLIN)
                waiting.add(pidfd)
        deadline = time.monotonic() + wait_s
        while waiting and (left_s := deadline - time.monotonic()) > 0:
            for pidfd, _ in ended.poll(left_s * 1000):
                ended.unregister(pidfd)
                waiting.discard(pidfd)
                os.close(pidfd)
            self._reap()
        for pidfd in waiting:
            os.close(pidfd)

    def _processes(self) -> list[Identity]:
        """Return the live processes of the agent, without the guard."""
        own = os.getpid()
        parents: dict[int, int] = {}
        alive: list[Identity] = []
        for pid, fields in _table():
            parents[pid] = int(fields[_PARENT])
            if fields[_STATE] not in (b"Z", b"X") and pid != own:
                alive.append((pid, fields[_START_TIME]))
        return [
            each for each in alive if _is_below(each[0], own, parents) or self._has_cookie(each)
        ]

    def _has_cookie(self, identity: Identity) -> bool:
        """Return whether the environment of a process has the cookie.

        One without it is read once: an environment is inherited, and each child of a process of the
        agent is a descendant of the guard. Within an exec it is empty, and read again.
        """
        if identity in self._strangers:
            return False
        environment = _read(f"/proc/{identity[0]}/environ")
        if self._cookie in environment.split(b"\0"):
            return True
        if environment:
            self._strangers.add(identity)
        return False


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    seen = 0
    while pid != ancestor and seen < len(parents):
        pid = parents.get(pid, 0)
        seen += 1
        if pid == 0:
            return False
    return pid == ancestor


def _table() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the pid and the fields of every process."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to import
        if name.isdigit():
            stat = _read(f"/proc/{name}/stat")
            fields = stat[stat.rfind(b")") + 1 :].split()
            if len(fields) > _START_TIME:
                yield int(name), fields


def _read(path: str) -> bytes:
    # Half of the time that a file object takes, and a hundred guards may read all of /proc at once.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # it has just ended, or is another user's
        return b""
    read = b""
    try:
        while more := os.read(descriptor, _READ_BYTES):
            read += more
            if len(more) < _READ_BYTES:
                break
    except OSError:
        read = b""
    finally:
        os.close(descriptor)
    return read


def _signal(identity: Identity, signum: signal.Signals) -> int | None:
    """Signal this process and none that has its pid now; return its pidfd, None without one."""
    pid, start_time = identity
    try:
        pidfd: int | None = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except OSError:  # no descriptor is free
        pidfd = None
    # Checked after the pidfd was opened: from there on the pid cannot be reused unnoticed.
    stat = _read(f"/proc/{pid}/stat")
    fields = stat[stat.rfind(b")") + 1 :].split()
    if len(fields) > _START_TIME and fields[_START_TIME] == start_time:
        # A stopped process handles a signal only once it continues.
        _send(pid, pidfd, signum)
        _send(pid, pidfd, signal.SIGCONT)
        return pidfd
    if pidfd is not None:
        os.close(pidfd)
    return None


def _send(pid: int, pidfd: int | None, signum: signal.Signals) -> None:
    try:
        if pidfd is None:
            os.kill(pid, signum)
        else:
            signal.pidfd_send_signal(pidfd, signum)
    except OSError:  # gone, or not ours to signal: the next look shows which
        return


def _wake_at_child_end() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def _start(command: list[str], tty: str) -> int:
    """Start the agent; return its pid. Raises ``OSError``."""
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, tty, os.O_RDWR | os.O_NOCTTY, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # Not os.fork: posix_spawn does not copy the guard's memory, and reports a failed exec.
    return os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=streams if tty else [],
        setsid=True,
        setsigmask=[],
        setsigdef=sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}),
    )


def _adopt_orphans() -> None:
    """Become the parent of the agent's processes whose parents end."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # then they are found by the cookie alone
        return


def _release_streams() -> None:
    """Close the agent's streams, so that their ends are seen, and leave its directory."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    os.chdir("/")


def main() -> None:
    """Run the guard."""
    control, grace_s, open_files = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(control, False)
    for name in IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if open_files:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, hard))
    Guard(control, grace_s).run(sys.argv[5:], sys.argv[4])


if __name__ == "__main__":
    main()

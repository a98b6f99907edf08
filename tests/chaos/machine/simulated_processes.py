"""The processes of a simulated machine: sessions, groups, signals, ends, on Trio's clock.

The model follows signal(7), credentials(7) and setsid(2):

- A process has a pid, a start time, a parent, a session, a group, and the cookie of its first
  environment. Pids rise, and are reused once the highest was reached.

- Each signal is ignored, handled, or has its default effect. A stopped process takes a signal once
  it is continued; KILL ends it at once.

- An ended process is a zombie until its parent takes its status. Init adopts its children, and
  takes theirs.

- When the leader of a session ends, the foreground group of its terminal gets HUP. Stopped
  processes of that session get HUP and CONT.

A process is a task of the machine, which ends with no daemon. Not modelled: threads, other users,
limits, and processor time.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Literal, TypeAlias

import trio

from aegis.processes.process_table import OwnedProcess, ProcessInfo
from tests.chaos.machine.simulated_tty import Bell, SimulatedTty

TICKS_PER_SECOND = 100
FIRST_PID = 300
PIDS = 32_768
"""The last pid that is used; those below ``FIRST_PID`` are the machine's own."""

INIT = 1

_KEYS = 4096

Main: TypeAlias = Callable[["SimulatedProcess"], Awaitable[int]]
"""The program of a process; returns its exit code."""

Program: TypeAlias = Callable[["SimulatedProcess", Sequence[str]], Awaitable[int]]
"""The program of a name, with its arguments."""

Disposition: TypeAlias = Literal["ignore"] | Callable[[], None]

_HARMLESS = frozenset({signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG, signal.SIGCONT})
_STOPPING = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
_UNSTOPPABLE = frozenset({signal.SIGKILL, signal.SIGSTOP})


class SimulatedProcess:
    """A process. ``status`` is None while it lives: then its exit code, or minus a signal.

    ``tty`` is the terminal of its standard streams, if they have one.
    """

    def __init__(
        self,
        machine: Machine,
        pid: int,
        start_time: int,
        words: Sequence[str],
        *,
        parent: int,
        session: int,
        group: int,
        cookie: str | None,
        cwd: str,
        tty: SimulatedTty | None,
    ) -> None:
        self.machine = machine
        self.pid = pid
        self.start_time = start_time
        self.words = tuple(words)
        self.parent = parent
        self.session = session
        self.group = group
        self.cookie = cookie
        self.cwd = cwd
        self.tty = tty
        self.status: int | None = None
        self.ended = trio.Event()
        self.changed = Bell()
        self.stopped_by: signal.Signals | None = None
        self.reads_tty = False
        self._dispositions: dict[signal.Signals, Disposition] = {}
        self._pending: list[signal.Signals] = []
        self._killed_by: signal.Signals | None = None
        self._scope = trio.CancelScope()

    @property
    def name(self) -> str:
        """The last part of the program's path."""
        return self.words[0].rpartition("/")[2]

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self.status is None

    @property
    def is_killed(self) -> bool:
        """Return whether a signal has ended it, although its code still unwinds."""
        return self._killed_by is not None

    @property
    def info(self) -> ProcessInfo:
        """Return its entry in ``/proc``."""
        state = "S" if self.stopped_by is None else "T"
        return ProcessInfo(
            pid=self.pid,
            name=self.name,
            state=state if self.is_alive else "Z",
            session=self.session,
            threads=1,
            start_time=self.start_time,
            parent=self.parent,
        )

    # Signals.

    def ignore(self, *signums: signal.Signals) -> None:
        """Ignore these signals from now on."""
        self._dispositions.update(dict.fromkeys(signums, "ignore"))

    def handle(self, signum: signal.Signals, handler: Callable[[], None]) -> None:
        """Call ``handler`` at this signal from now on."""
        self._dispositions[signum] = handler

    @property
    def ignored(self) -> tuple[signal.Signals, ...]:
        """Return the ignored signals: its children inherit them."""
        return tuple(each for each, how in self._dispositions.items() if how == "ignore")

    def take(self, signum: signal.Signals) -> None:
        """Receive a signal."""
        if not self.is_alive:
            return
        if signum == signal.SIGCONT:
            self._go_on()
        how = None if signum in _UNSTOPPABLE else self._dispositions.get(signum)
        if how == "ignore" or (how is None and signum in _HARMLESS):
            return
        if how is None and signum in _STOPPING:
            self._stop(signum)
        elif self.stopped_by is not None and signum != signal.SIGKILL:
            self._pending.append(signum)
        elif how is None:
            self.die(signum)
        else:
            how()

    def die(self, signum: signal.Signals) -> None:
        """End by this signal."""
        self._killed_by = self._killed_by or signum
        self._scope.cancel()

    def _stop(self, signum: signal.Signals) -> None:
        self.stopped_by = signum
        self.changed.ring()

    def _go_on(self) -> None:
        if self.stopped_by is None:
            return
        self.stopped_by = None
        self.changed.ring()
        pending, self._pending = self._pending, []
        for signum in pending:
            self.take(signum)

    # Calls of its program.

    async def pause(self) -> None:
        """Let others run; while it is stopped, wait until it is continued."""
        await trio.lowlevel.checkpoint()
        while self.stopped_by is not None:
            await self.changed.wait()

    async def sleep(self, seconds: float) -> None:
        """Sleep; time passes while it is stopped, too."""
        await trio.sleep(seconds)
        await self.pause()

    async def write(self, data: bytes) -> None:
        """Print on its terminal. Raises ``trio.BrokenResourceError`` once that is hung up."""
        await self.pause()
        if self.tty is not None:
            await self.tty.write(data)
            await self.pause()

    async def read(self, size: int) -> bytes:
        """Read from its terminal; ``b""`` at the end of the file."""
        await self.pause()
        if self.tty is None:
            return b""
        self.reads_tty = True
        try:
            data = await self.tty.read(size)
        finally:
            self.reads_tty = False
        await self.pause()
        return data

    async def read_unless(self, interrupted: Callable[[], bool]) -> bytes | None:
        """Read all typed keys; return None once ``interrupted`` returns true."""
        assert self.tty is not None
        await self.pause()
        self.reads_tty = True
        try:
            while not self.tty.has_input and not interrupted():
                await self.tty.stirs()
        finally:
            self.reads_tty = False
        await self.pause()
        return None if interrupted() else await self.tty.read(_KEYS)

    async def wait_for(self, child: SimulatedProcess) -> int | None:
        """Wait for the end of a child, and return its status; None: it was stopped."""
        while child.is_alive and child.stopped_by is None:
            await child.changed.wait()
        await self.pause()
        if child.is_alive:
            return None
        return self.machine.reap(child)

    async def live(self, main: Main) -> int:
        """Run to the end; return the status."""
        code = 1
        with self._scope:
            await self.pause()
            try:
                code = await main(self)
            except trio.BrokenResourceError:
                code = 1  # what it writes to is hung up
        return code if self._killed_by is None else -self._killed_by


class Machine:
    """All processes of one machine, run by the tasks of ``nursery``.

    ``chance`` is the source of all randomness of the machine. ``witnessed`` is the log of its
    programs: evidence, independent of any daemon, of the commands that ran. ``installed`` are
    programs beside the usual ones, by name.
    """

    def __init__(self, nursery: trio.Nursery, chance: Random, *, pids: int = PIDS) -> None:
        self.chance = chance
        self.witnessed: list[tuple[str, ...]] = []
        self.installed: dict[str, Program] = {}
        self.boot = f"{chance.getrandbits(64):016x}"
        self._nursery = nursery
        self._pids = pids
        self._last_pid = FIRST_PID - 1
        self._last_start = 0
        self._last_tty = -1
        self._processes: dict[int, SimulatedProcess] = {}

    def start(
        self,
        main: Main,
        words: Sequence[str],
        *,
        cwd: str,
        cookie: str | None = None,
        parent: SimulatedProcess | None = None,
        session: int | None = None,
        group: int | None = None,
        tty: SimulatedTty | None = None,
        ignored: Iterable[signal.Signals] = (),
    ) -> SimulatedProcess:
        """Start a process. By default it leads a new session, or a new group of its session.

        ``parent`` None is a daemon, which is no process here.
        """
        pid = self._new_pid()
        process = SimulatedProcess(
            self,
            pid,
            self._new_start(),
            words,
            parent=0 if parent is None else parent.pid,
            session=pid if session is None else session,
            group=pid if group is None else group,
            cookie=cookie,
            cwd=cwd,
            tty=tty,
        )
        process.ignore(*ignored)
        self._processes[pid] = process
        if tty is not None:
            tty.hold(pid)
        self._nursery.start_soon(self._live, process, main)
        return process

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Call ``act`` in so many seconds."""
        self._nursery.start_soon(self._act_after, seconds, act)

    async def _act_after(self, seconds: float, act: Callable[[], None]) -> None:
        await trio.sleep(seconds)
        act()

    def fork(
        self,
        parent: SimulatedProcess,
        main: Main,
        words: Sequence[str],
        *,
        in_new_group: bool = False,
        in_new_session: bool = False,
        keeps_tty: bool = True,
        ignored: Iterable[signal.Signals] | None = None,
    ) -> SimulatedProcess:
        """Start a child of ``parent``, with its inheritance; ``ignored`` None: as the parent."""
        return self.start(
            main,
            words,
            cwd=parent.cwd,
            cookie=parent.cookie,
            parent=parent,
            session=None if in_new_session else parent.session,
            group=None if in_new_group or in_new_session else parent.group,
            tty=parent.tty if keeps_tty else None,
            ignored=parent.ignored if ignored is None else ignored,
        )

    def new_tty(self) -> SimulatedTty:
        """Return a new PTY."""
        self._last_tty += 1
        return SimulatedTty(f"/dev/pts/{self._last_tty}", self.signal_group, self.chance)

    # Queries.

    @property
    def alive(self) -> list[SimulatedProcess]:
        """Return the processes that have not ended."""
        return [each for each in self._processes.values() if each.is_alive]

    def owned(self) -> list[OwnedProcess]:
        """Return the live processes and their cookies."""
        return [OwnedProcess(each.info, each.cookie) for each in self.alive]

    def find(self, pid: int) -> SimulatedProcess | None:
        """Return the process with this pid, also a zombie."""
        return self._processes.get(pid)

    def groups(self) -> Mapping[int, Sequence[int]]:
        """Return the pids of each group."""
        groups: dict[int, list[int]] = {}
        for each in self._processes.values():
            groups.setdefault(each.group, []).append(each.pid)
        return groups

    # Signals and ends.

    def signal_group(self, group: int, signum: signal.Signals) -> bool:
        """Signal a group; return False if it is empty."""
        members = [each for each in self.alive if each.group == group]
        for member in members:
            member.take(signum)
        return bool(members)

    def reap(self, ended: SimulatedProcess) -> int:
        """Let its parent take the status of an ended process, which then is gone."""
        assert ended.status is not None
        if self._processes.get(ended.pid) is ended:
            del self._processes[ended.pid]
        return ended.status

    def orphan(self, pids: Iterable[int]) -> None:
        """Let init adopt the children of these processes."""
        for pid in pids:
            child = self._processes.get(pid)
            if child is not None:
                child.parent = INIT
                if not child.is_alive:
                    self.reap(child)

    async def _live(self, process: SimulatedProcess, main: Main) -> None:
        self._ended(process, await process.live(main))

    def _ended(self, process: SimulatedProcess, status: int) -> None:
        process.status, process.stopped_by = status, None
        self.orphan([each.pid for each in self._processes.values() if each.parent == process.pid])
        if process.pid == process.session:
            self._session_ended(process)
        if process.tty is not None:
            process.tty.release(process.pid)
        if process.parent == INIT:
            self.reap(process)
        process.ended.set()
        process.changed.ring()

    def _session_ended(self, leader: SimulatedProcess) -> None:
        if leader.tty is not None and leader.tty.foreground is not None:
            self.signal_group(leader.tty.foreground, signal.SIGHUP)
            self.signal_group(leader.tty.foreground, signal.SIGCONT)
        for each in self.alive:
            if each.session == leader.pid and each.stopped_by is not None:
                each.take(signal.SIGHUP)
                each.take(signal.SIGCONT)

    def _new_pid(self) -> int:
        taken = set(self._processes)
        for each in self._processes.values():
            taken |= {each.session, each.group}
        for _ in range(self._pids):
            self._last_pid = self._last_pid + 1 if self._last_pid < self._pids else FIRST_PID
            if self._last_pid not in taken:
                return self._last_pid
        raise AssertionError("a simulated machine has no pid left")

    def _new_start(self) -> int:
        self._last_start = max(self._last_start + 1, int(trio.current_time() * TICKS_PER_SECOND))
        return self._last_start

"""``ChildCookies``: the cookies with which the daemon started its own children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import trio

from aegis.processes.process_table import ProcessInfo

KEPT = 1024
"""Beyond this number, children that have ended are forgotten."""


@attrs.define(eq=False)
class ChildCookies:
    """The cookies of direct children, by pid and start time.

    A child replaces its environment by an exec (``exec env -i …``), and with it the cookie that
    ``/proc`` shows. What the daemon remembers cannot be replaced.
    """

    _by_pid: dict[int, tuple[int, str]] = attrs.field(factory=dict)
    _starting: set[trio.Event] = attrs.field(factory=set)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Start a child in this block, and call ``add`` before its end."""
        # A child may connect before the loop knows its pid: ``settled`` waits for this block.
        ended = trio.Event()
        self._starting.add(ended)
        try:
            yield
        finally:
            self._starting.discard(ended)
            ended.set()

    async def settled(self) -> None:
        """Wait for the end of the starts that are in progress."""
        for each in list(self._starting):
            await each.wait()

    def add(
        self,
        process: ProcessInfo | None,
        cookie: str,
        process_of: Callable[[int], ProcessInfo | None],
    ) -> None:
        """Remember the cookie of a child that was just started; None: it has ended.

        ``process_of`` returns the process with a pid. A child that runs is never forgotten: else
        an agent could start so many commands that its shell would be.
        """
        if process is None:
            return
        self._by_pid[process.pid] = (process.start_time, cookie)
        if len(self._by_pid) > KEPT:
            running = [found for pid in self._by_pid if (found := process_of(pid)) is not None]
            self._by_pid = {
                each.pid: (each.start_time, known)
                for each in running
                if (known := self.cookie_of(each)) is not None
            }

    def cookie_of(self, process: ProcessInfo) -> str | None:
        """Return the cookie with which a process was started; None if that is not known."""
        start_time, cookie = self._by_pid.get(process.pid, (None, None))
        return cookie if start_time == process.start_time else None

"""Reads of the machine's process table, shared by all terminals and workspaces."""

from __future__ import annotations

from collections.abc import Container, Sequence

import trio

from aegis.processes.process_host import Groups, ProcessHost
from aegis.processes.process_table import OwnedProcess, ProcessInfo

REUSE = 10
"""A read of the process groups is reused for this multiple of its duration.

So these reads take at most a tenth of the time.
"""


class ProcessSnapshot:
    """The live processes at one moment."""

    # Indexed by session and by cookie: when many terminals end at once it is searched as often.

    def __init__(self, processes: Sequence[OwnedProcess]) -> None:
        self._processes = processes
        self._by_session: dict[int, list[ProcessInfo]] = {}
        self._by_cookie: dict[str, list[ProcessInfo]] = {}
        for each in processes:
            self._by_session.setdefault(each.process.session, []).append(each.process)
            if each.cookie is not None:
                self._by_cookie.setdefault(each.cookie, []).append(each.process)

    def cookie_of(self, pid: int) -> str | None:
        """Return the cookie of a process; None without one, or if it is not alive."""
        return next((each.cookie for each in self._processes if each.process.pid == pid), None)

    def of(self, sids: Container[int], cookies: Container[str | None]) -> list[ProcessInfo]:
        """Return the processes of these sessions or with one of these cookies, each once."""
        if isinstance(sids, list) and isinstance(cookies, list):
            found = [self._by_session.get(sid, ()) for sid in sids]
            found += [self._by_cookie.get(cookie, ()) for cookie in cookies]
            return list({each.pid: each for some in found for each in some}.values())
        return [
            each.process
            for each in self._processes
            if each.process.session in sids or each.cookie in cookies
        ]


class ProcessScan:
    """Scans of all processes of ``host``, one at a time.

    Callers that come during a scan share the next one: many terminals that end at once cost a few
    scans.
    """

    def __init__(self, host: ProcessHost) -> None:
        self.host = host
        self._one_at_a_time = trio.Lock()
        self._begun = 0
        self._last = (0, ProcessSnapshot(()))

    async def processes(self) -> ProcessSnapshot:
        """Return the live processes, by a scan that began after this call."""
        begun_before = self._begun
        async with self._one_at_a_time:
            number, found = self._last
            if number > begun_before:
                return found
            self._begun += 1
            number = self._begun
            found = ProcessSnapshot(await self.host.all_processes())
            self._last = (number, found)
            return found


class GroupScan:
    """Reads of the process groups of ``host``, one at a time and reused for a short time.

    A thousand terminals that look for their foreground processes cost a few reads.
    """

    def __init__(self, host: ProcessHost) -> None:
        self.host = host
        self._one_at_a_time = trio.Lock()
        self._groups: Groups = {}
        self._good_until = 0.0

    async def members(self, group: int) -> Sequence[int]:
        """Return the pids in this process group, now or a moment ago."""
        async with self._one_at_a_time:
            if trio.current_time() >= self._good_until:
                begun = trio.current_time()
                self._groups = await self.host.groups()
                ended = trio.current_time()
                self._good_until = ended + (REUSE - 1) * (ended - begun)
            return self._groups.get(group, ())

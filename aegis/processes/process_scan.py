"""One look at all processes of the machine, shared by all terminals that need one."""

from __future__ import annotations

from collections.abc import Container, Sequence

import trio

from aegis.processes.process_host import ProcessHost
from aegis.processes.process_table import OwnedProcess, ProcessInfo


class Seen:
    """The live processes of one look.

    By session and by cookie: a hundred terminals that end at once ask it hundreds of times.
    """

    def __init__(self, processes: Sequence[OwnedProcess]) -> None:
        self._processes = processes
        self._by_session: dict[int, list[ProcessInfo]] = {}
        self._by_cookie: dict[str, list[ProcessInfo]] = {}
        for each in processes:
            self._by_session.setdefault(each.process.session, []).append(each.process)
            if each.cookie is not None:
                self._by_cookie.setdefault(each.cookie, []).append(each.process)

    def of(self, sids: Container[int], cookies: Container[str | None]) -> list[ProcessInfo]:
        """Those of these sessions or with one of these cookies, each once."""
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
    """Scans of ``host``, one at a time; whoever asks while one runs shares the next.

    So a hundred terminals that end at once cost a few scans, not hundreds.
    """

    def __init__(self, host: ProcessHost) -> None:
        self.host = host
        self._one_at_a_time = trio.Lock()
        self._begun = 0
        self._last = (0, Seen(()))

    async def processes(self) -> Seen:
        """The live processes, by a scan that began after this call."""
        begun_before = self._begun
        async with self._one_at_a_time:
            number, found = self._last
            if number > begun_before:
                return found
            self._begun += 1
            number = self._begun
            found = Seen(await self.host.all_processes())
            self._last = (number, found)
            return found

"""One look at all processes of the machine, shared by all terminals that need one."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from aegis.terminals.process_host import ProcessHost
from aegis.terminals.process_table import OwnedProcess


class ProcessScan:
    """Scans of ``host``, one at a time; whoever asks while one runs shares the next.

    So a hundred terminals that end at once cost a few scans, not hundreds.
    """

    def __init__(self, host: ProcessHost) -> None:
        self.host = host
        self._one_at_a_time = trio.Lock()
        self._begun = 0
        self._last: tuple[int, Sequence[OwnedProcess]] = (0, ())

    async def processes(self) -> Sequence[OwnedProcess]:
        """The live processes, by a scan that began after this call."""
        begun_before = self._begun
        async with self._one_at_a_time:
            number, found = self._last
            if number > begun_before:
                return found
            self._begun += 1
            number = self._begun
            found = await self.host.all_processes()
            self._last = (number, found)
            return found

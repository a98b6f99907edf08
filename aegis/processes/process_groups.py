"""Which processes are in a process group: one look at all of them, shared by all terminals."""

from __future__ import annotations

import os
from collections.abc import Sequence

import trio

from aegis.processes.process_host import Groups, ProcessHost
from aegis.processes.process_table import group_of

SHARE = 10
"""What a look told is used for so many times as long as it took: it costs a tenth of the time."""


class GroupScan:
    """Looks at ``host``, one at a time; whoever asks while one runs shares it.

    So a thousand terminals that wonder who is in front of them cost a few looks, not thousands.
    """

    def __init__(self, host: ProcessHost) -> None:
        self.host = host
        self._one_at_a_time = trio.Lock()
        self._groups: Groups = {}
        self._good_until = 0.0

    async def members(self, group: int) -> Sequence[int]:
        """The pids in this process group, now or a moment ago."""
        async with self._one_at_a_time:
            if trio.current_time() >= self._good_until:
                begun = trio.current_time()
                self._groups = await self.host.groups()
                ended = trio.current_time()
                self._good_until = ended + (SHARE - 1) * (ended - begun)
            return self._groups.get(group, ())


def look_at_groups() -> Groups:
    """The pids of every process group. Some hundred processes take milliseconds."""
    groups: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a Path for each process costs more than it
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123
                    groups.setdefault(group_of(file.read(1024)), []).append(int(name))
            except (OSError, ValueError):  # it has just ended
                continue
    return groups

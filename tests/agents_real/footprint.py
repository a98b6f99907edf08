"""The memory of processes, their children, and the texts that /proc shows of them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import attrs


@attrs.frozen
class Footprint:
    """Memory in MiB: ``rss`` counts shared pages for each process, ``pss`` once."""

    rss: int
    pss: int
    processes: int


def footprint(pids: Iterable[int]) -> Footprint:
    """Return the memory of these processes together."""
    sums = {"Rss": 0, "Pss": 0}
    listed = list(pids)
    for each in listed:
        try:
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        for line in rollup.splitlines():
            name, _, value = line.partition(":")
            if name in sums:
                sums[name] += int(value.split()[0])
    return Footprint(sums["Rss"] // 1024, sums["Pss"] // 1024, len(listed))


def descendants(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for parent in found:
        with suppress(OSError):  # it has just ended
            for children in list(Path(f"/proc/{parent}/task").glob("*/children")):
                found += map(int, children.read_text().split())
    return found


def shown_texts(pids: Iterable[int]) -> dict[str, bytes]:
    """Return the arguments and the environments of these processes, by their paths in /proc."""
    found = {}
    for path in (f"/proc/{pid}/{name}" for pid in pids for name in ("cmdline", "environ")):
        with suppress(OSError):  # a command of an agent has just ended
            found[path] = Path(path).read_bytes()
    return found

"""The processes of a root's terminals, each known beyond the reuse of its pid."""

from __future__ import annotations

from pathlib import Path

import attrs


@attrs.frozen(order=True)
class Process:
    """A live process; ``start`` is when it began, in ticks since the machine did."""

    pid: int
    start: int
    words: str = attrs.field(eq=False, order=False)

    def __str__(self) -> str:
        return f"{self.words} (pid {self.pid})"


def processes_of(root: Path) -> frozenset[Process]:
    """Every live process whose first environment names a terminal of this root."""
    cookie = f"AEGIS_TERMINAL={root}/".encode()
    found = [_process(path, cookie) for path in Path("/proc").glob("[0-9]*")]
    return frozenset(process for process in found if process is not None)


def _process(path: Path, cookie: bytes) -> Process | None:
    try:
        environ = (path / "environ").read_bytes().split(b"\0")
        words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        state, *fields = (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if state in "ZX" or not any(entry.startswith(cookie) for entry in environ):
        return None
    return Process(int(path.name), int(fields[18]), words.strip())

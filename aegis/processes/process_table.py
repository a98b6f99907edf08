"""Parsing ``stat`` and ``environ`` of ``/proc/<pid>`` (proc(5)): bytes in, facts out. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from aegis.protocol.naming import name_key

COOKIE_VARIABLE = "AEGIS_TERMINAL"
"""The variable that marks every process of a terminal's shell, in its first environment."""

_COOKIE_ENTRY = b"\0" + COOKIE_VARIABLE.encode() + b"="

_STATE, _PARENT, _GROUP, _SESSION, _FOREGROUND, _THREADS, _START_TIME = 0, 1, 2, 3, 5, 17, 19
_MEMORY, _ARGUMENTS, _ENVIRONMENT, _ENVIRONMENT_END = 20, 45, 47, 48
"""Fields of stat, counted from the one after the name (which may hold anything, even ``)``)."""


@attrs.frozen(kw_only=True)
class ProcessInfo:
    """One process. ``start_time``, in clock ticks since boot, makes a reused pid recognisable."""

    pid: int
    name: str
    state: str
    session: int
    threads: int
    start_time: int
    parent: int = 0
    group: int = 0
    foreground_group: int = -1

    @property
    def is_alive(self) -> bool:
        """False for a zombie. A process whose first thread alone has ended looks like one."""
        return self.state not in "ZX" or self.threads > 1

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


@attrs.frozen
class OwnedProcess:
    """A process and the cookie in its first environment; None: without one, or hidden."""

    process: ProcessInfo
    cookie: str | None


def parse_stat(stat: bytes) -> ProcessInfo:
    """Parse a ``stat`` file. Raises ``ValueError`` if it is none."""
    opening, closing = stat.find(b"("), stat.rfind(b")")
    if not 0 < opening < closing:
        raise ValueError("a process's stat file must hold its name in parentheses")
    fields = stat[closing + 1 :].split()
    if len(fields) <= _START_TIME:
        raise ValueError("a process's stat file must hold at least 22 fields")
    return ProcessInfo(
        pid=int(stat[:opening]),
        name=stat[opening + 1 : closing].decode(errors="replace"),
        state=fields[_STATE].decode("ascii"),
        session=int(fields[_SESSION]),
        threads=int(fields[_THREADS]),
        start_time=int(fields[_START_TIME]),
        parent=int(fields[_PARENT]),
        group=int(fields[_GROUP]),
        foreground_group=int(fields[_FOREGROUND]),
    )


def group_of(stat: bytes) -> int:
    """Return the process group in a ``stat`` file, quickly. Raises ``ValueError``."""
    fields = stat[stat.rfind(b")") + 1 :].split(None, _GROUP + 1)
    if len(fields) <= _GROUP:
        raise ValueError("a process's stat file must hold its process group")
    return int(fields[_GROUP])


def arguments_address(stat: bytes) -> int:
    """Return the address of a process's arguments, which each exec changes; 0 if it is hidden.

    Raises ``ValueError`` if it is no ``stat`` file.
    """
    fields = stat[stat.rfind(b")") + 1 :].split()
    if len(fields) <= _ARGUMENTS:
        raise ValueError("a process's stat file must hold the place of its arguments")
    return int(fields[_ARGUMENTS])


def environment_range(stat: bytes) -> tuple[int, int] | None:
    """Return begin and end of a process's first environment in its memory (proc(5), ``env_start``).

    None without memory: a kernel thread, a zombie. Raises ``ValueError`` if it is no ``stat`` file.
    """
    # During an exec both are 0 at first, then equal for a moment, and the environment reads as
    # empty. Of a process with an empty environment both stay equal.
    fields = stat[stat.rfind(b")") + 1 :].split()
    if len(fields) <= _ENVIRONMENT_END:
        raise ValueError("a process's stat file must hold the place of its environment")
    if fields[_MEMORY] == b"0":
        return None
    return int(fields[_ENVIRONMENT]), int(fields[_ENVIRONMENT_END])


def with_ancestors(pid: int, processes: Mapping[int, ProcessInfo]) -> set[int]:
    """Return the pids of a process and of its known ancestors."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def cookie_of(environ: bytes) -> str | None:
    """Return the cookie in a process's first environment, None without one."""
    entries = b"\0" + environ
    begin = entries.find(_COOKIE_ENTRY)
    if begin < 0:
        return None
    value = entries[begin + len(_COOKIE_ENTRY) :].partition(b"\0")[0]
    return value.decode(errors="surrogateescape")


def has_cookie(environ: bytes, cookies: Collection[str]) -> bool:
    """Return whether this first environment holds exactly one of the cookies."""
    return cookie_of(environ) in cookies


def terminal_of_cookie(cookie: str, root: str) -> str | None:
    """Return the name of the terminal with this cookie; None if it is none of ``root``."""
    of_root, *rest = cookie.rsplit("/", 2)
    return rest[0] if of_root == root and len(rest) == 2 else None


@attrs.frozen(kw_only=True)
class CookiesOf:
    """A container of the cookies of a root's terminals, or of the terminal ``name``, in any life.

    ``also`` are single cookies beside them.
    """

    # The last two parts of a cookie are the terminal's name, compared as names are, and its life:
    # so a root below another root is not taken for a terminal.

    root: str
    name: str | None = None
    also: frozenset[str] = frozenset()

    def __contains__(self, cookie: object) -> bool:
        if not isinstance(cookie, str):
            return False
        root, *rest = cookie.rsplit("/", 2)
        if cookie in self.also:
            return True
        if root != self.root or len(rest) != 2:
            return False
        return self.name is None or name_key(rest[0]) == name_key(self.name)

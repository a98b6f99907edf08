"""The foreground processes of a terminal, and what they wait for: from the tty and ``/proc``.

Rules:

- Only the foreground process group is read: its leader first, which takes some 50 µs, and its other
  members only where the leader does not explain the terminal's state.
- Of a process that may not be traced (another user's, such as sudo) only the name is known.
- The result may be outdated a moment later: it is information for a person or an agent.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence

from aegis.processes.input_wait import (
    Doubt,
    Foreground,
    Sleep,
    doubt_of,
    is_busy,
    is_terminal,
    may_read_terminal,
    reads_descriptor,
    sleep_of,
)
from aegis.processes.line_discipline import LineDiscipline
from aegis.processes.proc_files import list_names, read_file
from aegis.processes.process_host import ProcessHost, Program, ProgramImage, ShellProcess
from aegis.processes.process_scan import GroupScan
from aegis.processes.process_table import arguments_address

MAX_MEMBERS = 64
MAX_THREADS = 16
MAX_DESCRIPTORS = 256
"""Limits of what is read of a large group or process."""

_MACHINE = platform.machine()


async def read_foreground(process: ShellProcess, groups: GroupScan) -> Foreground | None:
    """Return the foreground of the terminal of ``process``; None without one, or if it changes."""
    tty = process.line_discipline()
    group = None if tty is None else process.foreground_pgrp()
    if tty is None or group is None:
        return None
    front = await _read_group(group, tty, groups)
    # A command may have ended between the reads, and the shell begun its next one: the result
    # counts only if the tty is unchanged.
    now = process.line_discipline()
    is_settled = now is not None and (now.is_canonical, now.echoes) == (
        tty.is_canonical,
        tty.echoes,
    )
    return front if is_settled and process.foreground_pgrp() == group else None


async def _read_group(group: int, tty: LineDiscipline, groups: GroupScan) -> Foreground:
    program_of = groups.host.program_of
    leader = program_of(group, tty.name)
    reader = leader if leader is not None and leader.reads else None
    hidden = leader is not None and leader.reads is None
    busy, doubt = False, None if reader is None else reader.doubt
    if reader is None and not hidden:
        members = [pid for pid in await groups.members(group) if pid != group]
        shown = members[:MAX_MEMBERS]
        programs = {pid: found for pid in shown if (found := program_of(pid, tty.name)) is not None}
        readers = [pid for pid, each in programs.items() if each.reads]
        if readers:
            pid = min(readers, key=lambda each: programs[each].doubt is not None)
            reader = programs[pid]
            everyone = programs if leader is None else {group: leader, **programs}
            doubt = reader.doubt or _doubt_beside(pid, group, everyone, groups.host)
        group_of_all = list(programs.values()) if leader is None else [leader, *programs.values()]
        busy = len(shown) == len(members) and all(each.is_busy for each in group_of_all)
        leader = leader or next(iter(programs.values()), None)
    return Foreground(
        group=group,
        is_canonical=tty.is_canonical,
        echoes=tty.echoes,
        program="" if leader is None else leader.name,
        reader=None if reader is None else reader.name,
        is_hidden=hidden,
        is_busy=busy,
        doubt=doubt,
    )


def _doubt_beside(
    reader: int, group: int, programs: Mapping[int, Program], host: ProcessHost
) -> Doubt:
    """Return the doubt about a reader that does not lead its group: an earlier part may work."""
    above: set[int] = set()
    pid = reader
    while (process := host.process_of(pid)) is not None and process.parent not in (0, *above):
        pid = process.parent
        above.add(pid)
    # A child of the leader that has no pipe is its own part: what runs beside it is in the
    # background of a script.
    if group in above and not programs[reader].is_piped:
        return None
    others = (each for pid, each in programs.items() if pid != reader and pid not in above)
    return "work" if any(each.works for each in others) else None


def program_image(pid: int) -> ProgramImage | None:
    """Return the program that a process runs; None if that is unknown."""
    words, stat = _read(f"/proc/{pid}/cmdline"), _read(f"/proc/{pid}/stat")
    if not words or stat is None:
        return None
    return ProgramImage(
        words=tuple(os.fsdecode(word) for word in words.removesuffix(b"\0").split(b"\0")),
        address=arguments_address(stat),
    )


def program_of(pid: int, terminal: str) -> Program | None:
    """Return the process's name and whether it reads the terminal; None if it is gone."""
    name = _read(f"/proc/{pid}/comm")
    return None if name is None else _program(pid, terminal, name.decode(errors="replace").strip())


def _program(pid: int, terminal: str, name: str) -> Program:
    is_known = may_wait = False
    sleeps: dict[str, Sleep] = {}
    threads = _threads(pid)
    reading = []
    for thread in threads:
        task = f"/proc/{pid}/task/{thread}"
        syscall = _read(f"{task}/syscall")
        wchan = _read(f"{task}/wchan") if syscall is None else None
        sleeps[thread] = "other"
        if syscall is not None:
            is_known = True
            text = syscall.decode(errors="replace")
            descriptor = reads_descriptor(text, _MACHINE)
            file = "" if descriptor is None else _file(pid, descriptor)
            # It may have slept in a read of a pipe, whose place the terminal has taken since then:
            # a shell restores descriptor 0 after `read x <pipe`.
            if is_terminal(file, terminal) and _read(f"{task}/syscall") == syscall:
                reading.append(thread)
                continue
            # A read of a pipe or a file waits for no key.
            may_wait |= descriptor is None and not is_busy(text, _MACHINE)
            sleeps[thread] = "other" if file.startswith("socket:") else sleep_of(text, _MACHINE)
        elif wchan not in (None, b"0", b""):
            is_known = may_wait = True
            sleeps_there = may_read_terminal(wchan.decode(errors="replace"), _files(pid), terminal)
            if sleeps_there and _read(f"{task}/wchan") == wchan:
                reading.append(thread)
    may_wait |= len(threads) == MAX_THREADS  # there may be more, which were not looked at
    if reading:
        main = None if str(pid) in reading else sleeps.get(str(pid), "other")
        others = [sleep for thread, sleep in sleeps.items() if thread not in reading]
        return Program(
            name=name,
            reads=True,
            doubt=doubt_of(main, others),
            is_piped=_file(pid, 0).startswith("pipe:"),
        )
    works = not sleeps or any(each not in ("pipe", "child") for each in sleeps.values())
    reads = False if is_known else None
    return Program(name=name, reads=reads, is_busy=is_known and not may_wait, works=works)


def _threads(pid: int) -> Sequence[str]:
    try:
        return list_names(f"/proc/{pid}/task")[:MAX_THREADS]
    except OSError:
        return ()


def _files(pid: int) -> dict[int, str]:
    try:
        numbers = list_names(f"/proc/{pid}/fd")[:MAX_DESCRIPTORS]
    except OSError:
        return {}
    return {int(number): _file(pid, int(number)) for number in numbers}


def _file(pid: int, descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115
    except OSError:
        return ""


def _read(path: str) -> bytes | None:
    """Return a small file of ``/proc``; None if it cannot be read."""
    try:
        return read_file(path, 4096)
    except OSError:
        return None

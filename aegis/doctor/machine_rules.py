"""The requirements of a machine, as rules on measured values. Pure."""

from __future__ import annotations

import re

from aegis.doctor.finding import Finding, ok, problem, warning

MIN_KERNEL = (5, 4)
MIN_PYTHON = (3, 11)

FEW_FILES = 1024
"""Limit of open files below which a few dozen terminals and their clients fail."""

FEW_WATCHES = 8192
"""Limit of inotify watches below which programs that watch files may fail."""

LOW_SPACE_BYTES = 1 << 30
NO_SPACE_BYTES = 64 << 20
"""Free space below which there is a warning, and below which there is a problem."""

EARLIEST_S = 1_735_689_600
"""2025-01-01: a clock before this date was never set."""

BACK_S = 120.0
"""Seconds by which the newest file may be ahead of the clock."""


def judge_kernel(system: str, release: str) -> Finding:
    """Judge the system and its release, as returned by ``uname``."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if system != "Linux" or found is None:
        return problem("kernel", f"this is {system} {release}", "run it on Linux 5.4 or newer")
    if (int(found[1]), int(found[2])) < MIN_KERNEL:
        return problem("kernel", f"this is Linux {release}", "upgrade to Linux 5.4 or newer")
    return ok("kernel", f"Linux {release}")


def judge_python(version: tuple[int, int, int]) -> Finding:
    """Judge the version of the interpreter."""
    shown = ".".join(map(str, version))
    if version[:2] < MIN_PYTHON:
        return problem("python", f"this is Python {shown}", "use Python 3.11 or newer")
    return ok("python", f"Python {shown}")


def judge_packages(versions: dict[str, str | None]) -> Finding:
    """Judge the versions of the required packages; None for a missing one."""
    missing = sorted(name for name, version in versions.items() if version is None)
    if missing:
        return problem("packages", f"missing: {', '.join(missing)}", "install aegis-actors again")
    shown = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return ok("packages", shown)


def judge_files(soft: int, hard: int) -> Finding:
    """Judge the soft and hard limit of open files (RLIMIT_NOFILE)."""
    if hard < FEW_FILES:
        sentence = f"a process may open {hard} files: enough for a few terminals only"
        return warning("open files", sentence, f"raise the hard limit to {FEW_FILES} or more")
    return ok("open files", f"{soft} at once, up to {hard}")


def judge_watches(most: int | None, refusal: str = "") -> Finding:
    """Judge the limit of inotify watches, None if unknown, and why no instance can be opened."""
    if refusal:
        return warning(
            "inotify",
            f"no file can be watched ({refusal}): the files of canvases are looked at every 5 s, "
            "and programs that wait for changes may fail",
            "raise fs.inotify.max_user_instances (sysctl), or end programs that watch files",
        )
    if most is not None and most < FEW_WATCHES:
        return warning(
            "inotify",
            f"{most} files may be watched: programs that wait for changes may fail",
            f"set fs.inotify.max_user_watches to {FEW_WATCHES} or more (sysctl)",
        )
    return ok("inotify", "no limit is known" if most is None else f"{most} files may be watched")


def judge_space(free: int, path: str) -> Finding:
    """Judge the free bytes of the file system at ``path``."""
    sentence = f"{free >> 20} MiB free at {path}"
    if free < NO_SPACE_BYTES:
        return problem(
            "disk",
            sentence,
            "free some space: commands are refused if their records cannot be stored",
        )
    if free < LOW_SPACE_BYTES:
        return warning("disk", sentence, "free some space before it is used up")
    return ok("disk", sentence)


def judge_clock(now: float, newest: float | None) -> Finding:
    """Judge the time against the time of the newest state file; both in seconds since 1970."""
    if now < EARLIEST_S:
        return problem("clock", "it is before 2025", "set the clock: records contain its time")
    if newest is not None and newest > now + BACK_S:
        sentence = f"the state was written {newest - now:.0f} s in the future"
        return warning("clock", sentence, "check whether the clock was set back")
    return ok("clock", "not before the newest record")

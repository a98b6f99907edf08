"""What a machine must have, judged by figures. Pure."""

from __future__ import annotations

import re

from aegis.doctor.finding import Finding, ok, problem, warning

MIN_KERNEL = (5, 4)
MIN_PYTHON = (3, 11)

FEW_FILES = 1024
"""Open files below which some dozen terminals and their clients do not fit."""

FEW_WATCHES = 8192
"""Watched files below which programs in terminals that wait for changes fail."""

LOW_SPACE_BYTES = 1 << 30
NO_SPACE_BYTES = 64 << 20
"""Less free space than this: warn; less than that: a record or two and the disk is full."""

EARLIEST_S = 1_735_689_600
"""2025-01-01: a clock before it was never set."""

BACK_S = 120.0
"""The newest file may be so many seconds ahead of the clock."""


def judge_kernel(system: str, release: str) -> Finding:
    """The system's name and its release, as ``uname`` gives them."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if system != "Linux" or found is None:
        return problem("kernel", f"this is {system} {release}", "run it on Linux 5.4 or newer")
    if (int(found[1]), int(found[2])) < MIN_KERNEL:
        return problem("kernel", f"this is Linux {release}", "upgrade to Linux 5.4 or newer")
    return ok("kernel", f"Linux {release}")


def judge_python(version: tuple[int, int, int]) -> Finding:
    """The version of the interpreter."""
    shown = ".".join(map(str, version))
    if version[:2] < MIN_PYTHON:
        return problem("python", f"this is Python {shown}", "use Python 3.11 or newer")
    return ok("python", f"Python {shown}")


def judge_packages(versions: dict[str, str | None]) -> Finding:
    """The version of each package that is needed; None for one that is missing."""
    missing = sorted(name for name, version in versions.items() if version is None)
    if missing:
        return problem("packages", f"missing: {', '.join(missing)}", "install aegis-actors again")
    shown = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return ok("packages", shown)


def judge_files(soft: int, hard: int) -> Finding:
    """How many files a process may have open, and how far it may raise that (RLIMIT_NOFILE)."""
    if hard < FEW_FILES:
        sentence = f"a process may have {hard} files open: room for a few terminals"
        return warning("open files", sentence, f"raise the hard limit to {FEW_FILES} or more")
    return ok("open files", f"{soft} at once, up to {hard}")


def judge_watches(most: int | None) -> Finding:
    """How many files a user may watch (inotify); None if the kernel does not say."""
    if most is not None and most < FEW_WATCHES:
        return warning(
            "inotify",
            f"{most} files may be watched: programs that wait for changes may fail",
            f"set fs.inotify.max_user_watches to {FEW_WATCHES} or more (sysctl)",
        )
    return ok("inotify", "no limit is told" if most is None else f"{most} files may be watched")


def judge_space(free: int, path: str) -> Finding:
    """The bytes that are free where the state is."""
    sentence = f"{free >> 20} MiB free at {path}"
    if free < NO_SPACE_BYTES:
        return problem("disk", sentence, "free some space: nothing is taken that cannot be kept")
    if free < LOW_SPACE_BYTES:
        return warning("disk", sentence, "free some space before it is used up")
    return ok("disk", sentence)


def judge_clock(now: float, newest: float | None) -> Finding:
    """The time of day, and when the newest file of the state was written; seconds since 1970."""
    if now < EARLIEST_S:
        return problem("clock", "it is before 2025", "set the clock: records carry its time")
    if newest is not None and newest > now + BACK_S:
        sentence = f"the state was written {newest - now:.0f} s in the future"
        return warning("clock", sentence, "look whether the clock was put back")
    return ok("clock", "not before what is recorded")

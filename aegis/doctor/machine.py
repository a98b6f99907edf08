"""The check of the machine: kernel, Python, packages, limits, disk space, clock."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from inotify_simple import INotify

from aegis.doctor.finding import Finding
from aegis.doctor.machine_rules import (
    judge_clock,
    judge_files,
    judge_kernel,
    judge_packages,
    judge_python,
    judge_space,
    judge_watches,
)
from aegis.state.root import StatePaths

DISTRIBUTION = "aegis-actors"
WATCHES = Path("/proc/sys/fs/inotify/max_user_watches")


def examine_machine(state: StatePaths) -> Iterator[Finding]:
    """Yield one finding for each subject. Raises ``OSError``."""
    uname = os.uname()
    yield judge_kernel(uname.sysname, uname.release)
    yield judge_python(sys.version_info[:3])
    yield judge_packages(dict(_packages()))
    yield judge_files(*resource.getrlimit(resource.RLIMIT_NOFILE))
    yield judge_watches(int(WATCHES.read_text()) if WATCHES.exists() else None, _no_instance())
    yield judge_space(shutil.disk_usage(state.root).free, str(state.root))
    yield judge_clock(time.time(), _newest(state.directory))


def _no_instance() -> str:
    """Return why this user can open no instance of inotify; empty if one can be."""
    try:
        INotify().close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _packages() -> Iterator[tuple[str, str | None]]:
    """Yield the required packages and their installed versions, None if missing."""
    for requirement in metadata.requires(DISTRIBUTION) or []:
        if ";" in requirement:
            continue  # of an optional extra
        found = re.match(r"[\w.-]+", requirement)
        assert found is not None
        try:
            yield found[0], metadata.version(found[0])
        except metadata.PackageNotFoundError:
            yield found[0], None


def _newest(directory: Path) -> float | None:
    """Return the modification time of the newest file in the directory."""
    if not directory.is_dir():
        return None
    return max((each.lstat().st_mtime for each in directory.iterdir()), default=None)

"""Which kind of shell a program is, by its name."""

from __future__ import annotations

from pathlib import Path

from aegis.terminals.shells import bash, fallback, fish
from aegis.terminals.shells.adapter import ShellAdapter

_KINDS = {"bash": bash.prepare, "fish": fish.prepare}

_POSIX = frozenset({"ash", "busybox", "dash", "ksh", "ksh93", "lksh", "mksh", "sh", "yash"})


def is_supported(program: str) -> bool:
    """Whether there is a hook for this program."""
    return Path(program).name in _KINDS


def prepare_shell(program: str, directory: Path) -> ShellAdapter:
    """Write the start-up files for one start of ``program`` into ``directory`` (mode 0700).

    Raises ``OSError``.
    """
    name = Path(program).name
    if name in _KINDS:
        return _KINDS[name](program, directory)
    if name in _POSIX:
        return fallback.prepare_posix(program, directory)
    return fallback.prepare_other(program, directory)

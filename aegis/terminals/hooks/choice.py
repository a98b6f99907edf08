"""The kind of shell of a program, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from aegis.terminals.hooks import bash, fallback, fish, zsh
from aegis.terminals.hooks.adapter import Rearmed, ShellAdapter
from aegis.terminals.hooks.startup import write_private

_KINDS: Mapping[str, Callable[[str, Path], ShellAdapter]] = {
    "bash": bash.prepare,
    "fish": fish.prepare,
    "zsh": zsh.prepare,
}

_POSIX = frozenset({"ash", "busybox", "dash", "ksh", "ksh93", "lksh", "mksh", "sh", "yash"})

_REARM: Mapping[str, Callable[[tuple[str, ...], Path], Rearmed]] = {
    "bash": bash.rearm,
    "fish": fish.rearm,
    "zsh": zsh.rearm,
}
"""The functions that give a running shell its hook."""

_CAN_SPLIT = frozenset({"bash", "zsh"})
"""The kinds whose hook can send a command's standard error to its own PTY."""

ERROR_TTY_FILE = "init.stderr"
"""The file from which the hook reads the path of that PTY."""


def is_supported(program: str) -> bool:
    """Return whether there is a hook for this program."""
    return Path(program).name in _KINDS


def rearm_shell(
    name: str, words: tuple[str, ...], directory: Path, *, error_tty: str | None, typed: bool
) -> Rearmed:
    """Return the hook for a running shell of this name, which is at its prompt.

    ``words`` are the arguments of its start, ``error_tty`` is the PTY of standard error, if any.
    ``typed``: it did not read the hook of its kind, so it gets the keys for any program. Raises
    ``OSError``.
    """
    otherwise = fallback.rearm_posix if name in _POSIX else fallback.rearm_other
    rearmed = (fallback.rearm_other if typed else _REARM.get(name, otherwise))(words, directory)
    if typed or not can_separate(name):
        return rearmed
    return attrs.evolve(rearmed, adapter=attrs.evolve(rearmed.adapter, error_tty=error_tty))


def can_separate(program: str) -> bool:
    """Return whether standard error of its commands can be split."""
    return Path(program).name in _CAN_SPLIT


def prepare_shell(program: str, directory: Path, error_tty: str | None) -> ShellAdapter:
    """Write the start-up files for one start of ``program`` into ``directory`` (mode 0700).

    ``error_tty`` is the path of the PTY for standard error, if it is to be split. Raises
    ``OSError``.
    """
    path = directory / ERROR_TTY_FILE
    path.unlink(missing_ok=True)
    if error_tty is not None:
        write_private(path, f"{error_tty}\n".encode())
    adapter = _preparation(Path(program).name)(program, directory)
    return attrs.evolve(adapter, error_tty=error_tty)


def _preparation(name: str) -> Callable[[str, Path], ShellAdapter]:
    otherwise = fallback.prepare_posix if name in _POSIX else fallback.prepare_other
    return _KINDS.get(name, otherwise)

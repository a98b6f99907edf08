"""Which kind of shell a program is, by its name."""

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
"""How a shell that runs already gets its hook."""

_CAN_SPLIT = frozenset({"bash", "zsh"})
"""The kinds whose hook can send standard error of one command to a PTY of its own."""

ERROR_TTY_FILE = "init.stderr"
"""Where the hook finds the path of that PTY, if there is one."""


def is_supported(program: str) -> bool:
    """Whether there is a hook for this program."""
    return Path(program).name in _KINDS


def rearm_shell(
    name: str, words: tuple[str, ...], directory: Path, *, error_tty: str | None, typed: bool
) -> Rearmed:
    """How a shell of this name, which stands at its prompt, gets its hook.

    ``words`` are those that it was started with, ``error_tty`` is the PTY of standard error if
    there is one. ``typed``: a hook of its own was not read, so it is typed to as to any program.
    Raises ``OSError``.
    """
    otherwise = fallback.rearm_posix if name in _POSIX else fallback.rearm_other
    rearmed = (fallback.rearm_other if typed else _REARM.get(name, otherwise))(words, directory)
    if typed or not can_separate(name):
        return rearmed
    return attrs.evolve(rearmed, adapter=attrs.evolve(rearmed.adapter, error_tty=error_tty))


def can_separate(program: str) -> bool:
    """Whether standard error of its commands can be told apart."""
    return Path(program).name in _CAN_SPLIT


def prepare_shell(program: str, directory: Path, error_tty: str | None) -> ShellAdapter:
    """Write the start-up files for one start of ``program`` into ``directory`` (mode 0700).

    ``error_tty`` is the path of the PTY for standard error, if it is to come apart. Raises
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

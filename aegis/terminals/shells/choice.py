"""Which kind of shell a program is, by its name."""

from __future__ import annotations

from pathlib import Path

from aegis.terminals.shells import bash
from aegis.terminals.shells.adapter import Rearmed, ShellAdapter

_KINDS = {"bash": bash.prepare}
_REARM = {"bash": bash.rearm}


def is_supported(program: str) -> bool:
    """Whether there is a hook for this program."""
    return Path(program).name in _KINDS


def rearm_shell(name: str, words: tuple[str, ...], directory: Path) -> Rearmed | None:
    """How a shell of this name, which stands at its prompt, gets its hook; None if it cannot.

    ``words`` are those that it was started with. Raises ``OSError``.
    """
    rearm = _REARM.get(name)
    return None if rearm is None else rearm(words, directory)


def prepare_shell(program: str, directory: Path) -> ShellAdapter:
    """Write the start-up files for one start of ``program`` into ``directory`` (mode 0700).

    Raises ``OSError``.
    """
    return _KINDS[Path(program).name](program, directory)

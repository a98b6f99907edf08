"""Reading of the configuration file of a root, and the checks of its owner and its programs.

The file names the program that every new terminal runs, and ``up`` searches it upwards from the
current directory. So it must belong to the daemon's user or to root, and must not be writable by
everybody.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import attrs

from aegis.configuration.problems import BadConfiguration, Problem
from aegis.configuration.sections import MAX_BYTES, Configuration, Parsed


def read_configuration(path: Path) -> Parsed:
    """Read and parse the file at ``path``; a missing or empty file means the defaults.

    Raises ``BadConfiguration``, whose sentences name ``path``.
    """
    try:
        content = _content(path)
        if not content:
            return Parsed()
        # Imported late: importing YAML takes longer than everything else here.
        from aegis.configuration.reading import parse

        return attrs.evolve(parse(content), digest=hashlib.sha256(content).hexdigest())
    except BadConfiguration as error:
        raise BadConfiguration(error.problems, str(path), error.more) from None
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror or error}")
        raise BadConfiguration([problem], str(path)) from None


def programs_of(configuration: Configuration) -> tuple[str, ...]:
    """Return the programs that the configuration names, one sentence each."""
    shell = configuration.terminals.shell
    return () if shell is None else (f"terminals.shell is {shell!r}",)


def warnings_of(configuration: Configuration) -> Iterator[str]:
    """Yield warnings about valid values that will not work on this machine, one sentence each."""
    shell = configuration.terminals.shell
    if shell is not None and shutil.which(shell) is None:
        yield (
            f"terminals.shell {shell!r} is not an executable program: a spawn that does not name "
            "another shell fails until you install it or change the key"
        )


def _content(path: Path) -> bytes | None:
    """Return at most ``MAX_BYTES`` + 1 bytes of the file; None if there is no file."""
    try:
        # O_NONBLOCK: opening a FIFO without a writer would block for ever.
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        if path.is_symlink():
            raise _bad("is a link to a missing file: remove it") from None
        return None
    try:
        _check_owner(os.fstat(opened))
        with os.fdopen(opened, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(opened)


def _check_owner(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _bad("is not a regular file: replace it by one")
    if found.st_uid not in (os.geteuid(), 0):
        raise _bad(
            f"belongs to user {found.st_uid}, who could choose the programs that you run: change "
            "its owner (chown), or start the daemon as that user"
        )
    if found.st_mode & stat.S_IWOTH:
        raise _bad(
            "is writable by everybody, who could choose the programs that you run: chmod o-w"
        )


def _bad(sentence: str) -> BadConfiguration:
    return BadConfiguration([Problem(sentence)])

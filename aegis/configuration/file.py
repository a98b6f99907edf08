"""The configuration file of a root: who may write it, how it is read, whether its shell is there.

The file names the program that every new terminal runs, and ``up`` finds it by looking upwards from
where it was started. So it is taken only from the user who runs the daemon or from root, and only
if nobody else may write to it.
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
    """What the file at ``path`` says; a missing one means the defaults, as an empty one does.

    Raises ``BadConfiguration``, whose sentences name ``path``.
    """
    try:
        content = _content(path)
        if not content:
            return Parsed()
        # Imported only where there is something to read: it would take longer than all the rest.
        from aegis.configuration.reading import parse

        return attrs.evolve(parse(content), digest=hashlib.sha256(content).hexdigest())
    except BadConfiguration as error:
        raise BadConfiguration(error.problems, str(path), error.more) from None
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror or error}")
        raise BadConfiguration([problem], str(path)) from None


def programs_of(configuration: Configuration) -> tuple[str, ...]:
    """Return what the configuration names to run, one sentence each."""
    shell = configuration.terminals.shell
    return () if shell is None else (f"terminals.shell is {shell!r}",)


def warnings_of(configuration: Configuration) -> Iterator[str]:
    """What is allowed and will not work on this machine as it is now, one sentence each."""
    shell = configuration.terminals.shell
    if shell is not None and shutil.which(shell) is None:
        yield (
            f"terminals.shell {shell!r} is no executable program here: a spawn without a shell of "
            "its own fails until it is installed or named otherwise"
        )


def _content(path: Path) -> bytes | None:
    """Its bytes, a few more than it may have at most; None if there is no file."""
    try:
        # Not blocking: it may be a FIFO, and then nobody would ever write to it.
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        if path.is_symlink():
            raise _bad("is a link to a file that is not there: remove it") from None
        return None
    try:
        _check_owner(os.fstat(opened))
        with os.fdopen(opened, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(opened)


def _check_owner(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _bad("is no regular file")
    if found.st_uid not in (os.geteuid(), 0):
        raise _bad(
            f"belongs to user {found.st_uid}, who could name the shell that you run: make it yours "
            "(chown), or start the daemon as that user"
        )
    if found.st_mode & stat.S_IWOTH:
        raise _bad("may be written by everybody, who could name the shell that you run: chmod o-w")


def _bad(sentence: str) -> BadConfiguration:
    return BadConfiguration([Problem(sentence)])

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
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from aegis.configuration.problems import BadConfiguration, Problem
from aegis.configuration.sections import MAX_BYTES, Configuration, Parsed
from aegis.names import shorten

POWERS = (
    *("permission", "command", "asking_mode", "env", "may_spawn", "accepts_from"),
    *("answers_requests", "project_settings"),
)
"""The keys of a profile that name programs or give rights."""


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
    """Return the keys by which the configuration runs programs or lets agents, one sentence each.

    A foreign checkout could bring such keys: they are used once the user trusts the file.
    """
    shell = configuration.terminals.shell
    sentences = [] if shell is None else [f"terminals.shell is {shell!r}"]
    for name, section in configuration.agents.items():
        powers = {key: getattr(section, key) for key in POWERS}
        if section.permission in ("read", "plan", "ask"):
            del powers["permission"]
        given = ((key, value) for key, value in powers.items() if value)
        sentences += [f"agents.{name}.{key} is {_shown(value)}" for key, value in given]
    if configuration.canvases.directories:
        sentences.append(f"canvases.directories is {_shown(configuration.canvases.directories)}")
    telegram = configuration.telegram
    if telegram.chat_id is not None:
        people = ", ".join(map(str, telegram.user_ids)) or "nobody"
        sentences.append(
            f"telegram lets {people} give orders in chat {telegram.chat_id}, and gives the bot's "
            f"token to {_shown(telegram.api)}"
        )
    return tuple(sentences)


def warnings_of(configuration: Configuration) -> Iterator[str]:
    """Yield warnings about valid values that will not work on this machine, one sentence each."""
    shell = configuration.terminals.shell
    if shell is not None and shutil.which(shell) is None:
        yield (
            f"terminals.shell {shell!r} is not an executable program: a spawn that does not name "
            "another shell fails until you install it or change the key"
        )


def _shown(value: str | bool | Iterable[str]) -> str:
    """Return the value of a key for a sentence: of ``env``, only the names."""
    if isinstance(value, bool):
        return "true"
    words = value if isinstance(value, str) else " ".join(value)
    return repr(shorten(words))


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

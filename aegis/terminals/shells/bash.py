"""Bash as the shell of a terminal: its start-up files, how it is started, what was typed into it.

The hook itself is ``bash.sh`` beside this file. Each start has a directory of its own for the
hook's files (mode 0700): ``init.sh``, the secret until bash has read it, and the texts of typed
commands until ``read_typed`` takes them.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
from functools import cache
from importlib import resources
from pathlib import Path

from aegis.terminals.shells.adapter import Rearmed, ShellAdapter

INIT_FILE = "init.sh"
SECRET_FILE = "init.secret"  # noqa: S105 - a file's name

MAX_TYPED_BYTES = 1 << 20
"""Of a longer typed command the text is not taken."""

_SECRET_BYTES = 18
_ENTRY = re.compile(r"\s*[0-9]+[* ] (.*)", re.DOTALL)


class BashAdapter(ShellAdapter):
    """A bash, 4.4 or newer, with the hook."""

    def read_typed(self, number: int) -> str | None:
        """The text of the typed command with this history number, once."""
        return read_typed(self.directory, number)


def prepare(program: str, directory: Path) -> BashAdapter:
    """Write the start-up files for one start of ``program``. Raises ``OSError``."""
    return BashAdapter(
        secret=write_startup(directory),
        argv=tuple(argv(program, directory)),
        directory=directory,
    )


def rearm(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the start-up files for a bash that runs at its prompt. Raises ``OSError``.

    ``words`` are those that it was started with.
    """
    adapter = BashAdapter(secret=write_startup(directory), argv=words, directory=directory)
    file = shlex.quote(str(directory.absolute() / INIT_FILE))
    return Rearmed(adapter=adapter, keys=f"\x15 builtin source {file} again\r".encode())


def write_startup(directory: Path) -> bytes:
    """Put the hook and a new secret into ``directory`` (it exists, mode 0700); gives the secret.

    What an earlier shell left there is removed. Raises ``OSError``.
    """
    for left in directory.glob("typed.*"):
        left.unlink(missing_ok=True)
    secret = secrets.token_urlsafe(_SECRET_BYTES).encode()
    _write_private(directory / INIT_FILE, _hook())
    _write_private(directory / SECRET_FILE, secret + b"\n")
    return secret


def argv(program: str, directory: Path) -> list[str]:
    """The arguments that start ``program``, a bash, interactive and with the hook."""
    return [program, "--rcfile", str(directory.absolute() / INIT_FILE), "-i"]


def read_typed(directory: Path, history: int) -> str | None:
    """The text of the typed command with this history number, once; None if it is not known."""
    path = directory / f"typed.{history}"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TYPED_BYTES + 1)
        path.unlink()
    except OSError:
        return None
    if len(data) > MAX_TYPED_BYTES:
        return None
    entry = _ENTRY.fullmatch(data.decode(errors="replace"))
    return None if entry is None else entry[1].removesuffix("\n")


@cache
def _hook() -> bytes:
    return resources.files("aegis.terminals.shells").joinpath("bash.sh").read_bytes()


def _write_private(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)

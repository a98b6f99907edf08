"""Zsh as the shell of a terminal: its start-up files, how it is started, what was typed into it.

The hook is ``zsh.zsh`` and ``arming.zsh`` beside this file. ``zshenv.zsh`` and ``zshrc.zsh`` are
what zsh reads in the place of the user's files, which they read in turn; ``again.zsh`` is for a zsh
that runs already. All go into ``.zdotdir`` of the terminal's directory. Beside it lie the secret,
until zsh has read it, and the texts of typed commands, until ``read_typed`` takes them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from aegis.terminals.shells.adapter import Rearmed, ShellAdapter
from aegis.terminals.shells.startup import (
    MAX_TYPED_BYTES,
    hook,
    private_directory,
    read_once,
    remove_left,
    write_private,
    write_secret,
)
from aegis.terminals.shells.typed import (
    NOT_SAID,
    ONE_LINE,
    TypedLine,
    TypedText,
    Unknown,
    decoded,
)
from aegis.terminals.submission import SUBMIT_KEY

ZDOTDIR = ".zdotdir"
"""The directory of our start-up files, as zsh calls it."""

USERS_ZDOTDIR = "AEGIS_ZDOTDIR"
"""Brings the user's own ZDOTDIR to the hook, which takes it out of the environment."""

_AGAIN_FILE = "again.zsh"

_FILES = {
    ".zshenv": "zshenv.zsh",
    ".zshrc": "zshrc.zsh",
    "arming.zsh": "arming.zsh",
    "hook.zsh": "zsh.zsh",
    _AGAIN_FILE: "again.zsh",
}


class ZshAdapter(ShellAdapter):
    """A zsh, 5.1 or newer, with the hook."""

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """``inherited`` with our ZDOTDIR; the user's, if there is one, under another name."""
        users = {USERS_ZDOTDIR: inherited["ZDOTDIR"]} if "ZDOTDIR" in inherited else {}
        others = {key: value for key, value in inherited.items() if key != USERS_ZDOTDIR}
        return {**others, **users, "ZDOTDIR": str(self.directory.absolute() / ZDOTDIR)}

    @property
    def drops(self) -> tuple[bytes, ...]:
        """Where Ctrl-C is ignored (``trap '' INT``) a submission that is none drops the line."""
        return self.interrupt_line, SUBMIT_KEY + b"x"

    def read_typed(self, number: int | None, line: TypedLine = ONE_LINE) -> TypedText:
        """Return the text of the typed command whose start mark had this number, once."""
        if number is None:
            return Unknown(NOT_SAID)
        return decoded(read_once(self.directory / f"typed.{number}", MAX_TYPED_BYTES))


def prepare(program: str, directory: Path) -> ZshAdapter:
    """Write the start-up files for one start of ``program``. Raises ``OSError``.

    What an earlier shell left there is removed.
    """
    return ZshAdapter(secret=_write(directory), argv=(program, "-i"), directory=directory)


def rearm(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the hook's files for a zsh that runs at its prompt. Raises ``OSError``.

    ``words`` are those that it was started with.
    """
    adapter = ZshAdapter(secret=_write(directory), argv=words, directory=directory)
    path = directory.absolute()
    file, hook_directory = (shlex.quote(str(each)) for each in (path / ZDOTDIR / _AGAIN_FILE, path))
    keys = os.fsencode(f"\x15 'builtin' 'source' {file} {hook_directory}\r")
    return Rearmed(adapter=adapter, keys=keys)


def _write(directory: Path) -> bytes:
    """Put all files and a new secret into the directory; gives the secret."""
    remove_left(directory, ["typed.*"])
    private_directory(directory / ZDOTDIR)
    for name, source in _FILES.items():
        write_private(directory / ZDOTDIR / name, hook(source))
    return write_secret(directory)

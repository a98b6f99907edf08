"""Zsh as the shell of a terminal: its start-up files, its start, and the text typed into it.

The hook is ``zsh.zsh`` and ``arming.zsh`` beside this file. Zsh reads ``zshenv.zsh`` and
``zshrc.zsh`` in the place of the user's files, which they read in turn; ``again.zsh`` is for a
running zsh. All are copied to ``.zdotdir`` of the terminal's directory. Beside it are the secret,
until zsh has read it, and the texts of typed commands, until ``read_typed`` takes them.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from aegis.terminals.hooks.adapter import Rearmed, ShellAdapter
from aegis.terminals.hooks.startup import (
    MAX_TYPED_BYTES,
    hook,
    private_directory,
    read_once,
    remove_left,
    write_private,
    write_secret,
)
from aegis.terminals.hooks.submission import SUBMIT_KEY
from aegis.terminals.typed import (
    NOT_SAID,
    ONE_LINE,
    TypedLine,
    TypedText,
    UnknownText,
    decoded,
)

ZDOTDIR = ".zdotdir"
"""The directory of our start-up files, as zsh calls it."""

USERS_ZDOTDIR = "AEGIS_ZDOTDIR"
"""Passes the user's own ZDOTDIR to the hook, which removes it from the environment."""

ASK_FILE = "ask"
"""The FIFO that the line editor watches: a byte in it requests the length of the line."""

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
        """Return ``inherited`` with our ZDOTDIR, and the user's one under another name."""
        users = {USERS_ZDOTDIR: inherited["ZDOTDIR"]} if "ZDOTDIR" in inherited else {}
        others = {key: value for key, value in inherited.items() if key != USERS_ZDOTDIR}
        return {**others, **users, "ZDOTDIR": str(self.directory.absolute() / ZDOTDIR)}

    @property
    def interrupts(self) -> tuple[bytes, ...]:
        """First an invalid submission, which no trap and no theme can alter; then Ctrl-C."""
        # zsh loses a Ctrl-C that comes while a widget of a theme runs (powerlevel10k), and the keys
        # behind it.
        return SUBMIT_KEY + b"x", self.interrupt_line

    def ask_line(self) -> bytes | None:
        """Write to the FIFO, and return no keys."""
        # A key would close a menu or a listing, or end a series of kills.
        path = self.directory / ZDOTDIR / ASK_FILE
        try:
            fifo = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:  # no hook listens
            return None
        try:
            if not stat.S_ISFIFO(os.fstat(fifo).st_mode):
                return None  # another file is in its place: nothing is written to it
            os.write(fifo, b"?")
        except OSError:
            return None
        finally:
            os.close(fifo)
        return b""

    def read_typed(self, number: int | None, line: TypedLine = ONE_LINE) -> TypedText:
        """Return the text of the typed command whose start mark had this number, once."""
        if number is None:
            return UnknownText(NOT_SAID)
        return decoded(read_once(self.directory / f"typed.{number}", MAX_TYPED_BYTES))


def prepare(program: str, directory: Path) -> ZshAdapter:
    """Write the start-up files for one start of ``program``. Raises ``OSError``.

    Files of an earlier shell are removed.
    """
    return ZshAdapter(secret=_write(directory), argv=(program, "-i"), directory=directory)


def rearm(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the hook's files for a zsh that runs at its prompt. Raises ``OSError``.

    ``words`` are the arguments of its start.
    """
    adapter = ZshAdapter(secret=_write(directory), argv=words, directory=directory)
    path = directory.absolute()
    file, hook_directory = (shlex.quote(str(each)) for each in (path / ZDOTDIR / _AGAIN_FILE, path))
    keys = os.fsencode(f"\x15 'builtin' 'source' {file} {hook_directory}\r")
    return Rearmed(adapter=adapter, keys=keys)


def _write(directory: Path) -> bytes:
    """Write all files and a new secret; return the secret."""
    remove_left(directory, ["typed.*", f"{ZDOTDIR}/{ASK_FILE}"])
    private_directory(directory / ZDOTDIR)
    for name, source in _FILES.items():
        write_private(directory / ZDOTDIR / name, hook(source))
    os.mkfifo(directory / ZDOTDIR / ASK_FILE, 0o600)
    return write_secret(directory)

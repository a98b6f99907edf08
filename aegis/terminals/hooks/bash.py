"""Bash as the shell of a terminal: its start-up files, its start, and the text typed into it.

The hook itself is ``bash.sh`` beside this file. Each start has a directory of its own for the
hook's files (mode 0700): ``init.sh``, the secret until bash has read it, and the texts of typed
commands until ``read_typed`` takes them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from pathlib import Path

from aegis.terminals.hooks.adapter import Rearmed, ShellAdapter
from aegis.terminals.hooks.bash_history import typed_text
from aegis.terminals.hooks.startup import (
    MAX_TYPED_BYTES,
    hook,
    read_once,
    remove_left,
    write_private,
    write_secret,
)
from aegis.terminals.hooks.submission import EMPTY_KEY, HEED_KEY, encode_submission
from aegis.terminals.typed import NOT_IN_HISTORY, ONE_LINE, TypedLine, TypedText, UnknownText

INIT_FILE = "init.sh"

WANTED_FILE = "typed.wanted"
"""While it exists, the hook stores the texts of the commands that had no submit key."""


class BashAdapter(ShellAdapter):
    """A bash, 4.4 or newer, with the hook."""

    uses_readline = True

    @property
    def redraw(self) -> re.Pattern[bytes]:
        """The cleared and redrawn line around the report."""
        # Readline clears the line before ``bind -x`` and then draws the prompt's last line.
        mark = rb"\x1b\]133;%b;n=" + re.escape(self.secret) + rb";q=\d+%b\x07"
        report, drawn = mark % (b"P;k=l", b";l=0"), mark % (b"B", b"(?:;e=1)?")
        return re.compile(rb"\r\x1b\[K\r?(?P<report>" + report + rb")\r?[^\n]*?" + drawn)

    @property
    def interrupts(self) -> tuple[bytes, ...]:
        """A key that enables Ctrl-C where bash ignores it (``trap '' INT``), then Ctrl-C."""
        # In this order: behind `case x in` the probe key that follows a Ctrl-C is a syntax error if
        # the Ctrl-C was ignored, and readline may take the next key for text after that.
        return HEED_KEY, self.interrupt_line

    def encode_on_plain_line(self, cmd: str) -> bytes:
        """Return the bytes without the submit key, for which bash runs a function and redraws."""
        return encode_submission(cmd, first=EMPTY_KEY)

    def want_typed(self, *, wanted: bool) -> None:
        """Make the hook store the texts of typed commands from now on, or no longer."""
        # A file, because keys may be sent while a command runs, which would read a key for the
        # hook. Where the disk refuses it, the texts could not be stored either.
        with contextlib.suppress(OSError):
            if wanted:
                write_private(self.directory / WANTED_FILE, b"")
            else:
                remove_left(self.directory, [WANTED_FILE])

    def read_typed(self, number: int | None, line: TypedLine = ONE_LINE) -> TypedText:
        """Return the text of the typed command with this history number, once."""
        return read_typed(self.directory, number, line)


def prepare(program: str, directory: Path) -> BashAdapter:
    """Write the start-up files for one start of ``program``. Raises ``OSError``."""
    return BashAdapter(
        secret=write_startup(directory),
        argv=tuple(argv(program, directory)),
        directory=directory,
    )


def rearm(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the start-up files for a bash that runs at its prompt. Raises ``OSError``.

    ``words`` are the arguments of its start.
    """
    adapter = BashAdapter(secret=write_startup(directory), argv=words, directory=directory)
    file = shlex.quote(str(directory.absolute() / INIT_FILE))
    return Rearmed(adapter=adapter, keys=os.fsencode(f"\x15 builtin source {file} again\r"))


def write_startup(directory: Path) -> bytes:
    """Write the hook and a new secret into ``directory`` (mode 0700); return the secret.

    Files of an earlier shell are removed. Raises ``OSError``.
    """
    remove_left(directory, ["typed.*"])
    write_private(directory / INIT_FILE, hook("bash.sh"))
    return write_secret(directory)


def argv(program: str, directory: Path) -> list[str]:
    """Return the arguments that start ``program``, a bash, interactive and with the hook."""
    return [program, "--rcfile", str(directory.absolute() / INIT_FILE), "-i"]


def read_typed(directory: Path, history: int | None, line: TypedLine = ONE_LINE) -> TypedText:
    """Return the text of the typed command with this history number, once."""
    if history is None:
        return UnknownText(NOT_IN_HISTORY)
    data = read_once(directory / f"typed.{history}", MAX_TYPED_BYTES)
    if data is None:
        return UnknownText(NOT_IN_HISTORY)
    return typed_text(data.decode(errors="replace"), line)

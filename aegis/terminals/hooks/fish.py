"""Fish as the shell of a terminal. The hook itself is ``fish.fish`` beside this file.

A command does not go through the PTY: fish's own way with a paste takes blanks away and escapes
inside quotes. Its text is put into a file of mode 0600, and the submit key makes the hook read it.
"""

from __future__ import annotations

import os
from pathlib import Path

from aegis.terminals.hooks.adapter import Rearmed, ShellAdapter
from aegis.terminals.hooks.startup import (
    MAX_TYPED_BYTES,
    hook,
    read_once,
    remove_left,
    write_private,
    write_secret,
)
from aegis.terminals.hooks.submission import check_command
from aegis.terminals.typed import (
    NOT_SAID,
    ONE_LINE,
    TypedLine,
    TypedText,
    Unknown,
    decoded,
)

INIT_FILE = "init.fish"
SUBMISSION_FILE = "submission"

_SUBMIT_KEY = b"\x1e"
_PROBE_KEY = b"\x1d"

_INTERRUPT_S = 0.2
"""In this time fish has dropped a line, and said so: then the probe need not be sent at all."""


class FishAdapter(ShellAdapter):
    """A fish, 3.4 or newer, with the hook."""

    @property
    def probe_key(self) -> bytes:
        """Asks the hook how long the line is."""
        return _PROBE_KEY

    @property
    def probe_delay_s(self) -> float:
        """Fish forgets a Ctrl-C when another key follows it at once."""
        return _INTERRUPT_S

    @property
    def interrupt_line(self) -> bytes:
        """Drops a text that the hook has read, and found to be incomplete."""
        return _SUBMIT_KEY

    def encode(self, cmd: str) -> bytes:
        """Put ``cmd`` where the hook reads it; gives the key that makes it do so.

        Raises ``InvalidRequest`` for what no shell can read, and ``OSError``.
        """
        check_command(cmd)
        write_private(self.directory / SUBMISSION_FILE, b"." + cmd.encode())
        return _SUBMIT_KEY

    def read_typed(self, number: int | None, line: TypedLine = ONE_LINE) -> TypedText:
        """Return the text of the typed command with this number, once."""
        if number is None:
            return Unknown(NOT_SAID)
        return decoded(read_once(self.directory / f"typed.{number}", MAX_TYPED_BYTES))


def prepare(program: str, directory: Path) -> FishAdapter:
    """Write the start-up files for one start of ``program``. Raises ``OSError``."""
    secret = _write(directory)
    argv = (program, "-i", "--init-command", _read_hook(directory))
    return FishAdapter(secret=secret, argv=argv, directory=directory)


def rearm(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the hook's files for a fish that runs at its prompt. Raises ``OSError``.

    ``words`` are those that it was started with.
    """
    adapter = FishAdapter(secret=_write(directory), argv=words, directory=directory)
    return Rearmed(adapter=adapter, keys=os.fsencode(f"\x15 {_read_hook(directory)}\r"))


def _write(directory: Path) -> bytes:
    """Put the hook and a new secret into the directory; gives the secret."""
    remove_left(directory, ["typed.*", SUBMISSION_FILE])
    write_private(directory / INIT_FILE, hook("fish.fish"))
    return write_secret(directory)


def _read_hook(directory: Path) -> str:
    """The line that makes fish read the hook."""
    return f"source {_quoted(directory.absolute())}"


def _quoted(directory: Path) -> str:
    """The path of the hook as a word of fish."""
    path = str(directory / INIT_FILE)
    return "'" + path.replace("\\", "\\\\").replace("'", "\\'") + "'"

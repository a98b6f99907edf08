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
    UnknownText,
    decoded,
)

INIT_FILE = "init.fish"
SUBMISSION_FILE = "submission"

_SUBMIT_KEY = b"\x1e"
_PROBE_KEY = b"\x1d"

_INTERRUPT_S = 0.2
"""Time, in seconds, in which fish drops a line and reports it: then no probe is needed."""


class FishAdapter(ShellAdapter):
    """A fish, 3.4 or newer, with the hook."""

    @property
    def probe_key(self) -> bytes:
        """The key that requests the length of the line."""
        return _PROBE_KEY

    @property
    def probe_delay_s(self) -> float:
        """Time, in seconds, between a Ctrl-C and the probe key."""
        # Fish loses a Ctrl-C when another key follows it at once.
        return _INTERRUPT_S

    @property
    def interrupt_line(self) -> bytes:
        """The key that drops a text that the hook found to be incomplete."""
        return _SUBMIT_KEY

    def encode(self, cmd: str) -> bytes:
        """Write ``cmd`` to a file of the hook; return the key that makes it read the file.

        Raises ``InvalidRequest`` for text that no shell can read, and ``OSError``.
        """
        check_command(cmd)
        write_private(self.directory / SUBMISSION_FILE, b"." + cmd.encode())
        return _SUBMIT_KEY

    def read_typed(self, number: int | None, line: TypedLine = ONE_LINE) -> TypedText:
        """Return the text of the typed command with this number, once."""
        if number is None:
            return UnknownText(NOT_SAID)
        return decoded(read_once(self.directory / f"typed.{number}", MAX_TYPED_BYTES))


def prepare(program: str, directory: Path) -> FishAdapter:
    """Write the start-up files for one start of ``program``. Raises ``OSError``."""
    secret = _write(directory)
    argv = (program, "-i", "--init-command", _read_hook(directory))
    return FishAdapter(secret=secret, argv=argv, directory=directory)


def rearm(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the hook's files for a fish that runs at its prompt. Raises ``OSError``.

    ``words`` are the arguments of its start.
    """
    adapter = FishAdapter(secret=_write(directory), argv=words, directory=directory)
    return Rearmed(adapter=adapter, keys=os.fsencode(f"\x15 {_read_hook(directory)}\r"))


def _write(directory: Path) -> bytes:
    """Write the hook and a new secret into the directory; return the secret."""
    remove_left(directory, ["typed.*", SUBMISSION_FILE])
    write_private(directory / INIT_FILE, hook("fish.fish"))
    return write_secret(directory)


def _read_hook(directory: Path) -> str:
    """Return the line that makes fish read the hook."""
    return f"source {_quoted(directory.absolute())}"


def _quoted(directory: Path) -> str:
    """Return the path of the hook, quoted for fish."""
    path = str(directory / INIT_FILE)
    return "'" + path.replace("\\", "\\\\").replace("'", "\\'") + "'"

"""Shells without a complete hook: their boundaries are best effort.

A shell of the POSIX family reads ``posix.sh`` as its ``$ENV``: its prompts mark the ends of lines.
For any other program lines are typed that call a script which prints the marks. A program that is
no shell never answers, and is never ready.

Where the shell can read a file, a command's text is passed in one of mode 0600: so the tty cannot
alter it.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path

from aegis.processes.capture import CapturedOutput
from aegis.terminals.hooks.adapter import Rearmed, ShellAdapter
from aegis.terminals.hooks.echo import is_incomplete, split_echo
from aegis.terminals.hooks.startup import (
    hook,
    new_secret,
    remove_left,
    write_private,
    write_secret,
)
from aegis.terminals.hooks.submission import check_command
from aegis.terminals.typed import TypedText

ENV_FILE = "init.env"
SUBMISSION_FILE = "submission"
MARK_FILE = "mark"
MARK_SECRET_FILE = "mark.secret"  # noqa: S105 - a file's name
MARK_COUNT_FILE = "mark.count"
CSH_FILE = "init.csh"

_KILL = b"\x15"
"""Ctrl-U: the tty, or the shell's line editor, clears the line."""

_INTERRUPT = b"\x03"


class FallbackAdapter(ShellAdapter):
    """A shell that reports the start of the daemon's commands only."""

    types_probe = True

    @property
    def interrupt_line(self) -> bytes:
        """The key that drops the line that the shell is reading."""
        return _INTERRUPT

    def split_echo(self, printed: CapturedOutput) -> tuple[TypedText, CapturedOutput]:
        """Split off the echo, which is a typed command's text."""
        return split_echo(printed)

    def is_incomplete(self, exit_code: int | None, text: str) -> bool:
        """Return whether the text ended before the shell had read a whole command."""
        return is_incomplete(exit_code, text)


class PosixAdapter(FallbackAdapter):
    """A shell that reads its ``$ENV`` when it is interactive."""

    reports_starts = False

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return ``inherited`` with the hook as ``$ENV``; it restores and reads the user's own."""
        before = {"AEGIS_ENV": inherited["ENV"]} if "ENV" in inherited else {}
        return {**inherited, **before, "ENV": str(self.directory.absolute() / ENV_FILE)}

    @property
    def probe_key(self) -> bytes:
        """The keys that clear the line and run one that answers."""
        return _KILL + b" __aegis_p\r"

    def encode(self, cmd: str) -> bytes:
        """Write ``cmd`` to a file; return the line that reads it.

        Raises ``InvalidRequest`` for text that no shell can read, and ``OSError``.
        """
        check_command(cmd)
        write_private(self.directory / SUBMISSION_FILE, cmd.encode() + b"\n")
        return b' __aegis_c;. "$__aegis_f";__aegis_d\r'


class TypedAdapter(FallbackAdapter):
    """A program that gets keys as if it were a shell."""

    is_one_line = False

    @property
    def greeting(self) -> bytes:
        """The line that a shell answers with the marks of its first prompt."""
        return self._mark("last first 0") + b"\r"

    @property
    def probe_key(self) -> bytes:
        """The keys that clear the line and run one that answers."""
        return _KILL + self._mark("probe") + b"\r"

    def encode(self, cmd: str) -> bytes:
        """Return ``cmd`` between two calls of the script, as typed text."""
        # A line of invalid syntax makes no call: the line after it reports the end.
        check_command(cmd)
        text = cmd.rstrip("\r\n").replace("\r\n", "\r").replace("\n", "\r").encode()
        which = secrets.token_hex(4)
        calls = [self._mark(f"{kind} {which}") for kind in ("begin", "end", "last")]
        return calls[0] + b";" + text + b";" + calls[1] + b"\r" + calls[2] + b"\r"

    def _mark(self, words: str) -> bytes:
        """Return the line that calls the script."""
        # The leading blank keeps it out of some histories.
        return os.fsencode(f" {self._path(MARK_FILE)} {words}")

    def _path(self, name: str) -> str:
        return shlex.quote(str(self.directory.absolute() / name))


class CshAdapter(TypedAdapter):
    """A tcsh, whose ``precmd`` marks the end of a line."""

    is_one_line = True
    reports_starts = False

    @property
    def greeting(self) -> bytes:
        """The line that sets ``precmd``."""
        return os.fsencode(f" source {self._path(CSH_FILE)}\r")

    def encode(self, cmd: str) -> bytes:
        """Write ``cmd`` to a file; return the line that reads it. Raises ``OSError``, too."""
        check_command(cmd)
        write_private(self.directory / SUBMISSION_FILE, cmd.encode() + b"\n")
        return self._mark("begin x") + os.fsencode(f"; source {self._path(SUBMISSION_FILE)}\r")

    def startup(self) -> bytes:
        """Return the content of the file that the greeting makes the shell read."""
        return os.fsencode(f"alias precmd '{self._path(MARK_FILE)} last x $status'\n")


def prepare_posix(program: str, directory: Path) -> PosixAdapter:
    """Write the start-up files for one start of ``program``. Raises ``OSError``."""
    words = [program, "sh"] if Path(program).name == "busybox" else [program]
    return _posix((*words, "-i"), directory)


def _posix(words: tuple[str, ...], directory: Path) -> PosixAdapter:
    remove_left(directory, [SUBMISSION_FILE])
    write_private(directory / ENV_FILE, hook("posix.sh"))
    secret = write_secret(directory)
    return PosixAdapter(integration="fallback", secret=secret, argv=words, directory=directory)


def rearm_posix(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the hook for a shell of the family that runs at its prompt. Raises ``OSError``.

    ``words`` are the arguments of its start.
    """
    adapter = _posix(words, directory)
    path = shlex.quote(str(directory.absolute()))
    line = f' __aegis_again={path}; . "$__aegis_again/{ENV_FILE}"\r'
    return Rearmed(adapter=adapter, keys=_KILL + os.fsencode(line))


def prepare_other(program: str, directory: Path) -> TypedAdapter:
    """Write the script of marks for one start of ``program``. Raises ``OSError``."""
    return _typed((program,), directory)


def rearm_other(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write the script of marks for any shell that runs at its prompt. Raises ``OSError``.

    ``words`` are the arguments of its start.
    """
    adapter = _typed(words, directory)
    return Rearmed(adapter=adapter, keys=_KILL + adapter.greeting)


def _typed(words: tuple[str, ...], directory: Path) -> TypedAdapter:
    remove_left(directory, [SUBMISSION_FILE])
    secret = new_secret()
    write_private(directory / MARK_FILE, hook("mark.sh"), mode=0o700)
    write_private(directory / MARK_SECRET_FILE, secret + b"\n")
    write_private(directory / MARK_COUNT_FILE, b"0\n")
    name = Path(words[0].removeprefix("-")).name
    kind = CshAdapter if name in ("csh", "tcsh") else TypedAdapter
    adapter = kind(integration="fallback", secret=secret, argv=words, directory=directory)
    if isinstance(adapter, CshAdapter):
        write_private(directory / CSH_FILE, adapter.startup())
    return adapter

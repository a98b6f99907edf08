"""Shells without a hook that tells everything: boundaries are best effort there.

A shell of the POSIX family reads ``posix.sh`` as its ``$ENV``: its prompts tell where a line ends.
Any other program is typed to: the lines call a script that prints the marks. What is no shell at
all never answers, and is never ready.

A command's text goes through a file of mode 0600 where the shell can read one, so it arrives
exactly, whatever the tty would make of it.
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
"""Ctrl-U: the tty, or the shell's line editor, drops what is on the line."""

_INTERRUPT = b"\x03"


class FallbackAdapter(ShellAdapter):
    """A shell that tells the beginning of its commands only where the daemon makes it."""

    types_probe = True

    @property
    def interrupt_line(self) -> bytes:
        """Drops a line that the shell is reading."""
        return _INTERRUPT

    def split_echo(self, printed: CapturedOutput) -> tuple[TypedText, CapturedOutput]:
        """A typed command's text is its echo."""
        return split_echo(printed)

    def is_incomplete(self, exit_code: int | None, text: str) -> bool:
        """Whether the text ended before the shell had read a whole command."""
        return is_incomplete(exit_code, text)


class PosixAdapter(FallbackAdapter):
    """A shell that reads its ``$ENV`` when it is interactive."""

    reports_starts = False

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The hook as ``$ENV``; it puts the user's own back, and reads that."""
        before = {"AEGIS_ENV": inherited["ENV"]} if "ENV" in inherited else {}
        return {**inherited, **before, "ENV": str(self.directory.absolute() / ENV_FILE)}

    @property
    def probe_key(self) -> bytes:
        """A line that answers, instead of what may be on the line."""
        return _KILL + b" __aegis_p\r"

    def encode(self, cmd: str) -> bytes:
        """Put ``cmd`` into a file; gives the line that reads it.

        Raises ``InvalidRequest`` for what no shell can read, and ``OSError``.
        """
        check_command(cmd)
        write_private(self.directory / SUBMISSION_FILE, cmd.encode() + b"\n")
        return b' __aegis_c;. "$__aegis_f";__aegis_d\r'


class TypedAdapter(FallbackAdapter):
    """A program that is typed to as if it were a shell."""

    @property
    def greeting(self) -> bytes:
        """A line that a shell answers with its first prompt's marks."""
        return self._mark("end first 0") + b"\r"

    @property
    def probe_key(self) -> bytes:
        """A line that answers, instead of what may be on the line."""
        return _KILL + self._mark("probe") + b"\r"

    def encode(self, cmd: str) -> bytes:
        """``cmd`` as somebody would type it, between two calls of the script.

        The line behind it tells the end of one that was no valid line: there no call was made.
        """
        check_command(cmd)
        text = cmd.rstrip("\r\n").replace("\r\n", "\r").replace("\n", "\r").encode()
        which = secrets.token_hex(4)
        calls = [self._mark(f"{kind} {which}") for kind in ("begin", "end", "last")]
        return calls[0] + b";" + text + b";" + calls[1] + b"\r" + calls[2] + b"\r"

    def _mark(self, words: str) -> bytes:
        """The line that calls the script. A blank first keeps it out of some histories."""
        return os.fsencode(f" {self._path(MARK_FILE)} {words}")

    def _path(self, name: str) -> str:
        return shlex.quote(str(self.directory.absolute() / name))


class CshAdapter(TypedAdapter):
    """A tcsh, whose ``precmd`` tells where a line ends."""

    reports_starts = False

    @property
    def greeting(self) -> bytes:
        """Sets ``precmd``."""
        return os.fsencode(f" source {self._path(CSH_FILE)}\r")

    def encode(self, cmd: str) -> bytes:
        """Put ``cmd`` into a file; gives the line that reads it. Raises ``OSError``, too."""
        check_command(cmd)
        write_private(self.directory / SUBMISSION_FILE, cmd.encode() + b"\n")
        return self._mark("begin x") + os.fsencode(f"; source {self._path(SUBMISSION_FILE)}\r")

    def startup(self) -> bytes:
        """What the greeting makes the shell read."""
        return os.fsencode(f"alias precmd '{self._path(MARK_FILE)} end x $status'\n")


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

    ``words`` are those that it was started with.
    """
    adapter = _posix(words, directory)
    path = shlex.quote(str(directory.absolute()))
    line = f' __aegis_again={path}; . "$__aegis_again/{ENV_FILE}"\r'
    return Rearmed(adapter=adapter, keys=_KILL + os.fsencode(line))


def prepare_other(program: str, directory: Path) -> TypedAdapter:
    """Write what is typed to, for one start of ``program``. Raises ``OSError``."""
    return _typed((program,), directory)


def rearm_other(words: tuple[str, ...], directory: Path) -> Rearmed:
    """Write what is typed to, for any shell that runs at its prompt. Raises ``OSError``.

    ``words`` are those that it was started with.
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

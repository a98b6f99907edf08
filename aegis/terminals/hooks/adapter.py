"""``ShellAdapter``: the interface to one start of one kind of shell.

Each kind has its own module, whose ``prepare`` writes the start-up files and returns the adapter;
``choice`` finds the kind by the program's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import attrs

from aegis.processes.capture import CapturedOutput
from aegis.protocol.terminals import Integration
from aegis.terminals.hooks.submission import (
    INTERRUPT_LINE,
    PROBE_KEY,
    SPLIT_KEY,
    encode_submission,
)
from aegis.terminals.typed import NOT_SAID, ONE_LINE, TypedLine, TypedText, UnknownText

PROBE_S = 0.5
"""Time limit, in seconds, of a probe: a shell at its prompt answers within a millisecond."""

REARM_S = 1.0
"""Time, in seconds, after which a shell at its prompt is taken not to have read its hook."""


@attrs.frozen(kw_only=True)
class Rearmed:
    """The hook for a running shell: ``keys`` to type at its prompt.

    They make it read the files of ``adapter``; its first mark carries the new secret.
    """

    adapter: ShellAdapter
    keys: bytes


@attrs.frozen(kw_only=True)
class ShellAdapter:
    """One start of a shell whose hook puts ``secret`` into its marks.

    ``argv`` starts it, ``env`` is merged over its environment (never a secret), and ``directory``
    holds the files of the hook. ``error_tty`` is the path of the PTY for standard error of
    submitted commands, if it is split. The methods are overridden by kinds with another protocol.
    """

    integration: Integration = "osc133"
    secret: bytes
    argv: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(factory=dict)
    directory: Path
    error_tty: str | None = None

    reports_starts: ClassVar[bool] = True
    """Whether the hook reports the start of a typed command; else its Enter is taken for that."""

    is_one_line: ClassVar[bool] = True
    """Whether a submission is one line; else the line editor is shown again before its end."""

    types_probe: ClassVar[bool] = False
    """Whether the probe key is a line that a foreground program would read as input."""

    # Readline sleeps in a read of the terminal, and its completion asks below the prompt whether to
    # list all that it found, where a private key would be taken for the answer.
    uses_readline: ClassVar[bool] = False
    """Whether its line editor is readline."""

    def ask_line(self) -> bytes | None:
        """Make the hook report the line's length at a prompt; return the keys to type for it.

        Return None where the question would disturb a typing user.
        """
        return None if self.integration == "fallback" or self.types_probe else self.probe_key

    @property
    def redraw(self) -> re.Pattern[bytes] | None:
        """The shell's output for ``ask_line`` on an empty line, with the group ``report``.

        None: the report alone.
        """
        return None

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment to start it in: ``inherited`` with this kind's changes."""
        return {**inherited, **self.env}

    @property
    def greeting(self) -> bytes:
        """The keys for a shell that reads no file of ours, typed until it shows a prompt."""
        return b""

    @property
    def probe_key(self) -> bytes:
        """The key that requests the length of the line (``133;P;k=l``) and changes nothing."""
        return PROBE_KEY

    @property
    def probe_delay_s(self) -> float:
        """Time, in seconds, between a Ctrl-C and the probe key."""
        return 0.0

    @property
    def interrupt_line(self) -> bytes:
        """The keys that drop the line that the shell is reading."""
        return INTERRUPT_LINE

    @property
    def interrupts(self) -> tuple[bytes, ...]:
        """The keys that drop the line; the next ones are for a line that continues."""
        return (self.interrupt_line,)

    def encode(self, cmd: str) -> bytes:
        """Return the bytes that make the shell read exactly ``cmd`` and run it.

        Raises ``InvalidRequest`` for text that no shell can read.
        """
        return encode_submission(cmd, b"" if self.error_tty is None else SPLIT_KEY)

    def encode_on_plain_line(self, cmd: str) -> bytes:
        """Return the bytes as ``encode`` does, for a prompt that needs no submit key (``e=1``).

        Only while nobody has sent keys since the last submission was read.
        """
        return self.encode(cmd)

    def want_typed(self, *, wanted: bool) -> None:
        """Make the hook store the texts of typed commands from now on, or no longer."""

    def read_typed(self, number: int | None, line: TypedLine = ONE_LINE) -> TypedText:
        """Return the text that the hook stored for a typed command under ``number``, once.

        ``number`` is None if it stored nothing. ``line`` holds the known facts about the command.
        """
        return UnknownText(NOT_SAID)

    def split_echo(self, printed: CapturedOutput) -> tuple[TypedText, CapturedOutput]:
        """Split output at the prompt into a typed command's echo, if any, and its output."""
        return UnknownText(NOT_SAID), printed

    def is_incomplete(self, exit_code: int | None, text: str) -> bool:
        """Return whether a submission with this exit code and output was not read to its end."""
        return False

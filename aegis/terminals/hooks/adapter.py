"""``ShellAdapter``: what the daemon must know of one start of one kind of shell.

Each kind has a file of its own here, whose ``prepare`` writes the start-up files and gives the
adapter; ``choice`` finds the kind by the program's name.
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
from aegis.terminals.typed import NOT_SAID, ONE_LINE, TypedLine, TypedText, Unknown

PROBE_S = 0.5
"""A shell at its prompt answers a probe in a fraction of a millisecond, or it never got it."""

REARM_S = 1.0
"""A shell that stands at its prompt for so long has not read its hook: that takes milliseconds."""


@attrs.frozen(kw_only=True)
class Rearmed:
    """How a shell that runs already gets its hook: ``keys`` are typed at its prompt.

    They make it read the files that ``adapter`` tells of; its first mark carries the new secret.
    """

    adapter: ShellAdapter
    keys: bytes


@attrs.frozen(kw_only=True)
class ShellAdapter:
    """One start of a shell whose hook puts ``secret`` into its marks.

    ``argv`` starts it and ``env`` goes over its environment (never a secret); ``directory`` holds
    the files of the hook. ``error_tty`` is the path of the PTY that standard error of submitted
    commands goes to, if they have one apart. A kind that differs in how it is spoken to overrides
    the methods.
    """

    integration: Integration = "osc133"
    secret: bytes
    argv: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(factory=dict)
    directory: Path
    error_tty: str | None = None

    reports_starts: ClassVar[bool] = True
    """Whether the hook tells where a typed command begins; else its Enter is taken for that."""

    types_probe: ClassVar[bool] = False
    """Whether the probe key is a line that a program in front would read as its input."""

    uses_readline: ClassVar[bool] = False
    """Whether its line editor is readline.

    That sleeps in a read of the terminal, and a completion asks below the prompt whether to list
    all that it found, where a private key would be an answer.
    """

    def ask_line(self) -> bytes | None:
        """Make the hook report the line's length at a prompt; return the keys to type for it.

        Return None where the hook cannot be asked without disturbing whoever types.
        """
        return None if self.integration == "fallback" or self.types_probe else self.probe_key

    @property
    def redraw(self) -> re.Pattern[bytes] | None:
        """What the shell prints for ``ask_line`` on an empty line. None: the report alone.

        The group ``report`` is the report.
        """
        return None

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment to start it in, where ``inherited`` is that of every shell here."""
        return {**inherited, **self.env}

    @property
    def greeting(self) -> bytes:
        """What is typed to a shell that reads no file of ours, until it has shown a prompt."""
        return b""

    @property
    def probe_key(self) -> bytes:
        """Asks the hook how long the line is (``133;P;k=l``), and changes nothing."""
        return PROBE_KEY

    @property
    def probe_delay_s(self) -> float:
        """How long a Ctrl-C must be left alone before the probe key follows it."""
        return 0.0

    @property
    def interrupt_line(self) -> bytes:
        """Drops a line that the shell is reading."""
        return INTERRUPT_LINE

    @property
    def drops(self) -> tuple[bytes, ...]:
        """What drops a line that the shell is reading; the next one if the line goes on."""
        return (self.interrupt_line,)

    def encode(self, cmd: str) -> bytes:
        """The bytes that make the shell read exactly ``cmd`` and run it.

        Raises ``InvalidRequest`` for what no shell can read.
        """
        return encode_submission(cmd, b"" if self.error_tty is None else SPLIT_KEY)

    def read_typed(self, number: int | None, line: TypedLine = ONE_LINE) -> TypedText:
        """Return the text that the hook stored for a typed command under ``number``, once.

        ``number`` is None where it stored nothing. ``line`` is what is known about it already.
        """
        return Unknown(NOT_SAID)

    def split_echo(self, printed: CapturedOutput) -> tuple[TypedText, CapturedOutput]:
        """A typed command's text, if it is in what was printed, and its output without it."""
        return Unknown(NOT_SAID), printed

    def is_incomplete(self, exit_code: int | None, text: str) -> bool:
        """Whether a submission that ended so, and printed ``text``, was not read to its end."""
        return False

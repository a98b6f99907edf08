"""``ShellAdapter``: what the daemon must know of one start of one kind of shell.

Each kind has a file of its own here, whose ``prepare`` writes the start-up files and gives the
adapter; ``choice`` finds the kind by the program's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from aegis.protocol.terminals import Integration
from aegis.terminals.submission import (
    APART_KEY,
    INTERRUPT_LINE,
    PROBE_KEY,
    encode_submission,
)


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

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment to start it in, where ``inherited`` is that of every shell here."""
        return {**inherited, **self.env}

    @property
    def probe_key(self) -> bytes:
        """Asks the hook how long the line is (``133;P;k=l``), and changes nothing."""
        return PROBE_KEY

    @property
    def interrupt_line(self) -> bytes:
        """Drops a line that the shell is reading."""
        return INTERRUPT_LINE

    def encode(self, cmd: str) -> bytes:
        """The bytes that make the shell read exactly ``cmd`` and run it.

        Raises ``InvalidRequest`` for what no shell can read.
        """
        return encode_submission(cmd, b"" if self.error_tty is None else APART_KEY)

    def read_typed(self, number: int) -> str | None:
        """The text that the hook kept of a typed command under ``number``, once."""
        return None

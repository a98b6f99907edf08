"""What a shell without a hook says about commands, read from what it printed. Pure."""

from __future__ import annotations

import re

import attrs

from aegis.processes.capture import CapturedOutput
from aegis.terminals.typed import NOT_SAID, TypedText, Unknown

_NOT_READ_TO_ITS_END = re.compile(
    r"submission\b.*(?:end of file|unterminated|unmatched|no closing|unclosed)", re.IGNORECASE
)
"""How dash, busybox, mksh, ksh and bash say that the file they read ends too early."""


def split_echo(printed: CapturedOutput) -> tuple[TypedText, CapturedOutput]:
    """What was typed at a prompt, and what the command printed: the echo is the first line.

    ``printed`` is everything since the prompt.
    """
    typed, _, rest = printed.text.partition("\n")
    left = printed.total_bytes - len(typed.encode()) - 1
    output = attrs.evolve(printed, text=rest, total_bytes=max(left, 0))
    return typed.strip() or Unknown(NOT_SAID), output


def is_incomplete(exit_code: int | None, text: str) -> bool:
    """Whether the shell gave up at the end of the file of a submission; ``text``: its output."""
    lines = text.rstrip().rsplit("\n", 2)[-2:]
    return exit_code not in (0, None) and any(_NOT_READ_TO_ITS_END.search(line) for line in lines)

"""Facts about commands of a shell without a hook, read from its output. Pure."""

from __future__ import annotations

import re

import attrs

from aegis.processes.capture import CapturedOutput
from aegis.terminals.typed import NOT_SAID, TypedText, UnknownText

_SUBMISSION = re.compile(r"submission\b", re.IGNORECASE)
_NOT_READ_TO_ITS_END = re.compile(
    r"end of file|unterminated|unmatched|no closing|unclosed", re.IGNORECASE
)
"""The messages of dash, busybox, mksh, ksh and bash about a file that ends too early."""


def split_echo(printed: CapturedOutput) -> tuple[TypedText, CapturedOutput]:
    """Split the output since a prompt into the typed text and the command's output."""
    # The echo is the first line.
    typed, _, rest = printed.text.partition("\n")
    left = printed.total_bytes - len(typed.encode()) - 1
    output = attrs.evolve(printed, text=rest, total_bytes=max(left, 0))
    return typed.strip() or UnknownText(NOT_SAID), output


def is_incomplete(exit_code: int | None, text: str) -> bool:
    """Return whether the shell failed at the end of a submission's file; ``text``: its output."""
    lines = text.rstrip().rsplit("\n", 2)[-2:]
    # Two patterns: one for both would look for the message from each "submission" of a line on.
    return exit_code not in (0, None) and any(
        _NOT_READ_TO_ITS_END.search(line, named.end())
        for line in lines
        if (named := _SUBMISSION.search(line))
    )

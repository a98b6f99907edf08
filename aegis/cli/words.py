"""The words of a command line that are a command for a shell. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def command_text(words: Sequence[str]) -> str:
    """``words`` as text for a shell: one word is text already, several are quoted each."""
    return words[0] if len(words) == 1 else shlex.join(words)

"""Words of a command line: those that are a command for a shell, those that are verbs. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence


def command_text(words: Sequence[str]) -> str:
    """``words`` as text for a shell: one word is text already, several are quoted each."""
    return words[0] if len(words) == 1 else shlex.join(words)


_TOOL = re.compile(
    r"(?<![\w'\"])(?:aegis_)?(?:"
    "(term)_(broadcast|close|keys|list|output|read|run|spawn|subscribe|unsubscribe|wait)"
    "|(workspace)_(create|delete|exec|list)|(shell)_(close|open|read|signal|write)"
    r"|(inbox)_(read|wait)|(session)_(list|new|revoke)|(node)_(forget))(?![\w'\"])"
)


def in_verbs(sentence: str) -> str:
    """``sentence`` of the daemon, where each tool that it names is the verb of the command line.

    What stands in quotes is somebody's own text, and stays.
    """
    return _TOOL.sub(
        lambda found: " ".join(("aegis-actors", *filter(None, found.groups()))), sentence
    )

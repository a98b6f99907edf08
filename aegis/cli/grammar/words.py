"""Words of a command line: those that are a command for a shell, those that are verbs. Pure."""

from __future__ import annotations

import re

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence


def command_text(words: Sequence[str]) -> str:
    """``words`` as text for a shell: one word is text already, several are quoted each."""
    if len(words) == 1:
        return words[0]
    import shlex

    return shlex.join(words)


# Not compiled here: only sentences of the daemon are searched.
_TOOL = (
    r"(?<![\w'\"])(?:aegis_)?(?:"
    "(term)_(broadcast|close|keys|list|output|read|run|spawn|subscribe|unsubscribe|wait)"
    "|(workspace)_(create|delete|exec|list)|(shell)_(close|open|read|signal|write)"
    r"|(inbox)_(read|wait)|(session)_(list|new|revoke)|(node)_(forget))(?![\w'\"])"
)


def in_verbs(sentence: str) -> str:
    """``sentence`` of the daemon, where each tool that it names is the verb of the command line.

    What stands in quotes is somebody's own text, and stays.
    """
    return re.sub(
        _TOOL, lambda found: " ".join(("aegis-actors", *filter(None, found.groups()))), sentence
    )

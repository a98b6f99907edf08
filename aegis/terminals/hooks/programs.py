"""Whether a process is a shell at its prompt, by the arguments of its start. Pure.

Used for a shell that replaced ours (``exec bash``): keys typed there must reach a prompt, not a
script. So a shell with a script or a command as argument does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

_SHELLS = frozenset(
    {"bash", "zsh", "fish", "sh", "dash", "ash", "ksh", "ksh93", "lksh", "mksh", "yash"}
    | {"tcsh", "csh"}
)

_WITH_ARGUMENT = frozenset(
    {"--rcfile", "--init-file", "--init-command", "-C", "-o", "+o", "-O", "+O"}
)
"""Options with an argument."""


def prompting_shell(words: Sequence[str]) -> str | None:
    """Return the name of the shell that these words start interactively; None if they do not.

    A login shell's ``-bash`` is a bash. ``sh`` is always ``sh``; busybox's is its second word.
    """
    if words and PurePath(words[0]).name == "busybox":
        words = words[1:]
    if not words:
        return None
    name = PurePath(words[0].removeprefix("-")).name
    if name not in _SHELLS:
        return None
    rest = iter(words[1:])
    for word in rest:
        if word in _WITH_ARGUMENT:
            next(rest, None)
        elif not _is_harmless(word):
            return None
    return name


def _is_harmless(word: str) -> bool:
    """Return whether ``word`` is an option that leaves the shell at its prompt."""
    if word.startswith("--"):
        return word != "--command" and "=" not in word
    return word[:1] in ("-", "+") and len(word) > 1 and "c" not in word

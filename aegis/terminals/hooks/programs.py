"""Programs that replace a shell: another shell, by its arguments, or a multiplexer. Pure.

Keys that are typed at a shell which replaced ours (``exec bash``) must reach a prompt, not a
script. So a shell with a script or a command as argument does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

import attrs

_SHELLS = frozenset(
    {"bash", "zsh", "fish", "sh", "dash", "ash", "ksh", "ksh93", "lksh", "mksh", "yash"}
    | {"tcsh", "csh"}
)

_WITH_ARGUMENT = frozenset(
    {"--rcfile", "--init-file", "--init-command", "-C", "-o", "+o", "-O", "+O"}
)
"""Options with an argument."""


_GUARDS: Mapping[str, Mapping[str, str]] = {
    # The directory does not exist, so that not even root makes a server there.
    "tmux": {"TMUX": "/nonexistent/unset-TMUX-to-use-tmux-here,0,0", "BYOBU_DISABLE": "1"},
    "screen": {"STY": "unset-STY-to-use-screen-here", "BYOBU_DISABLE": "1"},
    "zellij": {"ZELLIJ": "unset-ZELLIJ-to-use-zellij-here"},
}
"""For each multiplexer the variables that start-up files ask for, and values that lead nowhere. The
first of them is shown by the program when a person runs it there."""

GUARD = '[ -z "$AEGIS_TERMINAL" ] && …'
"""The condition that a start-up file can use instead."""


@attrs.frozen(kw_only=True)
class Replacement:
    """A program that start-up files have run in place of the shell.

    ``guards`` are the variables that keep a multiplexer away. ``shell`` is the path of a shell, and
    ``inherited`` the environment that it was given, instead of them.
    """

    name: str
    guards: Mapping[str, str] = attrs.field(factory=dict)
    shell: str | None = None
    inherited: Mapping[str, str] = attrs.field(factory=dict)


def multiplexer_in(names: Iterable[str]) -> Replacement | None:
    """Return the multiplexer among these names of processes."""
    for each in names:
        name = each.partition(":")[0].lower()  # "tmux: client"
        if name in _GUARDS:
            return Replacement(name=name, guards=_GUARDS[name])
    return None


def replaced(shell: str, found: Replacement) -> str:
    """Return the sentence about a shell that was started again because of ``found``."""
    begin = f"the start-up files of {PurePath(shell).name} replaced it by {found.name}"
    if found.shell is not None:
        return f"{begin}, so the terminal was started with {found.name}"
    guard = next(iter(found.guards))
    return (
        f"{begin}, so it was started again with {guard} set to no session; "
        f"write {GUARD} before that line in them"
    )


def replaced_again(shell: str, found: Replacement) -> str:
    """Return why a terminal is not started: a multiplexer replaces its shell in spite of guards."""
    return (
        f"the start-up files of {PurePath(shell).name} replace it by {found.name} each time: write "
        f"{GUARD} before that line in them, then close the terminal and spawn it anew"
    )


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

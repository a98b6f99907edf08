"""Whether a command waits for input, by who is in front of its terminal and how it reads. Pure.

| the tty | the program in front | waits for |
|---|---|---|
| lines (canonical), echo on | reads the terminal | input |
| lines, echo off | reads the terminal, or hides what it does (sudo, su) | a secret |
| single keys (not canonical) | anything, quiet for a second | input |
| anything else | computes, sleeps, reads a pipe or a file, waits for a child | nothing |
"""

from __future__ import annotations

import attrs

from aegis.protocol.terminals import NeedsInput

KEYS_QUIET_S = 1.0
"""A program that takes single keys and has printed nothing for so long waits for one."""

LOOK_AFTER_S = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)
"""When a command that has fallen quiet is looked at, in seconds since; then every few seconds."""

LOOK_EVERY_S = 5.0
"""Nothing tells that a program begins to read: a quiet one is looked at again and again."""

_WITH_LINE_EDITOR = frozenset({"bash", "zsh", "fish"})


@attrs.frozen(kw_only=True)
class Foreground:
    """The process group in front, and how the tty takes keys for it.

    ``program`` is the name of its leader, ``reader`` that of a process of it that sleeps in a read
    of the terminal. ``is_hidden``: what the leader waits for may not be looked at.
    """

    group: int
    is_canonical: bool
    echoes: bool
    program: str
    reader: str | None
    is_hidden: bool = False

    @property
    def edits_line(self) -> bool:
        """Whether the tty stands as a line editor sets it: single keys, no echo."""
        return not self.is_canonical and not self.echoes


def needs_input(front: Foreground | None, quiet_s: float) -> NeedsInput | None:
    """What the program in front waits for, its terminal quiet for ``quiet_s`` seconds."""
    if front is None:
        return None
    program = front.reader or front.program
    if not front.is_canonical:
        if quiet_s < KEYS_QUIET_S:
            return None
        return NeedsInput(kind="input", program=program)
    if front.reader is None and not (front.is_hidden and not front.echoes):
        return None
    return NeedsInput(kind="input" if front.echoes else "secret", program=program)


def stands_at_prompt(shell: str, front: Foreground, *, pastes: bool) -> bool:
    """Whether a shell of this name, in front, reads a line from its user, as far as one can see.

    One with a line editor does so only in it: a start-up file of it may read as well. Zsh reads
    keys in the same way when it asks a new user for first settings; there it does not switch paste
    mode on (``pastes``).
    """
    if shell == "zsh" and not pastes:
        return False
    if shell in _WITH_LINE_EDITOR:
        return front.edits_line
    return front.edits_line or front.reader is not None


def next_look_after(quiet_s: float) -> float:
    """Seconds until the next look at a command that has been quiet for ``quiet_s``."""
    for moment in LOOK_AFTER_S:
        if moment > quiet_s + 0.001:
            return moment - quiet_s
    return LOOK_EVERY_S

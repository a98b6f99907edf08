"""Facts of the tty: whether the program in front is blocked in a read of the terminal. Pure.

A thread that is blocked in such a read waits for a line or a key. No agent was seen to block:
agents wait for keys and for the model together (epoll), while they work too. So the modes of the
tty alone prove nothing, and a program that is not blocked may wait nevertheless. But where every
thread computes, sleeps or waits for a child, nobody waits for a key: the program is busy.
"""

from __future__ import annotations

import attrs

from aegis.lifecycle.states import MAX_NAME_CHARS, Need, clean
from aegis.processes.input_wait import Foreground, is_quiet_enough

_LINE_EDITORS = frozenset({"bash", "zsh", "fish"})
"""Shells that read single keys, and only while they wait for a line."""


@attrs.frozen
class TtyFact:
    """The result of a check of the tty; ``need`` is None if the program is not blocked.

    ``is_busy``: it would read no key now.
    """

    need: Need | None
    is_busy: bool = False


def tty_fact(front: Foreground | None, quiet_s: float) -> TtyFact:
    """Return the fact about the foreground program after ``quiet_s`` seconds without output.

    ``front`` is None if it is unknown.
    """
    if front is None:
        return TtyFact(None)
    if front.doubt == "work":
        return TtyFact(None)  # a thread may read while the program does what it was asked for
    need = _line_need(front) if front.is_canonical else _key_need(front, quiet_s)
    return TtyFact(need, is_busy=need is None and front.is_busy)


def _line_need(front: Foreground) -> Need | None:
    program = clean(front.reader or front.program, MAX_NAME_CHARS)
    # The state of sudo may not be read: there, the echo that is off has to do.
    if front.reader is None and (front.echoes or not front.is_hidden):
        return None
    if front.echoes:
        return Need(kind="input", text=f"{program} reads a line")
    return Need(kind="auth", text=f"{program} reads a line without echo")


def _key_need(front: Foreground, quiet_s: float) -> Need | None:
    if front.reader is None:
        return None
    if front.edits_line and front.reader in _LINE_EDITORS:
        return Need(kind="ready")
    # A thread may read keys while others work: but then they paint.
    if not is_quiet_enough(quiet_s):
        return None
    return Need(kind="input", text=f"{clean(front.reader, MAX_NAME_CHARS)} reads keys")

"""The errors for callers whose command cannot be run, or whose terminal is unknown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aegis.errors import AegisError, Busy, IncompleteInput, NotFound, StorageError, Unavailable
from aegis.names import nearest, shorten
from aegis.processes.line_discipline import MAX_LINE_BYTES
from aegis.protocol.terminals import NeedsInput, Typing
from aegis.terminals.record import UnrecordedCommand

SPAWN_ANEW = "close it and spawn it anew"
"""The remedy for a terminal that has failed."""

_WAITS = {"input": "input", "secret": "a secret"}


def not_running(terminal: str) -> NotFound:
    """Return the error for a signal to a command that does not run."""
    return NotFound(
        f"that command does not run on terminal {terminal!r} (any more); nothing was signalled: "
        "read its record with aegis_term_read"
    )


def not_signalled(terminal: str) -> Unavailable:
    """Return the error for a signal without a process that may be signalled."""
    return Unavailable(
        f"no process that the daemon may signal is in the foreground of terminal {terminal!r}; "
        "nothing was signalled: look with aegis_term_list, or send Ctrl-C with aegis_term_keys"
    )


def not_typed(
    terminal: str,
    timeout_s: float,
    running: UnrecordedCommand | None,
    typing: Typing | None,
    typing_s: float = 0.0,
    needs: NeedsInput | None = None,
    may: NeedsInput | None = None,
) -> AegisError:
    """Return the error for a command that was not typed in time: the terminal was busy or silent.

    ``timeout_s`` 0: it was refused at once.
    ``typing_s`` is how long ``typing`` has lasted, in seconds. ``needs`` is the input for which the
    running command waits, ``may`` the one for which it may wait.
    """
    within = f" within {timeout_s:g} s" if timeout_s else ""
    if running is not None:
        waits = ""
        if needs is not None:
            waits = f", and {needs.program!r} in it waits for {_WAITS[needs.kind]}"
        elif may is not None:
            waits = f", and {may.program!r} in it may wait for {_WAITS[may.kind]}"
        remedy = "Wait for it" if needs is None else "Answer it with aegis_term_keys"
        return Busy(
            f"terminal {terminal!r} was busy: {running.writer} runs {shown(running.cmd)}"
            f"{_number(running)}{waits}; your command was not typed{within}. {remedy}, or use "
            "another terminal"
        )
    if typing is not None:
        return Busy(
            f"terminal {terminal!r} was busy: {typing.writer} is typing a line there, for "
            f"{typing_s:.0f} s, since {typing.since}; your command was not typed{within}. "
            "Try again later, use another terminal, or clear that line with aegis_term_keys and "
            r"keys '\x03' (Ctrl-C)"
        )
    return Unavailable(
        f"the shell of terminal {terminal!r} showed no prompt{within}; your command was not typed"
    )


def not_read(terminal: str, waiting: int) -> str:
    """Return the error for keys that are refused while ``waiting`` bytes of input are unread."""
    return (
        f"the program on terminal {terminal!r} does not read its input: {waiting} bytes wait "
        "already; nothing of yours was sent"
    )


def line_too_long(terminal: str, length: int) -> str:
    """Return the error for keys that contain a line of ``length`` bytes."""
    return (
        f"the program in front of terminal {terminal!r} reads whole lines, and the system cuts a "
        f"line after {MAX_LINE_BYTES} bytes: one of yours would have {length}; nothing was sent. "
        "Send shorter lines, or give the text in a file"
    )


def occupied_by(running: UnrecordedCommand | None, typing: Typing | None) -> str | None:
    """Describe the writer that occupies the terminal; None if it is free."""
    if running is not None:
        return f"waiting: {running.writer} runs {shown(running.cmd)}{_number(running)}"
    if typing is None:
        return None
    return f"waiting: {typing.writer} is typing a line, since {typing.since}"


def _number(command: UnrecordedCommand) -> str:
    """Describe the number of a command, if no other command can get the same number."""
    is_certain = command.began_at is not None or command.timed_out
    return f" (seq {command.seq})" if is_certain else ""


def incomplete(cmd: str, became: str) -> IncompleteInput:
    """Return the error for incomplete input; ``became`` is what happened to the command."""
    return IncompleteInput(
        "the shell waits for more input: a quote, a bracket, an if or a here-document of this "
        f"command is not closed; it was interrupted and {became}: {shown(cmd)}"
    )


def swallowed(terminal: str, cmd: str) -> Unavailable:
    """Return the error for a command that was read as input by a program typed ahead of it."""
    return Unavailable(
        f"a program that was typed ahead on terminal {terminal!r} read your command as its "
        f"input; the shell did not run {shown(cmd)}"
    )


def unread(terminal: str, cmd: str) -> Unavailable:
    """Return the error for a command whose shell ended while a line typed ahead of it ran."""
    return Unavailable(
        f"the shell of terminal {terminal!r} ended with a command that was typed ahead of yours, "
        f"which did not run: {shown(cmd)}; a fresh shell follows, run it again"
    )


def unwritten(terminal: str, cmd: str) -> StorageError:
    """Return the error for a command whose file, from which the shell reads it, was refused."""
    return StorageError(
        f"{shown(cmd)} was not typed: the file from which the shell of terminal {terminal!r} reads "
        "commands cannot be written; check the disk, then try again"
    )


def shown(cmd: str | None) -> str:
    """Return a command for a sentence: its first line, shortened."""
    if cmd is None:
        return "a command"
    first, _, rest = cmd.strip().partition("\n")
    return repr(shorten(first) + (" …" if rest else ""))


def no_such_node(tool: str, name: str, known: Iterable[str]) -> NotFound:
    """Return the error for an unknown node; ``known`` are the names of all nodes."""
    nodes = sorted(known)
    close = nearest(name, nodes, most=1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    else:
        hint = f"there {'is' if len(nodes) == 1 else 'are'} {', '.join(nodes) or 'none'}"
    return NotFound(f"{tool}: there is no node {shorten(name)!r}; {hint}")


def no_such_terminal(name: str, open_now: Sequence[str]) -> NotFound:
    """Return the error for an unknown terminal; ``open_now`` are the open ones."""
    close = nearest(name, open_now)
    if close:
        hint = f"did you mean {' or '.join(map(repr, close))}?"
        return NotFound(f"there is no terminal {name!r}; {hint} aegis_term_spawn makes a new one")
    hint = f"open now: {', '.join(sorted(open_now)[:20]) or 'none'}"
    return NotFound(f"there is no terminal {name!r} ({hint}); aegis_term_spawn makes one")

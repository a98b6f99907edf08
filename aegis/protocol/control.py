"""Signals to the program in front of a terminal, and the size of its window."""

from __future__ import annotations

import attrs

from aegis.protocol.command import between, described, matching
from aegis.protocol.output import MAX_CURSOR
from aegis.protocol.terminals import (
    COLS,
    ROWS,
    Done,
    OnTerminal,
    TerminalInfo,
)

SIGNALS = (
    "INT",
    "TERM",
    "HUP",
    "KILL",
    "QUIT",
    "TSTP",
    "STOP",
    "CONT",
    "USR1",
    "USR2",
    "WINCH",
)
SIGNAL_PATTERN = f"(SIG)?({'|'.join(SIGNALS)})"
SIGNAL_BRIEF = "The signal's name, such as INT."
SIGNAL_RULE = f"one of {', '.join(SIGNALS)}, with or without SIG before it"


@attrs.frozen(kw_only=True)
class SignalTerminal(OnTerminal[Done]):
    """Send a signal to the process group in front of the terminal: the command that runs.

    It works whatever the program made of its keyboard, where Ctrl-C is only a character. At an
    idle prompt the shell itself is in front: INT drops its line, TERM, QUIT and TSTP do nothing to
    it, HUP and KILL end it, and a fresh shell comes. What STOP or TSTP stopped goes on with CONT.
    With ``seq`` only that command is signalled: one that does not run (any more) is an error.
    """

    signal: str = attrs.field(
        validator=matching(SIGNAL_PATTERN, SIGNAL_RULE),
        metadata=described(
            f"The signal: {SIGNAL_RULE}.", SIGNAL_BRIEF, pattern=f"^{SIGNAL_PATTERN}$"
        ),
    )
    seq: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a seq)"),
        metadata=described("Only if this command runs; default: whatever is in front.", minimum=0),
    )


@attrs.frozen(kw_only=True)
class ResizeTerminal(OnTerminal[TerminalInfo]):
    """Give the terminal's window another size, for everybody, now and after a restart.

    The program in front is told by SIGWINCH.
    """

    cols: int = attrs.field(validator=between(2, 1000, "columns"), metadata=COLS)
    rows: int = attrs.field(validator=between(1, 1000, "rows"), metadata=ROWS)

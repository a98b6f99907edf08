"""Signals to the foreground program of a terminal, and the size of its window."""

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
    """Send a signal to the foreground process group of a terminal: the running command.

    It also reaches a program that reads Ctrl-C as a plain character. At an idle prompt the shell
    itself is the target: INT discards its line, TERM, QUIT and TSTP have no effect, HUP and KILL
    end it, and a new shell starts. CONT resumes what STOP or TSTP stopped. With ``seq`` only that
    command is signalled; if it is not running, the call fails.
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
        metadata=described(
            "Only if this command runs; default: the foreground program.", minimum=0
        ),
    )


@attrs.frozen(kw_only=True)
class ResizeTerminal(OnTerminal[TerminalInfo]):
    """Resize the terminal's window, for all its users, now and after a restart.

    The foreground program receives SIGWINCH.
    """

    cols: int = attrs.field(validator=between(2, 1000, "columns"), metadata=COLS)
    rows: int = attrs.field(validator=between(1, 1000, "rows"), metadata=ROWS)

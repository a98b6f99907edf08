"""The commands of a load: what each prints, how it ends, what it leaves behind. Pure.

Each writes ``begun <token>`` and ``ended <token>`` to the file ``$WITNESS``: the proof, apart from
the daemon, that it ran.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from tests.chaos.checking.evidence import Command


@attrs.frozen(kw_only=True)
class Kind:
    """``text`` runs between the two lines of witness, ``last`` behind them; % is the token."""

    text: str
    last: str = ""
    stdout: str = "%\n"
    exit: int = 0
    end: str = "exited"
    timeout_s: float = 30.0
    typed: bool = False
    until: str = "ended"
    weight: int = 4


LINES = 40
MANY_LINES = 1500

KINDS: Mapping[str, Kind] = {
    "quick": Kind(text="echo %"),
    "several lines": Kind(
        text=f"for ((n = 1; n <= {LINES}; n++)); do echo % $n; done",
        stdout="".join(f"% {n}\n" for n in range(1, LINES + 1)),
    ),
    "several lines of text": Kind(text="echo % one\necho % two", stdout="% one\n% two\n"),
    "much output": Kind(
        text=f"for n in {{1..{MANY_LINES}}}; do echo % $n; done",
        stdout="".join(f"% {n}\n" for n in range(1, MANY_LINES + 1)),
        weight=1,
    ),
    "failing": Kind(text="echo %", last="(exit 7)", exit=7),
    "too long for its caller": Kind(
        text="echo %; sleep 0.25; echo % late", stdout="%\n% late\n", timeout_s=0.1, weight=3
    ),
    "typed": Kind(text="echo %", typed=True),
    "leaving a child": Kind(text="(setsid nohup sleep 1000 >/dev/null 2>&1 &); echo %", weight=1),
    "ending the shell": Kind(
        text="echo %", last="exit 3", stdout="%\nexit\n", exit=3, end="shell_exit", weight=1
    ),
}

RUN = tuple(kind for kind in KINDS.values() if not kind.typed)
"""What may go on a terminal that others use at the same time.

Keys may not: what is typed ahead is echoed into the output of what runs, as on any terminal.
"""


HOLDING = Kind(text="echo %; sleep 0.15; echo % late", stdout="%\n% late\n", until="started")
"""What runs while somebody types ahead: its caller is answered when it has begun."""

AHEAD = tuple(
    attrs.evolve(KINDS[name], typed=True)
    for name in ("quick", "several lines", "failing", "ending the shell")
)
"""What is typed ahead, on a terminal that nobody else uses."""

BEHIND = ("quick", "several lines of text", "failing", "too long for its caller")
"""What waits behind it."""


def make_command(kind: Kind, *, token: str, terminal: str, handle: str, life: int) -> Command:
    """The command of this kind whose token is ``token``."""
    begin, end = (f'echo "{what} {token}" >>"$WITNESS"' for what in ("begun", "ended"))
    parts = [begin, kind.text.replace("%", token)]
    parts += [end, *([kind.last] if kind.last else [])]
    return Command(
        token=token,
        terminal=terminal,
        writer=f"agent:{handle}",
        life=life,
        text=("\n" if "\n" in kind.text else "; ").join(parts),
        stdout=kind.stdout.replace("%", token),
        exit=kind.exit,
        end=kind.end,
        typed=kind.typed,
    )

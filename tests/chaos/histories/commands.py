"""The commands of a history: what each prints, how it ends, what it leaves behind. Pure.

They are written in the language of the simulated shell. Each writes down by itself that it began
and that it came to its end: the proof, apart from any daemon, of what ran.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from tests.chaos.checking.evidence import Command

HERE = "HERE"
"""The variable with the name of the terminal, for a text that several terminals get."""


@attrs.frozen(kw_only=True)
class Kind:
    """``text`` runs between the two lines of witness, ``last`` behind them; % is the token.

    ``stdout``, ``exit`` and ``end`` are what becomes of it if nobody disturbs it. ``timeout_s`` is
    how long its caller waits. ``answer`` is what it reads from the keyboard.
    """

    text: str
    last: str = ""
    stdout: str = "%\n"
    exit: int = 0
    end: str = "exited"
    timeout_s: float = 30.0
    answer: str = ""
    weight: int = 4


def _lines(count: int) -> str:
    return "".join(f"% {number}\n" for number in range(1, count + 1))


KINDS: Mapping[str, Kind] = {
    "quick": Kind(text="echo %", weight=8),
    "several lines": Kind(text="play repeat % 40", stdout=_lines(40)),
    "several lines of text": Kind(text="echo % one\necho % two", stdout="% one\n% two\n"),
    "much output": Kind(text="play repeat % 1000", stdout=_lines(1000), weight=1),
    "slow output": Kind(
        text="echo %; sleep 0.05; echo % 2; sleep 0.05; echo % 3", stdout="%\n% 2\n% 3\n"
    ),
    "failing": Kind(text="echo %", last="play exit 7", exit=7),
    "dying": Kind(text="echo %", last="play die KILL", stdout="%\nKilled\n", exit=137),
    "too long for its caller": Kind(
        text="echo %; sleep 0.25; echo % late", stdout="%\n% late\n", timeout_s=0.1
    ),
    "leaving a child": Kind(text="play stay setsid 1000; echo %", weight=1),
    "leaving a deaf child": Kind(text="play stay deaf 1000; echo %", weight=1),
    "forging marks": Kind(text="play forge; echo %", stdout="forged\n%\n", weight=1),
    "asking": Kind(text="play ask %?", stdout="%?# %\ngot # %\n", answer="# %", weight=2),
    "ending the shell": Kind(
        text="echo %", last="exit 3", stdout="%\nexit\n", exit=3, end="shell_exit", weight=1
    ),
}
"""What may be run on any terminal."""

TYPED: Mapping[str, Kind] = {
    name: KINDS[name]
    for name in ("quick", "several lines", "slow output", "failing", "dying", "ending the shell")
}
"""What may be typed, by whoever types alone on a terminal.

Others may not type: what is typed ahead is echoed into the output of what runs, as on any terminal.
"""

BEHIND = (
    "quick",
    "several lines of text",
    "slow output",
    "failing",
    "too long for its caller",
    "asking",
)
"""What may wait behind lines that were typed ahead."""

LONG = Kind(text="echo %; sleep 1000", stdout="%\n^C\n", exit=130)
"""What is interrupted by Ctrl-C. By a signal, it prints no ^C."""

OPEN = "echo '%"
"""What the shell cannot finish reading."""


def make_command(
    kind: Kind, *, token: str, terminal: str, writer: str, life: int, typed: bool = False
) -> Command:
    """The command of this kind whose token is ``token``, sent in this life of the daemon."""
    parts = [f"witness begun {token}", kind.text.replace("%", token), f"witness ended {token}"]
    parts += [kind.last] if kind.last else []
    return Command(
        token=token,
        terminal=terminal,
        writer=f"agent:{writer}",
        life=life,
        text=("\n" if "\n" in kind.text else "; ").join(parts),
        stdout=kind.stdout.replace("%", token),
        exit=kind.exit,
        end=kind.end,
        typed=typed,
    )

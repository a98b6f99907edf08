"""The commands that clients of a simulated or a real daemon run, with their expected records. Pure.

Each command writes a line when it begins and one when it ends: evidence, independent of the
daemon, of the commands that ran.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from tests.chaos.checking.evidence import Command

HERE = "HERE"
"""The variable with the name of the terminal, for a text that is sent to several terminals."""


@attrs.frozen(kw_only=True)
class Kind:
    """A command as a template; % is its token.

    ``text`` runs between the two lines of evidence, ``last`` after them. ``stdout``, ``exit`` and
    ``end`` are expected of its record if nothing disturbs it. Its caller waits ``timeout_s``
    seconds, or ``until`` it has started. ``answer`` is the line that it reads from the keyboard.
    ``typed`` commands are sent as keys. ``weight`` is its share when one is drawn.
    """

    text: str
    last: str = ""
    stdout: str = "%\n"
    exit: int = 0
    end: str = "exited"
    timeout_s: float = 30.0
    answer: str = ""
    typed: bool = False
    until: str = "ended"
    weight: int = 4


@attrs.frozen(kw_only=True)
class Repertoire:
    """The commands of one kind of shell.

    ``evidence`` is the command that writes a line of evidence; # is "begun" or "ended", % the
    token. ``kinds`` may run on each terminal. ``typed`` may be typed on a terminal with one writer:
    text that is typed ahead is echoed into the output of the current command. ``behind`` are the
    kinds that may be queued behind lines that were typed ahead.
    """

    evidence: str
    kinds: Mapping[str, Kind]
    typed: Mapping[str, Kind]
    behind: tuple[str, ...]

    def command(
        self,
        kind: Kind,
        *,
        token: str,
        terminal: str,
        writer: str,
        life: int,
        typed: bool | None = None,
    ) -> Command:
        """Return the command of this kind, sent in incarnation ``life`` of the daemon."""
        parts = [self._line("begun"), kind.text, self._line("ended"), kind.last]
        separator = "\n" if "\n" in kind.text else "; "
        return Command(
            token=token,
            terminal=terminal,
            writer=f"agent:{writer}",
            life=life,
            text=separator.join(filter(None, parts)).replace("%", token),
            stdout=kind.stdout.replace("%", token),
            exit=kind.exit,
            end=kind.end,
            typed=kind.typed if typed is None else typed,
        )

    def _line(self, what: str) -> str:
        return self.evidence.replace("#", what)


def _numbered(count: int) -> str:
    return "".join(f"% {number}\n" for number in range(1, count + 1))


_COMMON: Mapping[str, Kind] = {
    "quick": Kind(text="echo %", weight=8),
    "several lines of text": Kind(text="echo % one\necho % two", stdout="% one\n% two\n"),
    "too long for its caller": Kind(
        text="echo %; sleep 0.25; echo % late", stdout="%\n% late\n", timeout_s=0.1
    ),
    "ending the shell": Kind(
        text="echo %", last="exit 3", stdout="%\nexit\n", exit=3, end="shell_exit", weight=1
    ),
}

_SIMULATED: Mapping[str, Kind] = {
    **_COMMON,
    "several lines": Kind(text="play repeat % 40", stdout=_numbered(40)),
    "much output": Kind(text="play repeat % 1000", stdout=_numbered(1000), weight=1),
    "slow output": Kind(
        text="echo %; sleep 0.05; echo % 2; sleep 0.05; echo % 3", stdout="%\n% 2\n% 3\n"
    ),
    "failing": Kind(text="echo %", last="play exit 7", exit=7),
    "dying": Kind(text="echo %", last="play die KILL", stdout="%\nKilled\n", exit=137),
    "leaving a child": Kind(text="play stay setsid 1000; echo %", weight=1),
    "leaving a deaf child": Kind(text="play stay deaf 1000; echo %", weight=1),
    "forging marks": Kind(text="play forge; echo %", stdout="forged\n%\n", weight=1),
    "asking": Kind(text="play ask %?", stdout="%?# %\ngot # %\n", answer="# %", weight=2),
}

_REAL: Mapping[str, Kind] = {
    **_COMMON,
    "several lines": Kind(
        text="for ((n = 1; n <= 40; n++)); do echo % $n; done", stdout=_numbered(40)
    ),
    "much output": Kind(
        text="for n in {1..1500}; do echo % $n; done", stdout=_numbered(1500), weight=1
    ),
    "failing": Kind(text="echo %", last="(exit 7)", exit=7),
    "leaving a child": Kind(text="(setsid nohup sleep 1000 >/dev/null 2>&1 &); echo %", weight=1),
}


def _chosen(kinds: Mapping[str, Kind], *names: str) -> Mapping[str, Kind]:
    return {name: kinds[name] for name in names}


SIMULATED = Repertoire(
    evidence="witness # %",
    kinds=_SIMULATED,
    typed=_chosen(
        _SIMULATED,
        *("quick", "several lines", "slow output", "failing", "dying", "ending the shell"),
    ),
    behind=(
        *("quick", "several lines of text", "slow output", "failing"),
        *("too long for its caller", "asking"),
    ),
)
"""The commands in the language of the simulated shell."""

REAL = Repertoire(
    evidence='echo "# %" >>"$WITNESS"',
    kinds=_REAL,
    typed=_chosen(_REAL, "quick", "several lines", "failing", "ending the shell"),
    behind=("quick", "several lines of text", "failing", "too long for its caller"),
)
"""The commands for bash; the file ``$WITNESS`` gets the lines of evidence."""

LONG = Kind(text="echo %; sleep 1000", stdout="%\n^C\n", exit=130)
"""A command to interrupt by Ctrl-C. Interrupted by a signal, it prints no ``^C``."""

HOLDING = Kind(text="echo %; sleep 0.15; echo % late", stdout="%\n% late\n", until="started")
"""A command that runs while its caller types ahead: the call returns when it has started."""

OPEN = "echo '%"
"""A text with an open quote: the shell cannot finish reading it."""

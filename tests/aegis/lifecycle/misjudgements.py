"""The table of misjudgements: recordings of real programs, judged by some of the evidence.

    python -m tests.aegis.lifecycle.misjudgements

prints it; ``docs/reference/terminal-agents.md`` holds it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import attrs

from tests.aegis.lifecycle.recorded import Played, Span, play
from tests.agents_real.tui.recording import load, names

EVERYTHING = frozenset({"Report", "Hook", "TitleChanged", "Notice", "ProgressNotice"})
EXTRA = frozenset({"TtyFact", "KeyInput", "Resized", "screen"})
WITHOUT: Mapping[str, frozenset[str]] = {
    "silence alone": EVERYTHING | EXTRA,
    "screen and keys": EVERYTHING | {"TtyFact"},
    "tty": EVERYTHING,
    "titles": EVERYTHING - {"TitleChanged", "Notice", "ProgressNotice"} | {"TtyFact"},
    "hooks": EVERYTHING - {"Hook"} | {"TtyFact"},
    "reports": EVERYTHING - {"Report"} | {"TtyFact"},
    "all": frozenset(),
}
"""The evidence that is left out, by the name of what is used. All but the first use the screen."""

STARTS = "the program starts"
WORKS_FROM_THE_START = ("build", "download")
"""The programs that have nothing else to start than their work."""


@attrs.frozen(kw_only=True)
class Misjudged:
    """The wrong verdicts of a recording of ``minutes``, its start apart.

    ``false``: it was taken to need input. ``missed``: it needed input unseen; ``longest_s`` is the
    longest of these.
    """

    minutes: float
    false: tuple[Span, ...]
    missed: tuple[Span, ...]

    @property
    def longest_s(self) -> float:
        return max((each.end - each.begin for each in self.missed), default=0.0)

    def cell(self) -> str:
        """Return false and missed ones per minute, and the longest missed."""
        false, missed = (len(each) / self.minutes for each in (self.false, self.missed))
        return f"{false:.1f} / {missed:.1f} ({self.longest_s:.1f} s)"


def misjudged(name: str, evidence: str = "all") -> Misjudged:
    """Judge a recording by some evidence."""
    played: Played = play(load(name), WITHOUT[evidence])
    wrong = [
        each
        for each in played.wrong
        if each.truth.because != STARTS or name in WORKS_FROM_THE_START
    ]
    return Misjudged(
        minutes=played.seconds / 60,
        false=tuple(each for each in wrong if each.truth.state == "working"),
        missed=tuple(each for each in wrong if each.truth.state == "needs_input"),
    )


def table() -> str:
    """Return the table in Markdown."""
    head = ["program", *WITHOUT]
    rows = [[name, *(misjudged(name, each).cell() for each in WITHOUT)] for name in names()]
    return "\n".join(map(_row, [head, ["---"] * len(head), *rows])) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write(table())

"""Changes of the text on the screen, other than blinking cells and spinners. Pure.

Agents repaint while they wait for an answer: a dot blinks, a spinner turns. So a row has changed
only if

- its text differs after spinner glyphs and bullets are taken as blanks,
- the new text is not empty, and none of the row's last few, to which a blinking word returns.

A single row that is rewritten in place is a ``small`` change: a counter of an agent at work, or a
clock or a tip beside one that waits. Only their times differ.

A row that only blinks has two states. One that reaches a third, such as a spinner or dots that
grow, is a ``turn``: a program that turns something steadily is at work. Not so a program that reads
keys itself: Kimi turns a spinner beside its permission prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

Change = Literal["text", "small", "turn", "none", "unknown"]
"""``unknown``: the output was not classified."""

MAX_VERSIONS = 4
"""Texts of a row that are remembered; a longer cycle of texts counts as change."""

MAX_STATES = 8
"""Changes of a row among which the states of its glyph are counted."""

BLINK_STATES = 2

MAX_GLYPH_CELLS = 3
"""The width of what turns, such as three dots; tips that replace each other are wider."""

_GLYPHS = (
    *range(0x2800, 0x2900),  # braille dots
    *range(0x25D0, 0x25D4),  # half circles
    *range(0x25F4, 0x25F8),  # circles with a quadrant
    *map(ord, "✢✳✶✻✽✦✧◇◆"),  # stars
    *map(ord, "·•●○◉◎⏺"),  # bullets
)
# Spinners of other glyphs, such as Kimi's moons, count as text: no agent was seen to turn one while
# it waits. The ASCII spinner becomes no blank: a line of dashes that grows is a change.
_PLAIN = {**dict.fromkeys(_GLYPHS, " "), **dict.fromkeys(map(ord, "/-\\"), "|")}


class ScreenText:
    """The text of one screen, as last seen."""

    def __init__(self) -> None:
        self._rows: list[str] = []
        self._states: list[deque[int]] = []  # of each row, the texts of its last changes
        self._versions: list[list[int]] = []

    def update(self, rows: Sequence[str], *, reads_keys: bool = False) -> Change:
        """Return what has changed on the screen, which now has these ``rows``.

        ``reads_keys``: the program has switched bracketed paste on.
        """
        old = [*self._rows, *[""] * len(rows)][: len(rows)]
        self._versions = [*self._versions, *([hash("")] for _ in rows)][: len(rows)]
        self._rows = list(rows)
        is_turn = self._turn(old, rows)
        changed = [
            index
            for index, row in enumerate(rows)
            if row != old[index] and _remember(self._versions[index], plain_row(row))
        ]
        if not changed:
            return "turn" if is_turn and not reads_keys else "none"
        first = changed[0]
        before, after = plain_row(old[first]), plain_row(rows[first])
        is_rewritten = before != "" and not after.startswith(before)
        return "small" if len(changed) == 1 and is_rewritten else "text"

    def _turn(self, old: Sequence[str], rows: Sequence[str]) -> bool:
        """Note the rows that have changed; return whether a glyph in one has several states."""
        missing = len(rows) - len(self._states)
        self._states += [deque(maxlen=MAX_STATES) for _ in range(missing)]
        del self._states[len(rows) :]
        is_turn = False
        for states, last, row in zip(self._states, old, rows, strict=True):
            if row == last:
                continue
            if "" in (row, last) or not _is_glyph(last, row):
                states.clear()  # another text, with states of its own
            states.append(hash(row))
            is_turn |= len(set(states)) > BLINK_STATES
        return is_turn


def _is_glyph(before: str, after: str) -> bool:
    """Return whether two texts of a row differ in a few cells at one place."""
    longest = max(len(before), len(after))
    return longest - _common(before, after) - _common(before[::-1], after[::-1]) <= MAX_GLYPH_CELLS


def _common(one: str, other: str) -> int:
    """Return the number of characters with which both begin."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _remember(versions: list[int], row: str) -> bool:
    """Add ``row`` to the last texts of a row; return whether it is a new text."""
    version = hash(row)
    is_new = row != "" and version not in versions
    if version in versions:
        versions.remove(version)
    versions.append(version)
    del versions[:-MAX_VERSIONS]
    return is_new


def plain_row(row: str) -> str:
    """Return the text of a row without the glyphs that blink or turn."""
    return row.translate(_PLAIN).rstrip()

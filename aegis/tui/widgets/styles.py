"""The colours of finished commands, from their raw output.

The text of a block is that of the ledger. The raw output is drawn again by the emulator, at the
sizes that the window had, and a line of it gives its styles to the line of the block that has the
same text. So a colour may be missing, and a text is never wrong.
"""

from __future__ import annotations

import codecs
from collections import defaultdict, deque
from typing import Any

from avt import Vt  # type: ignore[attr-defined]

from aegis.tui.model.blocks import Runs
from aegis.tui.widgets.emulator import has_another_pen, style_of_pen, text_of

WIDE = 1_000
"""Columns in which the lines are compared: a line that the window had wrapped is one again."""


class Replay:
    """Draws raw output again; ``runs`` returns the styles of the lines of a text."""

    def __init__(self, cols: int, rows: int) -> None:
        self._vt = Vt(cols, rows)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        """Take output."""
        self._vt.feed_str(self._decoder.decode(data))

    def resize(self, cols: int, rows: int) -> None:
        """Take another size of the window."""
        self._vt.resize(cols, rows)

    def runs(self, text: str) -> dict[int, Runs]:
        """Return the styles of the lines of ``text``, by their row."""
        cols, rows = self._vt.size
        self._vt.resize(max(cols, WIDE), rows)
        drawn: defaultdict[str, deque[Runs]] = defaultdict(deque)
        for line in self._vt.lines():
            shown, runs = _runs_of(line)
            drawn[shown].append(runs)
        found = {}
        for row, wanted in enumerate(text.split("\n")):
            same = drawn.get(wanted.rstrip())
            if same:
                # Lines with one text have their styles in the same order.
                runs = same.popleft() if len(same) > 1 else same[0]
                if runs:
                    found[row] = runs
        return found


def _runs_of(line: Any) -> tuple[str, Runs]:
    """Return the text of a line of the emulator, and the parts that have a style."""
    text: str = ""
    runs: Runs = []
    for chunk in line.chunks(has_another_pen):
        part = text_of(chunk)
        if not chunk[0].pen.is_default():
            runs.append((len(text), len(text) + len(part), style_of_pen(chunk[0].pen)))
        text += part
    return text.rstrip(), runs

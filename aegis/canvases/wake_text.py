"""The message that wakes a subscriber of a canvas. Pure.

Its header line (sender and time) is rendered by the inbox. No line holds control characters, line
separators or bidirectional overrides: the text of a section must not rewrite the message around it.
"""

from __future__ import annotations

import re

from aegis.protocol.canvases import OUTSIDE, CanvasChange

MAX_LINES = 6
MAX_LINE_CHARS = 200
MAX_EXCERPT_CHARS = 4 * MAX_LINES * MAX_LINE_CHARS

_TAB_STOP = 8
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def excerpt(text: str | None) -> str | None:
    """Return the part of a text that is enough for a wake."""
    if text is None:
        return None
    lines = text[:MAX_EXCERPT_CHARS].split("\n", MAX_LINES + 1)[:MAX_LINES]
    return "\n".join(line[: 2 * MAX_LINE_CHARS] for line in lines)


def wake_body(change: CanvasChange, section: str) -> str:
    """Return the body of the message about a change of ``section``."""
    counts = f"(+{change.added} / -{change.removed} lines)"
    lines = [f'section "{_shown(section)}"', f"{_done_by(change)} {counts}"]
    if change.text:
        lines += ["──", *map(_shown, change.text.split("\n", MAX_LINES)[:MAX_LINES])]
    return "\n".join(lines)


def wake_id(canvas: str, life: str, rev: int, handle: str) -> str:
    """Return the id of the wake of ``handle`` about the change ``rev``; the same at each try."""
    return f"canvas:{canvas}/{life}/{rev}/{handle}"


def _done_by(change: CanvasChange) -> str:
    if change.displaced:
        return "written outside at the same moment, and not in the file: see aegis_canvas_history"
    by = change.writer if change.writer != OUTSIDE else "another program, outside"
    return f"{change.op} by {by}"


def _shown(line: str) -> str:
    line = _UNSAFE.sub(" ", line.expandtabs(_TAB_STOP))
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"

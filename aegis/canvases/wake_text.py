"""The message that wakes a subscriber of a canvas. Pure.

Its header line (sender and time) is rendered by the inbox. No line holds control characters, line
separators or bidirectional overrides: the text of a section must not rewrite the message around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aegis.protocol.canvases import OUTSIDE, CanvasChange

MAX_LINES = 6
MAX_LINE_CHARS = 200
MAX_SECTIONS = 5
MAX_NAMED = 20
"""The sections of one save whose texts are shown, and those beyond that are named."""
MAX_EXCERPT_CHARS = 4 * MAX_LINES * MAX_LINE_CHARS

_TAB_STOP = 8
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def excerpt(text: str | None) -> str | None:
    """Return the part of a text that is enough for a wake."""
    if text is None:
        return None
    lines = text[:MAX_EXCERPT_CHARS].split("\n", MAX_LINES + 1)[:MAX_LINES]
    return "\n".join(line[: 2 * MAX_LINE_CHARS] for line in lines)


def wake_body(changes: Sequence[CanvasChange], shown: Callable[[CanvasChange], str]) -> str:
    """Return the body of the message about the changes of one write or save.

    ``shown`` returns the name of a change's section. Sections beyond ``MAX_SECTIONS`` are named.
    """
    blocks = [_block(each, shown(each)) for each in changes[:MAX_SECTIONS]]
    more = [f'"{_shown(shown(each))}"' for each in changes[MAX_SECTIONS:]]
    if more:
        named = ", ".join(more[:MAX_NAMED]) + (" …" if len(more) > MAX_NAMED else "")
        blocks.append(f"and {len(more)} more sections: {named}")
    return "\n\n".join(blocks)


def _block(change: CanvasChange, section: str) -> str:
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

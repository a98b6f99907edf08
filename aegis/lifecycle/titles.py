"""Window titles (OSC 0 and 2): whether the program works, is ready, or asks. Pure.

Only the glyph or the words at the beginning of a title count, because the rest is the name of a
task. The classes are those of Claude Code, Codex and Gemini.
"""

from __future__ import annotations

import re
from typing import Literal

import attrs

from aegis.lifecycle.states import MAX_TITLE_CHARS, clean

MAX_TITLE_BYTES = 4096
"""Bytes of a title that are read."""

TitleClass = Literal["working", "ready", "blocked"]

# Claude Code and Codex turn a spinner of braille dots or half circles. Gemini shows the other four.
_CLASSES: tuple[tuple[TitleClass, re.Pattern[str]], ...] = (
    ("working", re.compile("[\u2801-\u28ff\u25d0-\u25d3\u2726]\ufe0f?\\s*")),
    ("ready", re.compile("[\u2733\u25c7]\ufe0f?\\s*")),
    ("blocked", re.compile("\u270b\ufe0f?\\s*|(?:\\[ [!.] \\] )?(?=Action Required)")),
)


@attrs.frozen(kw_only=True)
class TitleChanged:
    """The window has a new title. ``text`` is the rest of it, which does not turn or blink."""

    text: str
    kind: TitleClass | None = None


def read_title(content: bytes) -> TitleChanged:
    """Return the title in an OSC 0 or 2 with this content."""
    text = content[:MAX_TITLE_BYTES].decode(errors="replace").strip()
    for kind, glyph in _CLASSES:
        if found := glyph.match(text):
            return TitleChanged(text=clean(text[found.end() :], MAX_TITLE_CHARS), kind=kind)
    return TitleChanged(text=clean(text, MAX_TITLE_CHARS))

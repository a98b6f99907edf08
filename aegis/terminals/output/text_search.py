"""Looking for a pattern in text that comes in pieces.

Of what was searched in vain the end is kept, so that a match may lie across pieces; a match longer
than that may be missed. Each piece costs as much as itself and what is kept, however long the text.
"""

from __future__ import annotations

import attrs

from aegis.terminals.output.patterns import MAX_TEXT_CHARS, Pattern
from aegis.terminals.output.searching import search

KEPT_CHARS = MAX_TEXT_CHARS // 2
"""Characters that a match may begin before the newest piece."""

MAX_PIECE_CHARS = MAX_TEXT_CHARS - KEPT_CHARS

MAX_MATCH_CHARS = 4_096
"""Of a longer match the beginning is told."""


@attrs.frozen
class Found:
    """``text`` matched, and its last character is number ``end`` of the newest piece."""

    text: str
    end: int


class TextSearch:
    """Searches for the regular expression ``source``, in which ^ and $ are the bounds of a line.

    Raises ``InvalidRequest`` if it is none that can be searched for.
    """

    def __init__(self, source: str) -> None:
        Pattern(source)  # what is wrong with it is told in its own words
        self._pattern = Pattern(f"(?m:{source})")
        self._kept = ""

    async def find(self, piece: str) -> Found | None:
        """The first match that ends in ``piece``, at most ``MAX_PIECE_CHARS`` long.

        Cancelled, it may be called with the same piece again.
        """
        window = self._kept + piece
        span = await search(self._pattern, window)
        if span is None:
            self._kept = _whole_lines(window)
            return None
        begin, end = span
        return Found(window[begin:end][:MAX_MATCH_CHARS], max(0, end - len(self._kept)))

    def forget(self) -> None:
        """What comes next does not follow what came before."""
        self._kept = ""


def _whole_lines(text: str) -> str:
    """The end of ``text``, from the beginning of a line if there is one."""
    if len(text) <= KEPT_CHARS:
        return text
    kept = text[-KEPT_CHARS:]
    line_end = kept.find("\n") + 1
    return kept[line_end:] if line_end < len(kept) else kept

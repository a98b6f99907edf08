"""The switches between main and alternate screen in the output. Pure.

For the hot path: only bytes after an ESC are examined; the search for it runs at the speed of C.
"""

from __future__ import annotations

import re

_SWITCH = re.compile(rb"\x1b(?:\[\?(?:[0-9]*;)*(?:47|1047|1049)(?:;[0-9]*)*([hl])|c)")
_BEGINNING = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,60})?)?\Z")
_LONGEST = 64


class AlternateWatch:
    """The switches of one stream. ``shows``: the alternate screen is shown at its end."""

    def __init__(self) -> None:
        self.shows = False
        self._incomplete = b""

    def feed(self, data: bytes, cursor: int) -> list[tuple[int, bool]]:
        """Return the switches that ``data``, which begins at ``cursor``, completes.

        Each is the offset behind the sequence, and whether the alternate screen is shown from
        there.
        """
        if not self._incomplete and b"\x1b" not in data:
            return []
        data, cursor = self._incomplete + data, cursor - len(self._incomplete)
        switches = []
        for found in _SWITCH.finditer(data):
            on = found[1] == b"h"
            if on is not self.shows:
                self.shows = on
                switches.append((cursor + found.end(), on))
        cut = _BEGINNING.search(data, max(len(data) - _LONGEST, 0))
        self._incomplete = b"" if cut is None else cut.group()
        return switches

"""``Painter``: draws a screenshot with its colours, and the lines above it, from the raw log.

A drawing is made from the newest output and checked: an emulator that is fed with it must show the
screenshot. Otherwise (the screen was drawn longer ago, or at another size) it is drawn as plain
text, without colours and without lines above it.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from aegis.protocol.output_streams import DrawnMark
from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.screen.emulator import Screenshot
from aegis.terminals.screen.feeding import SLICE_BYTES
from aegis.terminals.screen.redraw import Drawing, plain_drawing
from aegis.terminals.screen.replay import (
    MAX_REPLAY_BYTES,
    MainStretches,
    marks_in,
    replayed,
    replayed_from,
    start_of_lines,
)


class Painter:
    """A painter of ``shot``; ``read`` returns the kept bytes of the raw log between two offsets."""

    def __init__(
        self, shot: Screenshot, stretches: MainStretches, read: Callable[[int, int], bytes]
    ) -> None:
        self._shot = shot
        self._main = shot.beneath if shot.alternate else shot.lines
        self._alternate_since = stretches.alternate_since if shot.alternate else None
        self._stretches = stretches
        self._read = read

    async def draw(self, end: int, scrollback: int) -> Drawing:
        """Return the drawing of the screen as of the offset ``end``, behind ``scrollback`` lines.

        Other tasks run meanwhile.
        """
        plain = plain_drawing(self._shot)
        since = self._alternate_since
        if self._shot.alternate and since is None:
            return plain  # the switch is newer than the screenshot
        main = await self._main_text(end if since is None else since, scrollback)
        text, marks = (plain.main, []) if main is None else main
        if since is None:
            return Drawing(main=text, alternate=None, marks=tuple(marks))
        alternate = await self._alternate_text(since, end, text)
        return Drawing(main=text, alternate=alternate or plain.alternate, marks=tuple(marks))

    async def _main_text(self, end: int, scrollback: int) -> tuple[str, list[DrawnMark]] | None:
        parts = [(stop, self._read(start, stop)) for start, stop in self._stretches.before(end)]
        data, marks = b"".join(part for _, part in parts), marks_in(parts)
        # As many lines as the screen has above its last one with text, then those that scrolled.
        height = max((row for row, line in enumerate(self._main) if line), default=0)
        rows = [max(height, self._shot.cursor[0])]
        if self._shot.alternate:
            rows = [height + 1, height]  # most programs are started by a line that ends
        for lines in dict.fromkeys([*(row + scrollback for row in rows), *rows]):
            text, placed = replayed_from(start_of_lines(data, lines), data, marks)
            shown = await self._drawn(text)
            # The cursor of the main screen beneath another one is not known.
            is_placed = self._shot.alternate or shown.cursor == self._shot.cursor
            if shown.lines == self._main and is_placed:
                return text, placed
        return None

    async def _alternate_text(self, since: int, end: int, main: str) -> str | None:
        if end - since > MAX_REPLAY_BYTES:
            return None
        # The program began where the cursor of the main screen was.
        row, col = (await self._drawn(main)).cursor
        text = f"\x1b[{row + 1};{col + 1}H{replayed(self._read(since, end))}"
        shown = await self._drawn(text)
        is_same = (shown.lines, shown.cursor) == (self._shot.lines, self._shot.cursor)
        return text if is_same else None

    async def _drawn(self, text: str) -> Screenshot:
        """Return the screen that ``text`` draws."""
        emulator = new_emulator(self._shot.rows, self._shot.cols)
        data = text.encode()
        for start in range(0, len(data), SLICE_BYTES):
            emulator.feed(data[start : start + SLICE_BYTES])
            await trio.lowlevel.checkpoint()
        return emulator.screen()

"""A screen that draws only the rows that changed, of the widgets that are in front there.

For a changed row, Textual renders all rows of all widgets whose container is touched: the rail, the
bars, and each container behind the terminal, for a change of one of its cells.

``Compositor._get_renders`` is a private name of Textual; a test fails if a version drops it.
"""

from __future__ import annotations

from collections.abc import Iterator

from textual._compositor import Compositor
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

Render = tuple[Region, Region, list[Strip]]
"""The region of a widget, its clip, and the strips of both's intersection."""


class LeanCompositor(Compositor):
    """A compositor that asks widgets for the rows of the region to draw only."""

    def _get_renders(self, crop: Region | None = None) -> Iterator[Render]:
        if crop is None:
            yield from super()._get_renders(crop)
            return
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            if not shown.overlaps(crop):
                continue
            # Whole rows: what is drawn is divided at the edges of widgets, not of the region.
            rows = shown.intersection(Region(shown.x, crop.y, shown.width, crop.height))
            within = rows.translate((-region.x, -region.y))
            yield rows, rows, widget.render_lines(within)
            if rows.contains_region(crop):
                return  # the widgets behind it are hidden there


class LeanScreen(Screen[None]):
    """The screen below all dialogs."""

    def __init__(self) -> None:
        super().__init__(id="_default")
        self._compositor = LeanCompositor()

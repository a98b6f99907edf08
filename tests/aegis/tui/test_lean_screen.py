"""The screen draws changed rows only, and draws them as Textual does."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console
from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region

from aegis.tui.panes.terminal import TerminalPane
from aegis.tui.widgets.lean_screen import LeanCompositor
from aegis.tui.widgets.rail import Rail
from tests.aegis.tui.fake_daemon import until
from tests.aegis.tui.test_app import Stage, plain_world, play, shop

__all__ = ["plain_world"]

REGIONS = [
    {Region(0, 0, 110, 1)},
    {Region(29, 5, 3, 1)},
    {Region(32, 3, 70, 4), Region(2, 20, 11, 2)},
    {Region(31, 28, 79, 2)},
    {Region(0, 0, 110, 30)},
    {Region(70, 20, 40, 8)},
]
"""Regions in the rail, over its edge, in the terminal, in the bars, over a toast, and all."""


def drawn(compositor: LeanCompositor, regions: set[Region]) -> str:
    """The characters that draw these regions, with their sequences."""
    compositor._dirty_regions = {*regions}
    update = compositor.render_partial_update()
    assert isinstance(update, ChopsUpdate)
    return update.render_segments(Console(color_system="truecolor", width=110))


@pytest.mark.parametrize("has_toast", [False, True])
def test_each_region_is_drawn_as_by_textual(
    monkeypatch: pytest.MonkeyPatch, has_toast: bool
) -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("── live ──", "1 failed")
        if has_toast:
            stage.app.show_remark("a remark above the others")
            await stage.shows("a remark above the others")
        await stage.pilot.pause()
        compositor = stage.app.base._compositor
        assert isinstance(compositor, LeanCompositor)
        for regions in REGIONS:
            lean = drawn(compositor, regions)
            with monkeypatch.context() as patch:
                patch.setattr(LeanCompositor, "_get_renders", Compositor._get_renders)
                assert drawn(compositor, regions) == lean

    play(work, shop(), shows_remarks=has_toast)


def test_a_changed_row_of_a_terminal_costs_no_other_row_or_widget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("── live ──")
        await stage.press("ctrl+k")
        await stage.shows("RAW")
        pane = stage.app.active
        assert isinstance(pane, TerminalPane)
        stage.daemon.print("build", "\x1b[4;1Hfirst")
        await stage.shows("first")
        asked: list[tuple[Any, Region]] = []
        for kind in (type(pane.view), Rail):
            monkeypatch.setattr(kind, "render_lines", counted(kind.render_lines, asked))
        # A layout that the mode has asked for may be drawn with the first of these rows.
        for row in range(5, 9):
            asked.clear()
            stage.daemon.print("build", f"\x1b[{row};1Hhere")
            await until(lambda: bool(asked), "it is drawn")
            if is_lean(asked, pane):
                break
        assert is_lean(asked, pane), asked

    play(work, shop())


def is_lean(asked: list[tuple[Any, Region]], pane: TerminalPane) -> bool:
    """Return whether only the row that changed was drawn, and the one that the cursor has left."""
    is_alone = {widget for widget, _ in asked} == {pane.view}
    return is_alone and max(crop.height for _, crop in asked) <= 2


def counted(render: Any, asked: list[tuple[Any, Region]]) -> Any:
    def counting(self: Any, crop: Region) -> Any:
        asked.append((self, crop))
        return render(self, crop)

    return counting

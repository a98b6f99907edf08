"""Emulators of both libraries, and what is looked at of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from aegis.terminals.screen.avt_grid import AvtGrid
from aegis.terminals.screen.emulator import NewGrid, ScreenEmulator
from aegis.terminals.screen.pyte_grid import PyteGrid

NewEmulator: TypeAlias = Callable[..., ScreenEmulator]

GRIDS: dict[str, NewGrid] = {"pyte": PyteGrid, "pyavt": AvtGrid}


@pytest.fixture(params=GRIDS.values(), ids=list(GRIDS))
def new_emulator(request: pytest.FixtureRequest) -> NewEmulator:
    """``new_emulator(rows=5, cols=20)``: an empty screen, by each of the libraries."""

    def make(rows: int = 5, cols: int = 20) -> ScreenEmulator:
        return ScreenEmulator(rows, cols, request.param)

    return make

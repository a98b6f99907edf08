"""The library of the emulator: ``pyavt``; ``pyte`` where that binary cannot be loaded. Pure."""

from __future__ import annotations

from functools import cache

from aegis.terminals.screen.emulator import Emulator, NewGrid, ScreenEmulator


@cache
def new_grid() -> NewGrid:
    """Return the class of grids; its library is imported only here, at the first screen."""
    try:
        import avt  # noqa: F401
    except ImportError:
        from aegis.terminals.screen.pyte_grid import PyteGrid

        return PyteGrid
    from aegis.terminals.screen.avt_grid import AvtGrid

    return AvtGrid


def new_emulator(rows: int, cols: int) -> Emulator:
    """Return an empty screen of that size."""
    return ScreenEmulator(rows, cols, new_grid())

"""The emulator that terminals have: on ``pyavt``, which is imported at the first screen. Pure."""

from __future__ import annotations

from aegis.terminals.screen.emulator import Emulator, ScreenEmulator


def new_emulator(rows: int, cols: int) -> Emulator:
    """Return an empty screen of that size."""
    from aegis.terminals.screen.avt_grid import AvtGrid

    return ScreenEmulator(rows, cols, AvtGrid)

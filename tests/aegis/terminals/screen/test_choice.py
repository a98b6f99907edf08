from __future__ import annotations

import subprocess
import sys

import pytest

from aegis.terminals.screen.avt_grid import AvtGrid
from aegis.terminals.screen.choice import new_emulator, new_grid
from aegis.terminals.screen.pyte_grid import PyteGrid


def test_pyavt_is_used_where_it_is_installed() -> None:
    assert new_grid() is AvtGrid


def test_pyte_is_used_where_pyavt_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "avt", None)
    assert new_grid.__wrapped__() is PyteGrid


def test_an_emulator_has_the_size_that_was_asked_for() -> None:
    screen = new_emulator(7, 9).screen()
    assert (screen.rows, screen.cols, len(screen.lines)) == (7, 9, 7)


def test_no_library_is_loaded_before_the_first_screen() -> None:
    code = (
        "import sys, aegis.terminals.shell.shell\n"
        "assert not {'avt', 'pyte'} & set(sys.modules)\n"
        "from aegis.terminals.screen.choice import new_emulator\n"
        "new_emulator(2, 2)\n"
        "assert {'avt', 'pyte'} & set(sys.modules) == {'avt'}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

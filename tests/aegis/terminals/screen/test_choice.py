from __future__ import annotations

import subprocess
import sys

from aegis.terminals.screen.choice import new_emulator


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

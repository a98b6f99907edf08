"""What tmux shows for the same bytes, in cases where terminals agree and libraries do not."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from tests.aegis.terminals.screen.conftest import NewEmulator
from tests.aegis.terminals.screen.test_emulator import CASES

pytestmark = pytest.mark.real

ROWS, COLS = 5, 20
GUARD_S = 60
NAMES = [
    name
    for name in CASES
    if any(word in name for word in ("a tab", "region", "flag", "full line", "back from it"))
    and "\x1b[2I" not in CASES[name][0]
]
"""Those about CHT are left out: tmux ignores it."""

Shown = tuple[list[str], tuple[int, int]]


@pytest.fixture(scope="module")
def tmux_shows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bytes], Shown]]:
    """``tmux_shows(data)``: the rows and the cursor that a pane has afterwards."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    directory = tmp_path_factory.mktemp("tmux")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}

    def tmux(*words: str) -> str:
        command = ["tmux", "-S", str(directory / "s"), "-f", "/dev/null", *words]
        done = subprocess.run(command, env=environment, check=True, capture_output=True)
        return done.stdout.decode()

    def shows(data: bytes) -> Shown:
        (directory / "data").write_bytes(data)
        done = directory / "done"
        done.unlink(missing_ok=True)
        # The answer to the question for the cursor says that all before it was read.
        script = (
            f"stty raw -echo; cat {directory / 'data'}; printf '\\033[6n'; "
            f"IFS= read -r -d R _; : > {done}; exec sleep 600"
        )
        tmux("respawn-pane", "-k", f"exec bash --norc -c {shlex.quote(script)}")
        deadline = time.monotonic() + GUARD_S
        while not done.exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        rows = [row.rstrip() for row in tmux("capture-pane", "-p").split("\n")[:ROWS]]
        row, column = map(int, tmux("display", "-p", "#{cursor_y} #{cursor_x}").split())
        return rows, (row, min(column, COLS - 1))

    tmux("new-session", "-d", "-x", str(COLS), "-y", str(ROWS), "sleep 600")
    try:
        tmux("set", "-g", "status", "off")
        tmux("resize-window", "-x", str(COLS), "-y", str(ROWS))
        yield shows
    finally:
        tmux("kill-server")


@pytest.mark.parametrize("name", NAMES)
def test_tmux_shows_the_same(
    tmux_shows: Callable[[bytes], Shown], new_emulator: NewEmulator, name: str
) -> None:
    data = CASES[name][0].encode()
    emulator = new_emulator(ROWS, COLS)
    emulator.feed(data)
    screen = emulator.screen()
    assert (list(screen.lines), screen.cursor) == tmux_shows(data)

"""Keys, pastes and the mouse in raw mode of the terminal interface, byte for byte as in tmux."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.tmux import Tmux, interface
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    pytest.mark.skipif(which("tmux") is None, reason="tmux is not installed"),
]

PROGRAM = """
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv[2].encode().decode("unicode_escape").encode())
log = open(sys.argv[1], "ab", buffering=0)
os.write(1, b"reads keys\\r\\n")
while True:
    log.write(os.read(0, 65536))
"""
"""Writes what it reads into a file, as it is; first it prints the modes that it wants."""

KEYS = (
    *("a", "Z", "é", "日", "Space", "Enter", "Tab", "BTab", "BSpace", "C-h"),
    *("C-a", "C-c", "C-d", "C-e", "C-p", "C-q", "C-w", "C-z", "C-\\", "C-]"),
    *("C-Space", "Escape", "Up", "Left", "C-Left", "S-Right", "M-Up", "Home", "End", "PPage"),
    *("IC", "DC", "F1", "F2", "F5", "F12", "M-a", "M-Enter", "M-BSpace", "M-1", "M-[", "M-x"),
)
"""42 keys by tmux's names."""


@pytest.fixture
def window(own_daemon: DaemonProcess, tmp_path: Path) -> Iterator[Tmux]:
    own_daemon.start("--port", "0")
    own_daemon.terminal("keys")
    with interface(own_daemon, tmp_path / "tmux") as opened:
        opened.shows("term:keys")
        opened.press("M-1")
        opened.shows("── live ──")
        opened.press("C-k")
        opened.shows("RAW")
        yield opened


def start(window: Tmux, directory: Path, log: str, modes: str = "") -> Path:
    """Start the program in raw mode; gives its file."""
    script, path = directory / "program.py", directory / log
    script.write_text(PROGRAM)
    window.type(f"{sys.executable} {script} {path} '{modes}'")
    window.press("Enter")
    window.shows("reads keys")
    return path


def pressed(window: Tmux, path: Path, key: str, size: int = 1) -> bytes:
    """Press a key; gives the bytes that the program read, at least ``size``."""
    before = path.stat().st_size
    window.press(key)
    until(lambda: path.stat().st_size >= before + size, f"{key} arrives")
    time.sleep(0.03)  # and nothing else does
    return path.read_bytes()[before:]


@pytest.mark.parametrize("modes", ["", "\\x1b[?1h"], ids=["plain", "application arrows"])
def test_42_keys_arrive_byte_for_byte_as_in_tmux(
    window: Tmux, own_daemon: DaemonProcess, tmp_path: Path, modes: str
) -> None:
    assert len(set(KEYS)) == 42
    direct = Tmux(
        tmp_path / "direct",
        "exec bash --norc",
        environment=own_daemon.environment,
        directory=tmp_path,
    )
    try:
        path = start(direct, tmp_path, "direct.log", modes)
        wanted = {key: pressed(direct, path, key) for key in KEYS}
    finally:
        direct.close()
    path = start(window, tmp_path, "through.log", modes)
    found = {key: pressed(window, path, key, len(wanted[key])) for key in KEYS}
    assert found == wanted


def test_a_paste_of_2000_lines_arrives_whole(window: Tmux, tmp_path: Path) -> None:
    lines = "".join(f"line {number} of the paste\n" for number in range(2000))
    (tmp_path / "lines").write_text(lines)
    window.do("load-buffer", str(tmp_path / "lines"))
    path = start(window, tmp_path, "paste.log", "\\x1b[?2004h")
    window.do("paste-buffer", "-p")
    wanted = b"\x1b[200~" + lines.replace("\n", "\r").encode() + b"\x1b[201~"
    deadline = time.monotonic() + GUARD_S
    while path.stat().st_size < len(wanted):
        assert time.monotonic() < deadline, path.read_bytes()[-200:]
        time.sleep(0.05)
    assert path.read_bytes() == wanted


def test_the_mouse_works_in_a_program_that_asks_for_it(window: Tmux, tmp_path: Path) -> None:
    path = start(window, tmp_path, "mouse.log", "\\x1b[?1002;1006h")
    shown = window.screen().split("\n")
    row = next(number for number, line in enumerate(shown, 1) if "reads keys" in line)
    column = shown[row - 1].index("reads keys") + 1
    line = row - 1  # of the program: the bar of tabs is above it
    for button, letter in ((0, "M"), (0, "m"), (64, "M"), (65, "M")):
        window.type(f"\x1b[<{button};{column + 4};{row}{letter}")
        wanted = f"\x1b[<{button};5;{line}{letter}".encode()
        until(lambda wanted=wanted: path.read_bytes().endswith(wanted), f"{wanted!r} arrives")  # type: ignore[misc]

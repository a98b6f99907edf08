"""Trap 39: a working directory that was removed is not shown as a path, and stops nothing."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import pytest

from tests.e2e.conftest import NewTerminal, needs_zsh
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

needs_fish = pytest.mark.skipif(which("fish") is None, reason="fish is not installed")

on_all_shells = pytest.mark.parametrize(
    "shell", ["bash", pytest.param("zsh", marks=needs_zsh), pytest.param("fish", marks=needs_fish)]
)


@on_all_shells
@pytest.mark.parametrize("again", ["", "; mkdir '{gone}'"])
def test_trap_39_a_removed_directory_is_null_in_the_list_and_in_records(
    new_terminal: NewTerminal, daemon: DaemonProcess, tmp_path: Path, shell: str, again: str
) -> None:
    terminal = new_terminal(shell=shell)
    gone = tmp_path / "gone"
    gone.mkdir()
    report = f"printf '\\033]7;file://{gone}\\033\\\\'"
    terminal.run(f"cd '{gone}'")
    assert terminal.described()["cwd"] == str(gone)
    # A fish at its prompt goes back into a directory that has come again.
    terminal.run(f"rmdir '{gone}'" + ("" if shell == "fish" else again.format(gone=gone)))
    assert terminal.described()["cwd"] is None
    assert terminal.run(report)["cwd"] is None
    terminal.run("true")  # until the prompt a report of a program counts
    assert terminal.described()["cwd"] is None
    assert "(deleted)" not in daemon.cli("term", "list").stdout
    terminal.keys("echo typed\r")
    terminal.run(f"cd '{tmp_path}'")
    assert terminal.read(last_n=2)[0]["cwd"] is None
    assert terminal.described()["cwd"] == str(tmp_path)
    assert terminal.run("true")["cwd"] == str(tmp_path)


def test_trap_39_a_name_that_ends_as_the_kernel_marks_removed_ones_is_a_path(
    new_terminal: NewTerminal, tmp_path: Path
) -> None:
    directory = tmp_path / "kept (deleted)"
    directory.mkdir()
    terminal = new_terminal(cwd=str(directory))
    assert terminal.run("true")["cwd"] == str(directory)
    assert terminal.described()["cwd"] == str(directory)


def test_trap_39_up_starts_elsewhere_when_the_directory_was_removed(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start()
    start, gone = tmp_path / "start", tmp_path / "gone"
    start.mkdir()
    gone.mkdir()
    own_daemon.call("term_spawn", name="t", cwd=str(start))
    terminal = own_daemon.terminal("t")
    terminal.run(f"cd '{gone}'")
    terminal.run(f"rmdir '{gone}'")
    own_daemon.stop()
    own_daemon.start()
    assert own_daemon.terminal("t").run("pwd")["stdout"] == f"{start}\n"
    assert own_daemon.terminal("t").described()["cwd"] == str(start)

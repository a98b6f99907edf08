"""A Ctrl-C discards what a tty has not passed on: also the mark that says how a command ended."""

from __future__ import annotations

import os
import signal
import termios
from contextlib import closing
from pathlib import Path
from shutil import which

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import Gate
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture(params=["bash", "zsh", "fish", "dash"])
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


def stat_of(pid: int) -> tuple[str, int, int, int]:
    """State, parent, process group, and the group in the foreground of its tty."""
    state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return state, int(numbers[0]), int(numbers[1]), int(numbers[4])


def waits_for_keys(pid: int) -> bool:
    """Whether the shell is in the foreground and sleeps, for keys and not for a child."""
    state, _, group, foreground = stat_of(pid)
    waits_for = Path(f"/proc/{pid}/wchan").read_text()
    return state == "S" and group == foreground and "do_wait" not in waits_for


@pytest.mark.parametrize("is_typed", [False, True], ids=["submitted", "typed"])
def test_a_command_whose_end_a_ctrl_c_discards_ends_as_lost_and_the_next_one_has_its_own_record(
    new_terminal: NewTerminal, tmp_path: Path, shell: str, is_typed: bool
) -> None:
    terminal = new_terminal()
    terminal.run("true")
    pid = terminal.described()["pid"]
    os.mkfifo(tmp_path / "open")
    with closing(Gate(tmp_path)) as gate:
        cmd = f"{gate.reach}; cat {tmp_path}/open; echo printed"
        pending = None if is_typed else terminal.start(cmd)
        if is_typed:
            terminal.keys(f"{cmd}\r", from_handle="ann")
        gate.wait_reached()
    # What the tty does for a Ctrl-C at the prompt, before the daemon has read the end. The kernel
    # keeps a page for the daemon, and discards the rest.
    daemon = stat_of(pid)[1]
    os.kill(daemon, signal.SIGSTOP)
    try:
        until(lambda: stat_of(daemon)[0] == "T", "the daemon is stopped")
        (tmp_path / "open").write_text("opened\n" * 1000)
        until(lambda: waits_for_keys(pid), "the shell is at its prompt")
        tty = os.open(f"/proc/{pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
        termios.tcflush(tty, termios.TCOFLUSH)
        os.close(tty)
        if shell != "fish":  # whose prompt reads the key, and gets no signal
            os.kill(pid, signal.SIGINT)
    finally:
        os.kill(daemon, signal.SIGCONT)
    # bash heeds such a Ctrl-C with the key that comes next, and may drop it. dash heeds it at once:
    # a line that is typed before the prompt of an empty one would be typed ahead.
    if shell != "dash":
        terminal.keys("\r", from_handle="bob")
    until(lambda: terminal.described()["state"] == "idle", "the shell is at its prompt")
    terminal.keys("echo typed\r", from_handle="bob")
    assert terminal.run("echo last")["stdout"] == "last\n"
    _, discarded, typed, last = terminal.records()
    if pending is not None:
        assert pending.result() == discarded
    # The mark also says where the text of a typed command is.
    assert discarded["cmd"] in ([cmd, None] if is_typed else [cmd])
    assert discarded["stdout"].startswith("opened\nopened\n")
    assert (discarded["end"], discarded["exit"]) == ("lost", None)
    assert (typed["cmd"], typed["writer"]) == ("echo typed", "agent:bob")
    assert (typed["stdout"], typed["exit"], typed["end"]) == ("typed\n", 0, "exited")
    assert (last["cmd"], last["exit"]) == ("echo last", 0)

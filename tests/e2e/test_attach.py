"""``term attach``: the real command line in front of a real window."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal
from tests.e2e.window import DETACH, Window, window

pytestmark = pytest.mark.real

ALTERNATE, MAIN = b"\x1b[?1049h", b"\x1b[?1049l"

PROMPT = b"$ \x1b]2;"
"""The end of a screen as it is drawn first: the prompt, then the title of the window."""


def prove_it_shows(shown: Window, live: LiveTerminal, word: str) -> None:
    """Have something printed there, and see it here."""
    live.run(f"echo {word[0]}''{word[1:]}")
    shown.wait_for(word.encode())


def test_it_shows_the_screen_and_types_what_is_pressed(terminal: LiveTerminal) -> None:
    terminal.run("echo be''fore")
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(b"before")
        shown.press(b"echo ty''ped\r")
        shown.wait_for(b"typed")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
        assert shown.seen.endswith(f"detached from {terminal.name}\r\n".encode())
        assert shown.modes_now() == shown.modes
    terminal.run("true")  # behind what was typed, whose end may not be seen yet
    [*_, typed, _] = terminal.records()
    assert (typed["cmd"], typed["writer"]) == ("echo ty''ped", "human")


def test_keys_that_came_with_the_detach_keys_are_typed(terminal: LiveTerminal) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"touch pressed\r" + DETACH)
        assert shown.wait_exit() == 0
    terminal.run("true")
    assert "touch pressed" in [each["cmd"] for each in terminal.records()]


def test_other_detach_keys_and_another_handle(terminal: LiveTerminal) -> None:
    words = ("--as", "pm", "term", "attach", "--detach-keys", "ctrl-],q", terminal.name)
    with window(terminal.daemon, *words) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"stty -isig; echo rea''dy; cat -v\r")
        shown.wait_for(b"ready")
        shown.press(DETACH + b"\r")
        shown.wait_for(b"^\\d\r\n^\\d\r\n")
        shown.press(b"\x04")
        shown.press(b"\x1dq")
        assert shown.wait_exit() == 0
    terminal.run("true")  # behind what was typed, whose end may not be seen yet
    [*_, typed, _] = terminal.records()
    assert typed["writer"] == "agent:pm"


def test_who_only_reads_types_nothing_and_changes_no_size(terminal: LiveTerminal) -> None:
    words = ("term", "attach", "--read-only", terminal.name)
    with window(terminal.daemon, *words, cols=100, rows=40) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"echo not''this\r")
        prove_it_shows(shown, terminal, "other")
        shown.resize(90, 30)
        shown.process.send_signal(signal.SIGWINCH)
        prove_it_shows(shown, terminal, "later")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
    assert "not''this" not in str(terminal.records())
    assert (terminal.described()["cols"], terminal.described()["rows"]) == (80, 24)


def test_the_terminal_gets_the_size_of_the_window(terminal: LiveTerminal) -> None:
    words = ("term", "attach", terminal.name)
    with window(terminal.daemon, *words, cols=100, rows=40) as shown:
        shown.wait_for(PROMPT)
        assert terminal.run("stty size")["stdout"] == "40 100\n"
        shown.resize(90, 30)
        # A trap of WINCH would wait for the next command if the size came after the prompt.
        shown.press(b"until stty size | grep '30 90'; do sleep 0.1; done\r")
        shown.wait_for(b"done\r\n")
        shown.wait_for(b"30 90")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
    assert (terminal.described()["cols"], terminal.described()["rows"]) == (90, 30)


def test_without_resize_it_keeps_its_size(terminal: LiveTerminal) -> None:
    words = ("term", "attach", "--no-resize", terminal.name)
    with window(terminal.daemon, *words, cols=100, rows=40) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"stty size\r")
        shown.wait_for(b"24 80")


def test_two_who_are_attached_see_what_each_types(terminal: LiveTerminal) -> None:
    words = ("term", "attach", terminal.name)
    with window(terminal.daemon, *words) as one, window(terminal.daemon, *words) as other:
        one.wait_for(PROMPT)
        other.wait_for(PROMPT)
        one.press(b"echo fr''om one\r")
        other.wait_for(b"from one")
        other.press(b"echo fr''om other\r")
        one.wait_for(b"from other")
        one.press(DETACH)
        assert one.wait_exit() == 0
        other.press(b"echo st''ays\r")
        other.wait_for(b"stays")


@pytest.mark.skipif(which("vim") is None, reason="vim is not installed")
def test_vim_is_drawn_again_and_left_clean(terminal: LiveTerminal) -> None:
    words = ("term", "attach", terminal.name)
    with window(terminal.daemon, *words) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"vim -u NONE -n\r")
        shown.wait_for(ALTERNATE)
        shown.press(b"ihello from vim\x1b")
        shown.wait_for(b"vim")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
        # Its own screen is back, and nothing that asks came through.
        assert shown.seen.rindex(MAIN) > shown.seen.rindex(ALTERNATE)
        assert b"\x1b[c" not in shown.seen
        assert b"\x1b[>c" not in shown.seen
    with window(terminal.daemon, *words, cols=90, rows=30) as again:
        again.wait_for(ALTERNATE)
        again.wait_for(b"hello from vim")
        again.press(b":q!\r")
        again.wait_for(MAIN)
        # What lay below vim was drawn nowhere yet.
        again.wait_for(b"vim -u NONE")
        again.press(b"echo go''on\r")
        again.wait_for(b"goon")


@pytest.mark.skipif(which("less") is None, reason="less is not installed")
def test_less_is_left_running(terminal: LiveTerminal) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"seq 500 | less\r")
        shown.wait_for(b"23")
        shown.press(b"G")
        shown.wait_for(b"500")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
    assert "500" in terminal.daemon.call("term_screen", name=terminal.name)["lines"]


@pytest.mark.skipif(which("top") is None, reason="top is not installed")
def test_top_goes_on_in_the_size_of_the_window(terminal: LiveTerminal) -> None:
    words = ("term", "attach", terminal.name)
    with window(terminal.daemon, *words, cols=100, rows=20) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"top -d 0.2\r")
        shown.wait_for(b"COMMAND")
        shown.wait_for(b"load average")
        shown.press(b"q")
        shown.wait_for(b"133;D")  # else it would read what follows as well
        shown.press(b"echo a''fter\r")
        shown.wait_for(b"after")


def test_a_closed_terminal_ends_it_with_a_sentence(new_terminal: NewTerminal) -> None:
    live = new_terminal()
    with window(live.daemon, "term", "attach", live.name) as shown:
        shown.wait_for(PROMPT)
        live.close()
        assert shown.wait_exit() == 0
        assert shown.seen.endswith(f"the terminal {live.name} was closed\r\n".encode())
        assert shown.modes_now() == shown.modes


def test_an_exit_there_is_no_way_out_and_that_is_said(terminal: LiveTerminal) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"exit\r")
        shown.wait_for(b"[the shell has ended; a new one is starting; Ctrl-\\ d detaches]")
        shown.press(DETACH)
        assert shown.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_ends_it_and_the_window_is_as_before(
    terminal: LiveTerminal, number: signal.Signals
) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        assert shown.modes_now() != shown.modes
        shown.process.send_signal(number)
        assert shown.wait_exit() == 128 + number
        assert shown.modes_now() == shown.modes


def test_it_can_be_stopped_and_goes_on(terminal: LiveTerminal) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(shown.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert shown.modes_now() == shown.modes
        terminal.run("echo mean''while")
        shown.process.send_signal(signal.SIGCONT)
        shown.wait_for(b"meanwhile")
        assert shown.modes_now() != shown.modes
        shown.press(b"echo a''gain\r")
        shown.wait_for(b"again")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
        assert shown.modes_now() == shown.modes


def test_a_window_that_is_closed_ends_it(terminal: LiveTerminal) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.hang_up()
        # The kernel's signal may come before, while or after it ends by itself.
        assert shown.process.wait(GUARD_S) in (1, 128 + signal.SIGHUP, -signal.SIGHUP)


def test_one_that_is_killed_costs_the_daemon_nothing(terminal: LiveTerminal) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.process.kill()
        shown.process.wait()
    assert terminal.run("echo on")["stdout"] == "on\n"
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        prove_it_shows(shown, terminal, "again")


Ends = Callable[[DaemonProcess], object]


@pytest.mark.parametrize(
    "end", [DaemonProcess.kill, DaemonProcess.stop], ids=["kill -9", "stopped"]
)
def test_it_goes_on_with_the_next_daemon(own_daemon: DaemonProcess, end: Ends) -> None:
    own_daemon.start()
    own_daemon.terminal("build")
    with window(own_daemon, "term", "attach", "build") as shown:
        shown.wait_for(PROMPT)
        end(own_daemon)
        shown.wait_for(b"[the daemon is gone; waiting for it to restart; Ctrl-\\ d detaches]")
        shown.press(b"echo not''this\r")
        own_daemon.start()
        shown.wait_for(b"[the daemon is back]")
        shown.press(b"echo thi''s\r")
        shown.wait_for(b"this")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
        assert shown.modes_now() == shown.modes
    assert "not''this" not in str(own_daemon.terminal("build").records())


def test_it_can_be_left_while_the_daemon_is_gone(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    own_daemon.terminal("build")
    with window(own_daemon, "term", "attach", "build") as shown:
        shown.wait_for(PROMPT)
        own_daemon.kill()
        shown.wait_for(b"[the daemon is gone")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
        assert shown.modes_now() == shown.modes


@pytest.mark.long
def test_a_terminal_that_does_not_come_back_ends_it(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    own_daemon.terminal("build")
    with window(own_daemon, "term", "attach", "build") as shown:
        shown.wait_for(PROMPT)
        own_daemon.kill()
        own_daemon.start("--port", "0", "--clean")
        assert shown.wait_exit() == 1
        assert b"aegis-actors: " in shown.seen.splitlines()[-1]
        assert shown.modes_now() == shown.modes


def test_without_such_a_terminal_the_window_is_not_touched(daemon: DaemonProcess) -> None:
    with window(daemon, "term", "attach", "nowhere") as shown:
        assert shown.wait_exit() == 1
        assert b"\x1b" not in shown.seen
        assert b"nowhere" in shown.seen
        assert len(shown.seen.splitlines()) == 1


def test_it_says_that_it_needs_a_window(terminal: LiveTerminal) -> None:
    done = terminal.daemon.cli("term", "attach", terminal.name)
    assert done.returncode == 2
    assert "must be a terminal" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_terminal_does_not_show_itself(terminal: LiveTerminal) -> None:
    record = terminal.run(f"aegis-actors term attach {terminal.name}")
    assert record["exit"] == 2
    assert "attach from another window" in record["stdout"]


def test_a_flood_is_shown_to_its_end(terminal: LiveTerminal, tmp_path: Path) -> None:
    lines = 200_000
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.press(f"seq {lines}; echo do''ne\r".encode())
        flood = shown.wait_for(b"done")
        assert flood.count(b"\r\n") >= lines


def test_a_flood_can_be_left(terminal: LiveTerminal) -> None:
    with window(terminal.daemon, "term", "attach", terminal.name) as shown:
        shown.wait_for(PROMPT)
        shown.press(b"yes\r")
        shown.wait_for(b"y\r\ny\r\n")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
        assert shown.seen.endswith(f"\x1b[999;1H\r\ndetached from {terminal.name}\r\n".encode())
        assert shown.modes_now() == shown.modes
    terminal.keys("\x03")

"""``tree --watch``: in a window, and line by line."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.window import window

pytestmark = pytest.mark.real


@contextmanager
def watched(daemon: DaemonProcess, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*daemon.program, "tree", "--watch", *options],
        env=daemon.environment,
        cwd=daemon.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=GUARD_S)


def line_with(output: IO[str] | None, *words: str) -> str:
    assert output is not None
    for line in output:
        if all(word in line for word in words):
            return line
    raise AssertionError(f"it ended before a line with {words}")


def test_it_is_drawn_in_place_and_ctrl_c_leaves_the_window_clean(daemon: DaemonProcess) -> None:
    with window(daemon, "tree", "--watch", rows=60) as shown:
        shown.wait_for(b"\x1b[?1049h")
        shown.wait_for(b"terminals")
        daemon.call("term_spawn", name="seen")
        shown.wait_for(b"seen")
        shown.press(b"\x03")
        assert shown.wait_exit() == 0
        assert shown.seen.endswith(b"\x1b[?25h\x1b[?1049l")
        assert shown.modes_now() == shown.modes
    daemon.call("term_close", name="seen")


def test_each_change_is_a_line_of_json(daemon: DaemonProcess) -> None:
    with watched(daemon, "--json") as watching:
        assert watching.stdout is not None
        first: dict[str, Any] = json.loads(watching.stdout.readline())
        assert first["snapshot"]["name"] == "root"
        daemon.call("term_spawn", name="lines")
        line = json.loads(line_with(watching.stdout, "terminals/lines", "running"))
        assert line["delta"]["state"] == "running"
        watching.send_signal(signal.SIGINT)
        assert watching.wait(GUARD_S) == 0
    daemon.call("term_close", name="lines")


def test_without_a_window_each_change_is_a_line(daemon: DaemonProcess) -> None:
    with watched(daemon) as watching:
        line_with(watching.stdout, "actor", "kind", "state")
        daemon.call("term_spawn", name="plain")
        line_with(watching.stdout, "terminals/plain", "running")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(GUARD_S) == 0
    daemon.call("term_close", name="plain")


def test_a_reader_that_goes_away_ends_it_without_a_word(daemon: DaemonProcess) -> None:
    with watched(daemon, "--json") as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        watching.stdout.readline()
        watching.stdout.close()
        daemon.call("term_spawn", name="unseen")
        assert watching.wait(GUARD_S) == 1
        assert watching.stderr.read() == ""
        watching.stdout = None
    daemon.call("term_close", name="unseen")


def test_a_reader_that_goes_away_ends_it_though_nothing_happens(daemon: DaemonProcess) -> None:
    with watched(daemon) as process:
        line_with(process.stdout, "gateway")
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(GUARD_S) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""
        process.stdout = None


def test_it_goes_on_with_the_next_daemon(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    with watched(own_daemon) as watching:
        line_with(watching.stdout, "root")
        own_daemon.kill()
        line_with(watching.stdout, "the daemon is gone")
        own_daemon.start()
        line_with(watching.stdout, "the daemon is back")
        line_with(watching.stdout, "actor", "kind", "state")
        own_daemon.stop()
        line_with(watching.stdout, "the daemon is gone")
        own_daemon.start()
        line_with(watching.stdout, "the daemon is back")
        line_with(watching.stdout, "actor", "kind", "state")


def test_without_a_daemon_it_says_so(own_daemon: DaemonProcess) -> None:
    done = own_daemon.cli("tree", "--watch")
    assert done.returncode == 1
    assert "start one with" in done.stderr

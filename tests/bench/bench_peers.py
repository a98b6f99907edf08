"""The same commands on the same machine through what else one would pick to drive a shell.

- pexpect's replwrap: bash with a prompt of its own, output up to that prompt; no exit codes.
- libtmux: keys into a pane of a real tmux, ``tmux wait-for`` for the end, the pane's text back.
- ours: a run over the daemon's Unix socket, with the exit code and a synced record.

Each round runs every command once through each of the three. A ratio is theirs to ours.

python tests/bench/bench_peers.py
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import libtmux
import pexpect.replwrap

from aegis.client.line import LineClient
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

COMMANDS: Mapping[str, tuple[str, str]] = {
    "true": ("true", ""),
    "one line": ("echo hello", "hello"),
    "10,000 lines": ("seq 10000", "9999"),
    "a process": ("/bin/true", ""),
}
"""The command, and what its output must hold."""

ROUNDS = 30
WARM_UP = 3
TIMEOUT_S = 60.0

Run = Callable[[str], str]


@contextmanager
def open_ours(directory: Path) -> Iterator[Run]:
    """A terminal of a daemon."""
    daemon = DaemonProcess(directory)
    daemon.start("--port", "0", "--log-level", "warning")
    try:
        daemon.call("term_spawn", name="bench", shell="/bin/bash")
        with daemon.connect() as client:
            yield lambda cmd: _run_ours(client, cmd)
    finally:
        daemon.stop()


def _run_ours(client: LineClient, cmd: str) -> str:
    record = client.call("term_run", {"name": "bench", "cmd": cmd, "timeout": TIMEOUT_S})
    assert record["exit"] == 0
    output: str = record["stdout"]
    return output


@contextmanager
def open_replwrap() -> Iterator[Run]:
    """A bash under pexpect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it forks with threads about
        bash = pexpect.replwrap.bash()
    try:
        yield lambda cmd: bash.run_command(cmd, timeout=TIMEOUT_S)
    finally:
        bash.child.close(force=True)


@contextmanager
def open_tmux(directory: Path) -> Iterator[Run]:
    """A pane of a tmux server of its own, with a scrollback that holds the longest output."""
    server = libtmux.Server(socket_path=directory / "tmux.sock", config_file="/dev/null")
    session = server.new_session(x=80, y=24, window_command="bash --norc")
    try:
        server.cmd("set-option", "-g", "history-limit", "20000")
        pane = session.new_window(window_shell="bash --norc").active_pane
        assert pane is not None

        def run(cmd: str) -> str:
            pane.clear()
            pane.cmd("clear-history")
            pane.send_keys(f"{cmd}; tmux -S {directory}/tmux.sock wait-for -S done", enter=True)
            server.cmd("wait-for", "done")
            return "\n".join(pane.capture_pane(start="-"))

        yield run
    finally:
        server.kill()


def _timed_ms(run: Run, cmd: str, wanted: str) -> float:
    begin = time.perf_counter()
    output = run(cmd)
    took = time.perf_counter() - begin
    assert wanted in output, f"{cmd!r} gave {output[-200:]!r}"
    return took * 1000


def measure() -> list[Row]:
    """Times of all, and how they compare; takes about half a minute."""
    times: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        own = Path(directory, "daemon")
        own.mkdir()
        with (
            open_ours(own) as ours,
            open_replwrap() as replwrap,
            open_tmux(Path(directory)) as tmux,
        ):
            runs = {"ours": ours, "replwrap": replwrap, "libtmux": tmux}
            for number in range(WARM_UP + ROUNDS):
                for what, (cmd, wanted) in COMMANDS.items():
                    for who, run in runs.items():
                        took = _timed_ms(run, cmd, wanted)
                        if number >= WARM_UP:
                            times.setdefault((what, who), []).append(took)
    return [row for what in COMMANDS for row in _rows(what, times)]


def _rows(what: str, times: Mapping[tuple[str, str], list[float]]) -> list[Row]:
    ours, replwrap, tmux = (
        statistics.median(times[what, who]) for who in ("ours", "replwrap", "libtmux")
    )
    return [
        (f"{what}: pexpect replwrap / ours", replwrap / ours, "ratio, no exit code, no record"),
        (f"{what}: libtmux / ours", tmux / ours, "ratio, goal ≥ 1"),
        ("  ours, ms", ours, "median, with a synced record"),
        ("  pexpect replwrap, ms", replwrap, "median"),
        ("  libtmux, ms", tmux, "median"),
    ]


if __name__ == "__main__":
    assert shutil.which("tmux"), "this bench needs tmux"
    print_rows(measure())

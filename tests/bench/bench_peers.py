"""The same commands on the same machine through other programs that drive a shell.

Each round runs every command once through each peer, so that all of them meet the same load. A
ratio is the peer's time to ours: below 1 the peer is faster. Over MCP the peer is the system that
this project took its vocabulary from, ``aegis-harness`` from PyPI, with one client for both.

python tests/bench/bench_peers.py
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.bench.peers import PEERS, Peer, Run
from tests.bench.peers_mcp import MCP_PEERS, missing_for_mcp
from tests.bench.table import Row, print_rows

COMMANDS: Mapping[str, tuple[str, int, str]] = {
    "true": ("true", 0, ""),
    "false": ("false", 1, ""),
    "one line": ("echo hello", 0, "hello"),
    "10,000 lines": ("seq 10000", 0, "10000"),
    "a process": ("/bin/true", 0, ""),
}
"""The command, its exit code, and what its output must hold."""

ROUNDS = 60
WARM_UP = 5


def _timed_ms(run: Run, command: tuple[str, int, str]) -> float:
    cmd, code, wanted = command
    begin = time.perf_counter()
    result = run(cmd)
    took = time.perf_counter() - begin
    assert result.exit == code, f"{cmd!r} returned {result.exit}"
    assert wanted in result.output, f"{cmd!r} printed {result.output[-200:]!r}"
    return took * 1000


def _medians(peers: Iterable[Peer]) -> dict[tuple[str, str], float]:
    """Milliseconds by command and peer."""
    times: dict[tuple[str, str], list[float]] = {}
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aegis-bench-")))
        runs: dict[str, Run] = {}
        for number, peer in enumerate(peers):
            own = top / str(number)
            own.mkdir()
            runs[peer.name] = stack.enter_context(peer.open(own))
        for number in range(WARM_UP + ROUNDS):
            for what, command in COMMANDS.items():
                # Another peer begins in each round: what one leaves running slows the next.
                first = number % len(runs)
                for name in [*runs][first:] + [*runs][:first]:
                    took = _timed_ms(runs[name], command)
                    if number >= WARM_UP:
                        times.setdefault((what, name), []).append(took)
    return {key: statistics.median(each) for key, each in times.items()}


def _rows(peers: Iterable[Peer]) -> list[Row]:
    """For each command a ratio to ours and a time of every peer; ours is the first one."""
    ours, *others = peers
    medians = _medians([ours, *others])
    rows: list[Row] = []
    for what in COMMANDS:
        base = medians[what, ours.name]
        for peer in others:
            ratio = medians[what, peer.name] / base
            rows.append((f"{what}: {peer.name} / {ours.name}", ratio, f"ratio, {peer.leaves_out}"))
        rows += [
            (f"  {each.name}, ms", medians[what, each.name], "median") for each in (ours, *others)
        ]
    return rows


def measure() -> list[Row]:
    """Times of all peers and their ratios to ours; takes about half a minute."""
    rows = _rows(PEERS)
    reason = missing_for_mcp()
    if reason is None:
        return rows + _rows(MCP_PEERS)
    return [*rows, (f"MCP peer: not measured, {reason}", 0.0, "skipped")]


if __name__ == "__main__":
    assert shutil.which("tmux"), "this bench needs tmux"
    print_rows(measure())

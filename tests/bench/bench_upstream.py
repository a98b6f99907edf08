"""A run and an empty call over MCP, ours beside those of ``aegis-harness``, warm and cold.

Each round makes a block of each kind of call through both, in shuffled order, and has a ratio for
each kind: below 1 ours is faster. Cold means a pause before each call, as an agent calls. Ours
answers a run after its record is synced; the peer syncs nothing.

python -m tests.bench.bench_upstream
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench.peers_mcp import (
    McpRun,
    missing_for_mcp,
    open_harness_over_mcp,
    open_ours_over_mcp,
)
from tests.bench.table import Row, print_rows

ROUNDS = 15
BLOCK = 12
PAUSE_S = 0.03
SEED = 20261128


def _run(peer: McpRun) -> None:
    assert peer("true").exit == 0


KINDS: Mapping[str, tuple[Callable[[McpRun], None], float, str]] = {
    "run('true'), warm": (_run, 0, "goal ≤ 0.5"),
    "run('true'), cold": (_run, PAUSE_S, "goal ≤ 0.7"),
    "ping, warm": (McpRun.ping, 0, "goal ≤ 0.3"),
    "ping, cold": (McpRun.ping, PAUSE_S, ""),
}
"""The call, the seconds of pause before it, and the goal of the ratio."""


def _block_ms(call: Callable[[McpRun], None], pause_s: float, peer: McpRun) -> float:
    """Return the median of a block of calls; the first is not measured."""
    times = []
    peer.reconnect()
    for _ in range(BLOCK + 1):
        time.sleep(pause_s)
        begin = time.perf_counter()
        call(peer)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:]) * 1000


def measure() -> list[Row]:
    """A ratio and two times for each kind; takes about a minute."""
    reason = missing_for_mcp()
    if reason is not None:
        return [(f"upstream over MCP: not measured, {reason}", 0.0, "skipped")]
    chance, found = random.Random(SEED), dict[str, list[tuple[float, float]]]()
    with (
        tempfile.TemporaryDirectory(prefix="aegis-bench-") as ours_in,
        tempfile.TemporaryDirectory(prefix="aegis-bench-") as theirs_in,
        open_ours_over_mcp(Path(ours_in)) as ours,
        open_harness_over_mcp(Path(theirs_in)) as theirs,
    ):
        for _ in range(ROUNDS + 1):
            for kind in chance.sample(list(KINDS), len(KINDS)):
                call, pause_s, _ = KINDS[kind]
                peers = [ours, theirs]
                chance.shuffle(peers)
                took = {id(each): _block_ms(call, pause_s, each) for each in peers}
                found.setdefault(kind, []).append((took[id(ours)], took[id(theirs)]))
    rows: list[Row] = []
    for kind, (_, _, goal) in KINDS.items():
        pairs = found[kind][1:]  # the first round is a warm-up
        ratio = statistics.median([mine / other for mine, other in pairs])
        mine_ms, other_ms = (statistics.median(each) for each in zip(*pairs, strict=True))
        rows += [
            (f"MCP, {kind}: ours / aegis-harness", ratio, f"ratio, {goal}".rstrip(", ")),
            ("  ours, ms", mine_ms, "median"),
            ("  aegis-harness, ms", other_ms, "median"),
        ]
    return rows


if __name__ == "__main__":
    print_rows(measure())

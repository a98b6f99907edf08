"""Workers killed with -9 under load: their terminals come back, others do not even notice.

``AEGIS_CUTS`` and ``AEGIS_CUTS_SEED`` say how often and how drawn, as for two hosts.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checking.checker import violations
from tests.chaos.real.table import figures
from tests.crash.test_kills import summary
from tests.e2e.node_load import PM, REVIEWER, NodeLoad, Place
from tests.e2e.nodes import Placing

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

KILLS = int(os.environ.get("AEGIS_CUTS", "2"))
SEED = int(os.environ.get("AEGIS_CUTS_SEED", "1"))

WORKERS = ("w1", "w2")

MOST_LOSSES, WITHIN_S = 5, 65.0
"""A terminal that loses its worker more often than that within a minute has failed, on purpose."""


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    return tmp_path / "witness"


@pytest.fixture
def placing(tmp_path: Path, witness: Path) -> Iterator[Placing]:
    """A daemon with two workers."""
    daemon = Placing(tmp_path)
    daemon.variables["WITNESS"] = str(witness)
    try:
        daemon.start("--port", "0", "--workers", str(len(WORKERS)))
        yield daemon
    finally:
        daemon.clean_up()


class Killer:
    """Kills workers of a daemon under load."""

    def __init__(self, load: NodeLoad, daemon: Placing, chance: random.Random) -> None:
        self._load, self._daemon, self._chance = load, daemon, chance
        self._losses: dict[str, list[float]] = {}
        self._kills = 0
        self.came_back = 0

    def kill(self) -> None:
        """One of them, chosen by chance; look at the terminals of the other one."""
        self._kills += 1
        worker, other = self._chance.sample(WORKERS, 2)
        untouched = f"still{self._kills}"
        self._load.spawn(untouched, self._daemon, other)
        self._load.run(untouched)
        mine = self._load.terminals  # others come and go
        there = [info["name"] for info in self._infos() if info["node"] == worker]
        victims = [name for name in there if name in mine]
        self._let_pass(victims)
        before = self._info(untouched)
        with self._load.trouble(victims, is_crash=True):
            self._daemon.kill_worker(worker)
            self._daemon.wait_back(*victims)
        self._daemon.wait_worker(worker)
        self._load.run(untouched)
        after = self._info(untouched)
        assert [before[of] for of in ("pid", "node", "restarts", "started_at")] == [
            after[of] for of in ("pid", "node", "restarts", "started_at")
        ]
        self._check_back(victims)

    def _let_pass(self, victims: list[str]) -> None:
        """Nobody loses its worker too often."""
        due = [
            losses[-MOST_LOSSES] + WITHIN_S
            for losses in map(self._losses.get, victims)
            if losses is not None and len(losses) >= MOST_LOSSES
        ]
        time.sleep(max(0.0, max(due, default=0.0) - time.monotonic()))
        for name in victims:
            self._losses.setdefault(name, []).append(time.monotonic())

    def _check_back(self, victims: list[str]) -> None:
        for info in self._infos():
            if info["name"] in victims:
                self.came_back += 1
                assert info["node"] in WORKERS
                assert {PM, REVIEWER} <= set(info["subscribers"])

    def _infos(self) -> list[dict[str, Any]]:
        infos: list[dict[str, Any]] = self._daemon.call("term_list")["result"]
        return infos

    def _info(self, name: str) -> dict[str, Any]:
        return next(info for info in self._infos() if info["name"] == name)


@pytest.mark.long
def test_all_promises_hold_however_often_workers_are_killed(
    placing: Placing, witness: Path
) -> None:
    chance = random.Random(SEED)
    place = Place(process=placing, shared=("t0", "t1"), typed=("t2",))
    load = NodeLoad(placing, [place], chance, witness)
    load.prepare()
    killer = Killer(load, placing, chance)
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.3, 2.0))
        killer.kill()
    evidence = load.finish()
    found = violations(evidence)
    came_back = killer.came_back
    print({**figures(evidence, [], found), "killed": KILLS, "came back": came_back})  # noqa: T201
    assert not found, summary(found)

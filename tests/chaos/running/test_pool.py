"""Tests of the pool: each seed is played once, even if a process ends or hangs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import trio

from tests.chaos.running.figures import BROKE_OFF, Played
from tests.chaos.running.pool import TWICE_EVERY, Pool

GUARD_S = 60

ANSWERS = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    seed = request["seed"]
    if seed % 10 == 7:
        os._exit(3)
    if seed % 10 == 8:
        time.sleep(3600)
    print(json.dumps({"seed": seed, "operations": os.getpid(), "twice": request["twice"],
                      "violations": [], "records": 0, "wakes": 0, "lives": 0, "hits": {}}))
    sys.stdout.flush()
"""
"""A worker in which one of ten seeds ends the process, and one hangs."""


async def play(seeds: Iterator[int], jobs: int, guard_s: float = GUARD_S) -> list[Played]:
    found: list[Played] = []
    command = (sys.executable, "-c", ANSWERS)
    with trio.fail_after(GUARD_S):
        await Pool(seeds, jobs, found.append, command=command, guard_s=guard_s).run()
    return found


@pytest.mark.parametrize("jobs", [1, 3])
async def test_each_seed_is_played_once(jobs: int) -> None:
    found = await play(iter(range(7)), jobs)
    assert sorted(each.seed for each in found) == list(range(7))
    assert not any(each.violations for each in found)
    assert len({each.operations for each in found}) <= jobs


async def test_one_of_many_is_played_twice() -> None:
    seeds = [seed for seed in range(4 * TWICE_EVERY) if seed % 10 < 7][: 2 * TWICE_EVERY]
    found = await play(iter(seeds), 1)
    assert [each.seed for each in found if each.twice] == [seeds[0], seeds[TWICE_EVERY]]


async def test_a_process_that_ends_is_a_violation_of_its_seed_and_replaced() -> None:
    found = await play(iter([5, 7, 9]), 1)
    [broken] = [each for each in found if each.violations]
    assert (broken.seed, broken.violations[0].rule) == (7, BROKE_OFF)
    assert "ended with 3" in broken.violations[0].what
    assert len({each.operations for each in found if not each.violations}) == 2


@pytest.mark.long
async def test_a_process_that_hangs_is_ended_a_violation_of_its_seed_and_replaced() -> None:
    found = await play(iter([8, 9]), 1, guard_s=3)
    assert [(each.seed, len(each.violations)) for each in found] == [(8, 1), (9, 0)]
    assert "was not over after 3 s" in found[0].violations[0].what


async def test_a_cancelled_pool_leaves_no_process() -> None:
    found: list[Played] = []
    command = (sys.executable, "-c", ANSWERS)
    with trio.fail_after(GUARD_S):
        async with trio.open_nursery() as nursery:

            def on_played(played: Played) -> None:
                found.append(played)
                nursery.cancel_scope.cancel()

            await Pool(iter([1, 2, 3]), 1, on_played, command=command).run()
    assert not await trio.Path(f"/proc/{found[0].operations}").exists()

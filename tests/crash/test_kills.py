"""The daemon is killed with -9, over and over: what was promised is there, once, and nothing else.

Each test takes one root through many lives, so that what one kill leaves is what the next one
meets. ``just crash`` runs it with the full numbers.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.crash.campaign import AtPoint, Campaign, Death, UnderLoad, WhileStarting
from tests.crash.checker import Violation, violations

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

POINTS = {
    "between note and typing": "command.type.before",
    "after the start mark": "mark.start.after",
    "after the end mark": "mark.end.after",
    "before the record is written": "ledger.append.before[ledger.jsonl]",
    "before the sync of the ledger": "ledger.sync.before[ledger.jsonl]",
    "after the sync of the ledger": "ledger.sync.after[ledger.jsonl]",
    "before the reply": "reply.send.before",
    "before the inbox append": "inbox.append.before",
    "after the inbox append": "inbox.append.after",
    "before the inbox confirms": "inbox.confirm.before",
    "before a note": "note.write.before",
    "after a note": "note.write.after",
}

PASSES = 30
"""A kill comes at the latest at this pass: the load makes so many in a moment."""

EXAMPLES = 4

PARTS = 4
"""The random kills are spread over so many tests, and these over the cores."""

LOAD_S, START_S = 1.5, 0.8
STARTING_RATE = 0.2


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_nothing_is_lost_when_the_daemon_is_killed(
    campaign: Campaign, chance: random.Random, kills: int, point: str
) -> None:
    campaign.prepare()
    for _ in range(kills):
        campaign.live(AtPoint(point, chance.randint(1, PASSES)))
    check(campaign)


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_lost_when_the_daemon_is_killed_at_random(
    campaign: Campaign, chance: random.Random, random_kills: int, part: int
) -> None:
    campaign.prepare()
    for _ in range(part, random_kills, PARTS):
        campaign.live(random_death(chance))
    check(campaign)


def random_death(chance: random.Random) -> Death:
    if chance.random() < STARTING_RATE:
        return WhileStarting(chance.uniform(0, START_S))
    return UnderLoad(chance.uniform(0, LOAD_S))


def check(campaign: Campaign) -> None:
    found = violations(campaign.finish())
    assert not found, told(found)


def told(found: list[Violation]) -> str:
    """How often each rule was broken, and the first few times of each."""
    lines = []
    for rule, times in Counter(each.rule for each in found).items():
        examples = [each.what for each in found if each.rule == rule][:EXAMPLES]
        lines += [f"{rule}, {times} times:", *(f"    {example}" for example in examples)]
    return "\n".join(lines)

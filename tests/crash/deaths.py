"""Where, and when, a daemon is killed. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import attrs

POINTS = {
    "between note and typing": "command.type.before",
    "after the start mark": "mark.start.after",
    "after the end mark": "mark.end.after",
    "before the record is written": "ledger.append.before[ledger.jsonl]",
    "after the record was written": "ledger.append.after[ledger.jsonl]",
    "before the sync of the ledger": "ledger.sync.before[ledger.jsonl]",
    "after the sync of the ledger": "ledger.sync.after[ledger.jsonl]",
    "before the reply": "reply.send.before",
    "before the inbox append": "inbox.append.before",
    "after the inbox append": "inbox.append.after",
    "before the inbox confirms": "inbox.confirm.before",
    "before a note is written": "note.write.before",
    "after a note was written": "note.write.after",
    "before a shell starts": "shell.start.before",
    "after a shell started": "shell.start.after",
}
"""The places by the fault points there."""

FEW, MANY = 3, 30
"""A kill comes at the latest at this pass of its point. A load makes many in a moment; the first
few may come while the daemon starts and mends what the last kill left, as a shell each does."""

LOAD_S = 1.5
START_S = 0.8
STARTING_RATE = 0.2

T = TypeVar("T")


@attrs.frozen
class AtPoint:
    """The daemon kills itself at its ``number``-th pass of the fault point at ``place``."""

    place: str
    number: int

    @property
    def faults(self) -> str:
        """What arms it, as AEGIS_FAULTS has it."""
        return f"{POINTS[self.place]}@{self.number}=kill"


@attrs.frozen
class UnderLoad:
    """It is killed so many seconds after the load began."""

    seconds: float
    place = "at random, under load"


@attrs.frozen
class WhileStarting:
    """It is killed so many seconds after its process began, as a rule before it was ready."""

    seconds: float
    place = "at random, while it starts"


Death = AtPoint | UnderLoad | WhileStarting


def random_death(chance: random.Random) -> Death:
    """Some moment under load, or now and then while it starts and mends what the last one left."""
    if chance.random() < STARTING_RATE:
        return WhileStarting(chance.uniform(0, START_S))
    return UnderLoad(chance.uniform(0, LOAD_S))


def deaths(kills: int, random_kills: int, chance: random.Random) -> list[Death]:
    """So many kills at each fault point, and so many at random, in an order that never changes."""
    at_points = [AtPoint(place, _pass(place, chance)) for _ in range(kills) for place in POINTS]
    return [*at_points, *(random_death(chance) for _ in range(random_kills))]


def _pass(place: str, chance: random.Random) -> int:
    is_of_start = POINTS[place].startswith("shell.start")
    return chance.randint(1, FEW if is_of_start else chance.choice((FEW, MANY)))


@attrs.frozen
class Part:
    """One of several tests that share the kills."""

    index: int
    count: int

    def of(self, everything: Sequence[T]) -> list[T]:
        """What falls to this one."""
        return list(everything[self.index :: self.count])

    def __str__(self) -> str:
        return f"{self.index + 1} of {self.count}"

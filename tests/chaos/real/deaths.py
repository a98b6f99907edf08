"""The places and moments at which a daemon is killed, and its calls that fail."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

LOAD_S = 1.5
START_S = 0.8
STARTING_RATE = 0.2
RANDOM_OF_ROUND = 20

CRASHED = "actor.receive.before[LedgerWriter]"
"""The crash that nobody notices, so that a supervisor starts an actor again."""

POINTS: Mapping[str, int] = {
    "mailbox.deliver.before": 500,
    "mailbox.deliver.after": 500,
    "actor.setup.before": 20,
    "actor.setup.after": 20,
    "actor.receive.before": 500,
    "actor.receive.after": 500,
    "actor.receive.before[Terminal]": 100,
    "actor.receive.after[Terminal]": 100,
    "actor.receive.before[Shell]": 100,
    "actor.receive.after[Shell]": 100,
    "actor.receive.before[LedgerWriter]": 30,
    "actor.receive.after[LedgerWriter]": 30,
    "actor.receive.before[Inbox]": 60,
    "actor.receive.after[Inbox]": 60,
    "actor.teardown.before": 3,
    "actor.teardown.after": 3,
    "supervisor.start.before": 25,
    "supervisor.start.after": 25,
    "supervisor.stop.before": 3,
    "supervisor.stop.after": 3,
    "supervisor.restart.before": 1,
    "supervisor.restart.after": 1,
    "ledger.append.before[ledger.jsonl]": 30,
    "ledger.append.after[ledger.jsonl]": 30,
    "ledger.sync.before[ledger.jsonl]": 30,
    "ledger.sync.after[ledger.jsonl]": 30,
    "note.write.before": 60,
    "note.write.after": 60,
    "command.type.before": 30,
    "mark.start.after": 30,
    "mark.end.after": 30,
    "reply.send.before": 30,
    "workspace.write.before": 2,
    "workspace.write.after": 2,
    "purge.rename.after": 1,
    "shell.start.before": 5,
    "shell.start.after": 5,
    "shell.end.before": 3,
    "shell.end.after": 3,
    "inbox.append.before": 50,
    "inbox.append.after": 50,
    "inbox.confirm.before": 50,
    "gateway.accept.before": 6,
}
"""Every fault point of a daemon, and up to which pass of it a kill may come.

A load makes that many within a second or two; the first few may come while the daemon starts and
mends what the last kill left. Early passes are as likely as late ones: see ``_pass``.
"""

CALLS: Mapping[str, int] = {
    "write of a ledger": 30,
    "write of a raw log": 20,
    "write of a whole file": 3,
    "pwrite64 of a note": 30,
    "fdatasync": 30,
    "fsync": 8,
    "rename": 8,
    "ftruncate": 1,
    "unlink": 6,
    "mkdir": 4,
}
"""Every call that changes the files of a daemon, likewise. Passes are those of one thread."""

FAILING = (
    ("fdatasync", "EIO"),
    ("fdatasync", "ENOSPC"),
    ("fsync", "EIO"),
    ("write of a ledger", "EIO"),
    ("write of a ledger", "ENOSPC"),
    ("write of a raw log", "ENOSPC"),
    ("write of a whole file", "ENOSPC"),
    ("pwrite64 of a note", "EIO"),
    ("pwrite64 of a note", "ENOSPC"),
    ("rename", "EIO"),
    ("mkdir", "ENOSPC"),
    ("unlink", "EIO"),
)
"""Which calls a disk refuses, and how."""

T = TypeVar("T")


@attrs.frozen
class AtPoint:
    """The daemon kills itself at its ``number``-th pass of the fault point ``point``."""

    point: str
    number: int

    @property
    def place(self) -> str:
        """Where, for people."""
        return self.point

    @property
    def faults(self) -> str:
        """What arms it, as AEGIS_FAULT has it."""
        kill = f"{self.point}@{self.number}=kill"
        return f"{CRASHED}@3=crash,{kill}" if "restart" in self.point else kill


@attrs.frozen
class AtCall:
    """It dies at its ``number``-th call of this kind: instead of it, or right after it."""

    call: str
    number: int
    after: bool

    @property
    def place(self) -> str:
        """Where, for people."""
        return f"{'after' if self.after else 'before'} {self.call}"


@attrs.frozen
class Failing:
    """Each ``every``-th call of this kind fails from ``first`` on; then it is killed under load."""

    call: str
    error: str
    first: int
    every: int
    seconds: float

    @property
    def place(self) -> str:
        """Where, for people."""
        return f"under load, {self.error} of {self.call}"


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


@attrs.frozen
class WhileStopping:
    """It is told to stop under load, and killed so many seconds after that, or has stopped."""

    load_s: float
    seconds: float
    place = "at random, while it stops"


Death = AtPoint | AtCall | Failing | UnderLoad | WhileStarting | WhileStopping


@attrs.frozen(kw_only=True)
class Numbers:
    """How many deaths of which kind. ``at_calls`` is 0 where nothing may trace a process.

    ``at_points`` and ``at_calls``: for each point, and for each call before and after it; a call
    fails as often in each way. ``at_random``: in all.
    """

    at_points: int
    at_random: int
    at_calls: int

    @property
    def total(self) -> int:
        """How many these are."""
        calls = 2 * len(CALLS) + len(FAILING)
        return len(POINTS) * self.at_points + self.at_random + calls * self.at_calls


def deaths(numbers: Numbers, chance: random.Random) -> list[Death]:
    """So many deaths, in an order that never changes."""
    return [
        *(AtPoint(name, _pass(POINTS[name], chance)) for name in _times(numbers.at_points, POINTS)),
        *(random_death(chance) for _ in range(numbers.at_random)),
        *(at_call(name, chance, after=False) for name in _times(numbers.at_calls, CALLS)),
        *(at_call(name, chance, after=True) for name in _times(numbers.at_calls, CALLS)),
        *(failing(*which, chance) for which in _times(numbers.at_calls, FAILING)),
    ]


def endless_deaths(chance: random.Random, *, calls: bool) -> Iterator[Death]:
    """Rounds without end: each has every death once, in an order of its own.

    Those at calls only where ``calls`` may be traced.
    """
    numbers = Numbers(at_points=1, at_random=RANDOM_OF_ROUND, at_calls=int(calls))
    while True:
        yield from chance.sample(a_round := deaths(numbers, chance), len(a_round))


def random_death(chance: random.Random) -> Death:
    """Some moment under load, or now and then while it starts, mends what was left, or stops."""
    kind = chance.random()
    if kind < STARTING_RATE:
        return WhileStarting(chance.uniform(0, START_S))
    if kind < 2 * STARTING_RATE:
        return WhileStopping(chance.uniform(0, LOAD_S), chance.uniform(0, START_S / 2))
    return UnderLoad(chance.uniform(0, LOAD_S))


def at_call(name: str, chance: random.Random, *, after: bool) -> AtCall:
    """A death at some call of this kind."""
    return AtCall(name, _pass(CALLS[name], chance), after)


def failing(call: str, error: str, chance: random.Random) -> Failing:
    """A disk that refuses some calls of this kind."""
    first = _pass(CALLS[call], chance)
    return Failing(call, error, first, chance.randint(2, 9), chance.uniform(0.2, LOAD_S))


def _times(count: int, names: Sequence[T] | Mapping[T, object]) -> Iterator[T]:
    return (name for _ in range(count) for name in names)


def _pass(most: int, chance: random.Random) -> int:
    """A pass up to ``most``, each order of magnitude as likely as the others."""
    return max(1, round(math.exp(chance.uniform(0, math.log(most + 0.49)))))


@attrs.frozen
class Part:
    """One of several that share the deaths."""

    index: int
    count: int

    def of(self, everything: Sequence[T]) -> list[T]:
        """What falls to this one."""
        return list(everything[self.index :: self.count])

    def __str__(self) -> str:
        return f"{self.index + 1} of {self.count}"

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
"""The crash of an unused actor, so that a supervisor starts one again."""

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
"""Every fault point of a daemon, with the highest pass for a kill.

A load makes that many within a second or two; the first few may come while the daemon starts and
repairs the files after the last kill. Early passes are as likely as late ones: see ``_pass``.
"""

RAW_LOG = "write of a raw log"

CALLS: Mapping[str, int] = {
    "write of a ledger": 30,
    RAW_LOG: 20,
    "write of a whole file": 3,
    "pwrite64 of a note": 30,
    "fdatasync": 30,
    "fsync": 8,
    "rename": 8,
    "ftruncate": 1,
    "unlink": 6,
    "mkdir": 4,
}
"""Every call that changes the files of a daemon, with the highest pass of one thread for a kill."""

FAILING = (
    ("fdatasync", "EIO"),
    ("fdatasync", "ENOSPC"),
    ("fsync", "EIO"),
    ("write of a ledger", "EIO"),
    ("write of a ledger", "ENOSPC"),
    (RAW_LOG, "ENOSPC"),
    ("write of a whole file", "ENOSPC"),
    ("pwrite64 of a note", "EIO"),
    ("pwrite64 of a note", "ENOSPC"),
    ("rename", "EIO"),
    ("mkdir", "ENOSPC"),
    ("unlink", "EIO"),
)
"""The calls that a failing disk refuses, with the errors."""

T = TypeVar("T")


@attrs.frozen
class AtPoint:
    """A kill by the daemon itself at its ``number``-th pass of the fault point ``point``."""

    point: str
    number: int

    @property
    def place(self) -> str:
        """The place, for reports."""
        return self.point

    @property
    def faults(self) -> str:
        """The value of AEGIS_FAULT that arms it."""
        kill = f"{self.point}@{self.number}=kill"
        return f"{CRASHED}@3=crash,{kill}" if "restart" in self.point else kill


@attrs.frozen
class AtCall:
    """A kill at its ``number``-th call of this kind: before it, or right after it."""

    call: str
    number: int
    after: bool

    @property
    def place(self) -> str:
        """The place, for reports."""
        return f"{'after' if self.after else 'before'} {self.call}"


@attrs.frozen
class Failing:
    """Each ``every``-th call of this kind fails from ``first`` on; then a kill under load."""

    call: str
    error: str
    first: int
    every: int
    seconds: float

    @property
    def place(self) -> str:
        """The place, for reports."""
        return f"under load, {self.error} of {self.call}"


@attrs.frozen
class UnderLoad:
    """A kill so many seconds after the load began."""

    seconds: float
    place = "at random, under load"


@attrs.frozen
class WhileStarting:
    """A kill so many seconds after its process began, usually before it is ready."""

    seconds: float
    place = "at random, while it starts"


@attrs.frozen
class WhileStopping:
    """A stop under load, and a kill so many seconds after that, unless it has stopped before."""

    load_s: float
    seconds: float
    place = "at random, while it stops"


Death = AtPoint | AtCall | Failing | UnderLoad | WhileStarting | WhileStopping


@attrs.frozen(kw_only=True)
class Numbers:
    """The number of deaths of each kind. ``at_calls`` is 0 where no process may be traced.

    ``at_points`` and ``at_calls``: for each point, and for each call before and after it; a call
    fails as often in each way. ``at_random``: in all.
    """

    at_points: int
    at_random: int
    at_calls: int

    @property
    def total(self) -> int:
        """Return the number of all deaths."""
        calls = 2 * len(CALLS) + len(FAILING)
        return len(POINTS) * self.at_points + self.at_random + calls * self.at_calls


def deaths(numbers: Numbers, chance: random.Random) -> list[Death]:
    """Return these deaths, in a fixed order."""
    return [
        *(AtPoint(name, _pass(POINTS[name], chance)) for name in _times(numbers.at_points, POINTS)),
        *(random_death(chance) for _ in range(numbers.at_random)),
        *(at_call(name, chance, after=False) for name in _times(numbers.at_calls, CALLS)),
        *(at_call(name, chance, after=True) for name in _times(numbers.at_calls, CALLS)),
        *(failing(*which, chance) for which in _times(numbers.at_calls, FAILING)),
    ]


def endless_deaths(chance: random.Random, *, calls: bool) -> Iterator[Death]:
    """Yield rounds without end: each has every death once, in a random order.

    Deaths at calls are included only where ``calls`` may be traced.
    """
    numbers = Numbers(at_points=1, at_random=RANDOM_OF_ROUND, at_calls=int(calls))
    while True:
        yield from chance.sample(a_round := deaths(numbers, chance), len(a_round))


def random_death(chance: random.Random) -> Death:
    """Return a death at a random moment, usually under load, else at the start or the stop."""
    kind = chance.random()
    if kind < STARTING_RATE:
        return WhileStarting(chance.uniform(0, START_S))
    if kind < 2 * STARTING_RATE:
        return WhileStopping(chance.uniform(0, LOAD_S), chance.uniform(0, START_S / 2))
    return UnderLoad(chance.uniform(0, LOAD_S))


def at_call(name: str, chance: random.Random, *, after: bool) -> AtCall:
    """Return a death at a random call of this kind."""
    return AtCall(name, _pass(CALLS[name], chance), after)


def failing(call: str, error: str, chance: random.Random) -> Failing:
    """Return a disk that refuses some calls of this kind."""
    first = _pass(CALLS[call], chance)
    return Failing(call, error, first, chance.randint(2, 9), chance.uniform(0.2, LOAD_S))


def _times(count: int, names: Sequence[T] | Mapping[T, object]) -> Iterator[T]:
    return (name for _ in range(count) for name in names)


def _pass(most: int, chance: random.Random) -> int:
    """Return a pass up to ``most``, each order of magnitude as likely as the others."""
    return max(1, round(math.exp(chance.uniform(0, math.log(most + 0.49)))))


@attrs.frozen
class Part:
    """One of several parts that share the deaths."""

    index: int
    count: int

    def of(self, everything: Sequence[T]) -> list[T]:
        """Return the deaths of this part."""
        return list(everything[self.index :: self.count])

    def __str__(self) -> str:
        return f"{self.index + 1} of {self.count}"

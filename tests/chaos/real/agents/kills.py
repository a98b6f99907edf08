"""The kills of agents, of their guards and of daemons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

import attrs

from aegis.agents.faults import AGENTS
from aegis.requests.faults import REQUESTS

POINTS = (
    *(point.name for table in (AGENTS, REQUESTS) for point in table),
    *(f"ledger.append.{when}[requests.jsonl]" for when in ("before", "after")),
)
"""Every fault point at which a daemon with agents is killed."""

MOST_PASSES = 6
"""The highest pass of a fault point for a kill."""

RANDOM_OF_ROUND = 12
"""Daemons of a round that are killed at any moment."""

MOST_KILLS = 5
"""The most kills of agents while one daemon runs."""

PAUSE_S = 0.5
"""The longest time, in seconds, before each kill."""

Victim = Literal["agent", "guard", "agent and guard"]
With = Literal["", " and all guards", " and all guards and agents"]


@attrs.frozen
class AgentKill:
    """A kill with SIGKILL of one agent's process, of its guard, or of both, after ``after_s``."""

    victim: Victim
    after_s: float


@attrs.frozen(kw_only=True)
class DaemonKill:
    """The death of a daemon: at the ``number``-th pass of ``point``, or after ``after_s`` seconds.

    ``also`` is killed in the same moment.
    """

    point: str = ""
    number: int = 0
    after_s: float = 0.0
    also: With = ""

    @property
    def place(self) -> str:
        """The place, for reports."""
        return self.point or f"daemon{self.also}, at random"

    @property
    def faults(self) -> str:
        """The value of AEGIS_FAULT that arms it."""
        return f"{self.point}@{self.number}=kill" if self.point else ""


@attrs.frozen
class Life:
    """The kills while one daemon runs, and its own."""

    kills: tuple[AgentKill, ...]
    death: DaemonKill


def endless_lives(chance: random.Random) -> Iterator[Life]:
    """Yield rounds without end: each has every fault point once, in a random order."""
    while True:
        deaths = [DaemonKill(point=name, number=_pass(chance)) for name in POINTS]
        deaths += [_at_random(chance) for _ in range(RANDOM_OF_ROUND)]
        for death in chance.sample(deaths, len(deaths)):
            count = chance.randint(1, MOST_KILLS)
            yield Life(tuple(_agent_kill(chance) for _ in range(count)), death)


def _pass(chance: random.Random) -> int:
    return min(chance.randint(1, MOST_PASSES), chance.randint(1, MOST_PASSES))


def _at_random(chance: random.Random) -> DaemonKill:
    choices: tuple[With, ...] = ("", "", " and all guards", " and all guards and agents")
    return DaemonKill(after_s=chance.uniform(0, PAUSE_S), also=chance.choice(choices))


def _agent_kill(chance: random.Random) -> AgentKill:
    choices: tuple[Victim, ...] = ("agent", "agent", "guard", "agent and guard")
    return AgentKill(chance.choice(choices), chance.uniform(0.05, PAUSE_S))
